"""Types that users define, whose values are held by arrays."""
