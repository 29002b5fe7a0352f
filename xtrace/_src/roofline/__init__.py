"""Rooflines: the operations and the memory traffic that a program needs, counted from its jaxpr."""
