"""Garbage collection is off while modules load and while a thread traces or lowers: many objects, and no garbage."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_depth = 0
_was_enabled = False
_is_frozen = False


def freeze_until_tracing() -> None:
    """Keep the objects of now out of collections until a function is traced, unless some are kept out already.

    Libraries are imported before, and make so many objects that full collections take a fifth of the time.
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

    An interrupt of the user comes between two calls, and so does another thread: what belongs together has no call in
    between.
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
