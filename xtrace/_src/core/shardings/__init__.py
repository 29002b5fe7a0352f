"""Meshes, shardings and layouts of arrays, and the rules by which operations keep them."""
