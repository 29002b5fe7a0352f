"""Which arrays are in memory."""

from __future__ import annotations

import gc
from typing import Any

from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.xla import clients


def live_arrays(platform: str | None = None) -> list[Any]:
    """Return the arrays that are in memory, on the default platform or the one named, those of xtrace's caches too.

    RuntimeError for a platform that there is none of.
    """
    devices = set(clients.devices(platform))
    arrays = [x for x in gc.get_objects() if type(x) is ConcreteArray and hasattr(x, "buffer")]
    return [x for x in arrays if not x.is_deleted() and x.device in devices]
