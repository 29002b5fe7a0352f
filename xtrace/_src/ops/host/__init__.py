"""Calls of Python from compiled programs: callbacks, printing, breakpoints, and tokens that order them."""
