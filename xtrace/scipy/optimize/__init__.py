"""Minimization, as ``jax.scipy.optimize`` has it."""

from xtrace.scipy.optimize.minimization import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]
