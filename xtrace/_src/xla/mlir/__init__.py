"""jaxlib's MLIR bindings."""
