"""Functions mapped over axes of arrays: `vmap`, `pmap`, `shard_map`."""
