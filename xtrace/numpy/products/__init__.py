"""Products of arrays that sum over shared axes."""
