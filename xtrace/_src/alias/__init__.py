"""The alias ``jax`` for xtrace, in a process that asks for it."""
