"""The memories that arrays can be in: ``Space.Device`` and ``Space.Host``, for `device_put`; types may say ``Any``."""

from xtrace._src.core.avals import MemorySpace as Space
from xtrace._src.core.public_modules import make_public as _make_public

__all__ = ["Space"]

_make_public(globals(), __all__)
