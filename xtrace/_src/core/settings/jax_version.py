"""The release of JAX whose behaviour is followed, where two supported releases differ.

Code with a difference calls `is_newer`; `tests/core/test_jax_version.py` lists the differences.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.settings.options import Kind, option

REFERENCE, NEWER = "0.10.2", "0.12.0"


def _release(value: object) -> str:
    text = str(value)
    for release in (REFERENCE, NEWER):
        # Patch releases and builds of a series behave alike.
        if text.split(".")[:2] == release.split(".")[:2]:
            return release
    raise ValueError(f"the setting accepts '{REFERENCE}' and '{NEWER}'; got {abbreviate(value)}")


@option(
    REFERENCE,
    Kind("enum", _release, f"{REFERENCE!r}, or {NEWER!r}; any release of their series.", NEWER, (REFERENCE, NEWER)),
    name="xtrace_jax_version", keyed=True,
)
def jax_version(new_val: object) -> AbstractContextManager[None]:
    """The release of JAX whose behaviour is followed, where releases differ."""
    ...


def is_newer() -> bool:
    """Return whether this thread follows JAX 0.12."""
    return bool(jax_version.value != REFERENCE)


def pack_results(arrays: list[Any]) -> Any:
    """Return the several results of a NumPy function: as a list, in newer JAX as a tuple."""
    return tuple(arrays) if is_newer() else arrays


def version() -> str:
    """Return the followed release, as in ``jax.__version__``."""
    return str(jax_version.value)
