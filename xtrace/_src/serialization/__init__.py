"""Arrays on disk: a writer and a reader of Zarr, and asynchronous checkpoints."""
