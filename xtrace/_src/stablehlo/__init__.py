"""The text of StableHLO modules."""
