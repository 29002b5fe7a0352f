"""PJRT plugins, and compiling for devices that are not present."""
