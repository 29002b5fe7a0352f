"""Arrays on disk: Zarr files, and asynchronous checkpoints."""
