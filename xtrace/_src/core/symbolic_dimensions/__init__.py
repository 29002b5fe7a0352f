"""Symbolic dimensions: sizes that are polynomials in unknown sizes."""
