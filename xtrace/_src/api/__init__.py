"""The transformations that users call, and the caches and reports of their programs."""
