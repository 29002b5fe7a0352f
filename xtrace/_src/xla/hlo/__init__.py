"""Compiled programs, read from XLA's messages and texts."""
