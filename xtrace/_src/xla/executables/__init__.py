"""Compiling, loading and running programs."""
