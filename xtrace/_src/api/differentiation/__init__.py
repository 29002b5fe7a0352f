"""Derivatives of Python functions."""
