"""Interpolation of images, as ``jax.scipy.ndimage`` has it."""

from xtrace.scipy.ndimage.interpolation import map_coordinates

__all__ = ["map_coordinates"]
