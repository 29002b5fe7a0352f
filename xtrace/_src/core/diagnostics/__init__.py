"""What users read when something goes wrong: where, why, and what to write instead; see `core/explain.py`, its door."""
