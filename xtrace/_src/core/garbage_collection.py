"""Garbage collection is off while modules load and while a thread traces or lowers: many objects, and no garbage."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_depth = 0
_was_enabled = False
_is_frozen = False


def freeze_until_tracing() -> None:
    """Exclude all present objects from collections until a function is traced, unless objects are frozen already.

    A program imports its libraries first; full collections of their many objects would take a fifth of the time.
    """
    global _is_frozen
    if not gc.get_freeze_count():
        gc.freeze()
        _is_frozen = True


def age_objects() -> None:
    """Move all objects to the oldest generation, unless some are frozen: the next collection does not visit them."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


@contextlib.contextmanager
def collection_paused() -> Iterator[None]:
    """Keep the collector off inside the block; with nested or concurrent blocks, until the last one ends.

    Interrupts and switches of threads happen at calls, so statements that belong together have no call between them.
    """
    global _depth, _was_enabled, _is_frozen
    if _is_frozen:
        gc.unfreeze()
        _is_frozen = False
    entered = 0
    try:
        if _depth == 0:
            _was_enabled = gc.isenabled()
        _depth += 1
        entered = 1
        gc.disable()
        yield
    finally:
        _depth -= entered
        if entered and _depth == 0 and _was_enabled:
            gc.enable()
