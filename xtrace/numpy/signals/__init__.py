"""Signals and polynomials: convolutions, frequencies, window functions."""
