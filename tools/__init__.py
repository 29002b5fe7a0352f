"""Programs for those who work on xtrace."""
