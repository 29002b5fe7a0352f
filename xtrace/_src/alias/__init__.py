"""``import jax`` as xtrace, in a process that asks for it."""
