"""Sparse arrays: the primitives on their buffers, each a formula in dense operations."""
