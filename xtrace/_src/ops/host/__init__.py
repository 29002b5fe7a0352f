"""Python that compiled programs call: callbacks, printing, breakpoints, and the order of these calls."""
