"""The primitives, each with its rules beside it."""
