"""Arrays on disk: a writer and a reader of Zarr, and checkpoints that are written while the program goes on."""
