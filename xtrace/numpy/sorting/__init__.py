"""Sorting, searching, sets and comparisons of whole arrays."""
