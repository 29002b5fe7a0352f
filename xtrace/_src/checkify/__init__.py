"""``experimental.checkify``: errors of a function, found while it runs, as a value that it returns."""
