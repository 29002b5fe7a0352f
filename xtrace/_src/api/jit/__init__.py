"""`jit`: its cache, its dispatch and its stages."""
