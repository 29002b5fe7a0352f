"""Staging memory: NumPy arguments are copied into memory that a device buffer shares, which is reused call after call.

Making a buffer takes several times as long as copying a small array. On CPU a buffer can share the memory of a NumPy
array, so that a new value needs a copy alone.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.core.aligned_arrays import aligned_array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.xla import buffers
from xtrace._src.xla.clients import Device

# The largest size in bytes of the staged arguments of one call: the time of larger ones is that of the copy itself.
MOST_BYTES = 2**16

# The threads in which transfers to devices are logged or disallowed, None for all; staging would hide them.
guarded_threads: set[int | None] = set()


def note_guard(level: str | None, everywhere: bool) -> None:
    """Note the level of the guard of transfers to devices, in all threads or in this one."""
    thread = None if everywhere else threading.get_ident()
    if level in (None, "allow"):
        guarded_threads.discard(thread)
    else:
        guarded_threads.add(thread)


def can_stage(aval: ShapedArray, device: Device) -> bool:
    """Whether arguments of type `aval` can have staging memory."""
    return device.platform == "cpu" and aval.dtype.isbuiltin == 1 and 0 < aval.size * aval.dtype.itemsize <= MOST_BYTES


def allocate(avals: Sequence[ShapedArray], device: Device) -> list[tuple[Any, ...]]:
    """Return a stack with the staging memory for one call: an array and a buffer that shares its memory, for each type.

    A call pops the memory and pushes it back when its results are ready. A call that finds the stack empty makes
    buffers of its own: it runs in another thread, or after a call whose results were not ready when it returned. So
    does a call while the setting `jax_transfer_guard_host_to_device` asks for reports or errors of transfers. The
    stack is empty from the start if the runtime copied an array, or if the arrays are too large together.
    """
    if sum(a.size * a.dtype.itemsize for a in avals) > MOST_BYTES:
        return []
    memory: list[Any] = []
    for aval in avals:
        array = aligned_array(aval.shape, aval.dtype)
        buffer = buffers.put(aval, array, device, copy=False)
        if not np.shares_memory(np.asarray(buffer), array):
            return []
        memory += [array, buffer]
    return [tuple(memory)]
