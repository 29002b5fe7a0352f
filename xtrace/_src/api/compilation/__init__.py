"""The compilation of lowered programs: devices, layouts, tiers, and programs as bytes."""
