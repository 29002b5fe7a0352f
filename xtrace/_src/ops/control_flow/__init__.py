"""Loops and branches: operations whose parameters are the jaxprs of Python functions."""
