"""Calls: of jitted functions, of composites, of foreign functions."""
