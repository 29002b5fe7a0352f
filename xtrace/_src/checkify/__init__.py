"""``experimental.checkify``: run-time errors of a function as a value that it returns."""
