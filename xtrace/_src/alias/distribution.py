"""The distribution ``jax`` for importlib.metadata, in a process where jax is xtrace."""

from __future__ import annotations

import importlib.metadata
from typing import Any

from xtrace._src.core.settings.jax_version import version


class Jax(importlib.metadata.Distribution):
    """The metadata of the distribution."""

    def read_text(self, filename: str) -> str | None:
        """Return the text of a file of the distribution; None for a missing file."""
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: jax\nVersion: {version()}\n"
        return "" if filename == "RECORD" else None

    def locate_file(self, path: Any) -> Any:
        """Return `path`; the distribution has no files."""
        return path
