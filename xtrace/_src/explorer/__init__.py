"""The explorer: what tracing, lowering and XLA make of a function, linked line by line, as data and as a page."""
