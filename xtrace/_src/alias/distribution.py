"""The distribution ``jax``, as importlib.metadata finds it where jax is xtrace."""

from __future__ import annotations

import importlib.metadata
from typing import Any

from xtrace._src.core.jax_version import version


class Jax(importlib.metadata.Distribution):
    """The metadata of the distribution."""

    def read_text(self, filename: str) -> str | None:
        """Return the text of a file of the distribution; None for one that it has not."""
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: jax\nVersion: {version()}\n"
        return "" if filename == "RECORD" else None

    def locate_file(self, path: Any) -> Any:
        """Return the path of a file: there are none."""
        return path
