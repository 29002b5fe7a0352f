"""Operations with rules of the user: calls of functions with their own derivative, transpose or batching rule.

In eager evaluation the function and its rules are Python functions. In a staged program the equation holds the jaxpr of
the function, and the rules stay Python functions until a transformation calls them.
"""
