"""Passes over MLIR modules, as jaxlib binds them (``jax.extend.mlir.passmanager``)."""

from xtrace._src.xla.mlir.mlir_names import find_names as _names_of

__all__, __getattr__, __dir__ = _names_of("passmanager")
