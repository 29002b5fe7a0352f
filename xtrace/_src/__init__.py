"""The private layers, from the door to jaxlib up to `jit` and `grad`; `CONTRIBUTING.md` lists them in order."""
