"""What xtrace uses of jaxlib, most of which has no types of its own. Other modules of jaxlib are found beside it."""
