"""Small programs of the library are evaluated with NumPy when they are first called, and compiled when called again."""
