"""Random tests split over several processes: each part draws examples of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import seed, settings


def examples_of(shard: int) -> Callable[[Any], Any]:
    """Return a decorator for a test whose examples differ from those of other shards.

    Where the profile makes runs repeatable, Hypothesis would draw the same ones for all: it goes by the test's name.
    """
    return seed(shard) if settings.default.derandomize else lambda test: test  # type: ignore[union-attr]
