"""NumPy's elementwise functions, and the ufunc objects that they are."""
