"""Types, families of primitives, and the operations that rules are made of."""
