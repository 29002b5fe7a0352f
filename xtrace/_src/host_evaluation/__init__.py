"""Small programs of the library: NumPy evaluates their first calls, and XLA compiles them for later ones."""
