"""Calls of functions with user-defined derivative, transpose or batching rules, as operations.

In eager evaluation the function and its rules are Python functions. In a staged program the equation holds the jaxpr of
the function; its rules stay Python functions, which transformations call.
"""
