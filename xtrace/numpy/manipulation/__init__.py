"""Arrays of another shape or order of elements."""
