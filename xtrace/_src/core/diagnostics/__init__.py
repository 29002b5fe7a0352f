"""Error messages for users: the place, the reason and the correction; `core/explain.py` is the interface."""
