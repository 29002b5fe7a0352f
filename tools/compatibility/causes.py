"""The causes of failures that are known: a library, a pattern for the names of its tests, and the cause in words."""

from __future__ import annotations

import re

_CAUSES: tuple[tuple[str, str, str], ...] = (
    (
        "quax", r"test_degradation_is_not_silent",
        "the test imports quax in a process of its own, which does not ask for the alias, so `import jax` finds none",
    ),
)


def find_cause(library: str, test: str, message: str) -> str:
    """Return why a test fails: its known cause, or the first line of its message."""
    for name, pattern, cause in _CAUSES:
        if name == library and re.search(pattern, test):
            return cause
    return f"not yet looked into: {message.splitlines()[0] if message else 'no message'}"
