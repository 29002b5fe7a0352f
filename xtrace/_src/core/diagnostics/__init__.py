"""Error messages for users: the place, the reason and the correction; `explain.py` is the interface."""
