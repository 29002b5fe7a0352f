"""The memories that arrays can be in: ``Space.Device`` and ``Space.Host``, for `device_put`."""

from xtrace.core.avals import MemorySpace as Space

__all__ = ["Space"]
