"""Pytrees: nested containers, their registration and their differences."""
