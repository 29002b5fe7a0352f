"""The environment of a process as a reader of the documentation starts it."""

from __future__ import annotations

import os
import pathlib

_REPOSITORY = pathlib.Path(__file__).parents[2]


def reader_environment(**settings: str) -> dict[str, str]:
    """Return the variables of this process without the settings of the tests, and with `settings`."""
    kept = {name: v for name, v in os.environ.items() if not name.startswith(("XTRACE_", "JAX_", "XLA_", "MPL"))}
    path = os.pathsep.join(filter(None, (str(_REPOSITORY), os.environ.get("PYTHONPATH"))))
    return kept | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": path} | settings
