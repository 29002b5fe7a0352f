"""Random keys and the bits that come from them."""
