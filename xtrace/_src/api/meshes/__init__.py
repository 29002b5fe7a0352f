"""Meshes of devices, and arrays on them."""
