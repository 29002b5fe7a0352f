"""The targets of custom calls."""
