"""The arrays in memory."""

from __future__ import annotations

import gc
from typing import Any

from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.xla import clients


def live_arrays(platform: str | None = None) -> list[Any]:
    """Return the arrays in memory, the arrays in xtrace's caches included.

    Args:
        platform: the name of a platform, such as ``"cpu"``; None for the default one.

    Returns:
        A list of the arrays with a piece on a device of the platform.

    Raises:
        RuntimeError: there is no such platform.

    Example:
        >>> x = jnp.ones(3)
        >>> any(each is x for each in xtrace.live_arrays())
        True
    """
    devices = set(clients.devices(platform))
    arrays = [x for x in gc.get_objects() if type(x) is ConcreteArray and hasattr(x, "buffer")]
    return [x for x in arrays if not x.is_deleted() and not devices.isdisjoint(x.sharding.devices)]
