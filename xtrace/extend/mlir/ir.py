"""MLIR's modules, operations, types and attributes, as jaxlib binds them (``jax.extend.mlir.ir``)."""

from xtrace._src.xla.mlir.mlir_names import find_names as _names_of

__all__, __getattr__, __dir__ = _names_of("ir")
