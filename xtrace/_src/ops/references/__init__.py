"""References: mutable arrays. Programs with them are discharged, made free of them, before they are transformed."""
