"""NumPy's elementwise functions and the operators of arrays."""
