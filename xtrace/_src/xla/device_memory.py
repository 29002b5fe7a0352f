"""The sizes of devices' memories."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from jaxlib import _jax


def find_memory_of_host() -> int | None:
    """Return the bytes of memory of this machine; None if the system does not report them."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def find_memory_of_each(devices: Sequence[Any]) -> int | None:
    """Return the bytes of memory for a program on each of its devices; None if the runtime does not report them."""
    if devices[0].platform == "cpu":
        host = find_memory_of_host()
        return host // len(devices) if host is not None else None
    try:
        limit = (devices[0].memory_stats() or {}).get("bytes_limit")
    except (_jax.JaxRuntimeError, AttributeError, NotImplementedError):
        return None
    return int(limit) if limit else None
