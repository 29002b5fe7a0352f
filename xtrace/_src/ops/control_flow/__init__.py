"""Loops and branches: operations whose parameters hold the jaxprs of Python functions."""
