"""`export`: compiled functions as files, in the format of jax.export."""
