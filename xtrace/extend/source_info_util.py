"""Places of operations in a user's code: ``jax.extend.source_info_util``."""

from __future__ import annotations

from xtrace._src.core import source
from xtrace._src.core.late import make_public as _make_public

__all__ = ["register_exclusion"]


def register_exclusion(path: str) -> None:
    """Give operations that a library's file makes the place of the line that called it.

    Args:
        path: the path of the file, or of a folder.

    Raises:
        TypeError: `path` is no string.

    Example:
        >>> xtrace.extend.source_info_util.register_exclusion("/opt/library")
    """
    source.leave_out(path)


_make_public(globals(), __all__)
