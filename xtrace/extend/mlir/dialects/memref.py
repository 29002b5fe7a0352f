"""Buffers in memory, as jaxlib builds them in MLIR (``jax.extend.mlir.dialects.memref``)."""

from xtrace._src.xla.mlir.mlir_names import find_names as _names_of

__all__, __getattr__, __dir__ = _names_of("dialects.memref")
