"""Rules and primitives of users: the conventions of JAX's rules, and the mappings that they are registered in."""
