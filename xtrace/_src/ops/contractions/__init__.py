"""Contractions: `dot_general`, its ragged and scaled forms, and convolutions."""
