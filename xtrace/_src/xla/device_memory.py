"""How much memory devices have."""

from __future__ import annotations

import os
from typing import Any

from jaxlib import _jax


def memory_of_host() -> int | None:
    """Return the bytes of memory of this machine, None if the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def memory_of_device(device: Any) -> int | None:
    """Return the bytes that programs can have on a device that is here, None if its runtime does not say."""
    if device.platform == "cpu":
        # Several CPU devices share it.
        return memory_of_host() if len(device.client.devices()) == 1 else None
    try:
        limit = (device.memory_stats() or {}).get("bytes_limit")
    except (_jax.JaxRuntimeError, AttributeError, NotImplementedError):
        return None
    return int(limit) if limit else None
