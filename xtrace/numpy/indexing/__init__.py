"""Elements read, selected and replaced by index."""
