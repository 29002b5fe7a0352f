"""The causes of failures that are known: a library, a pattern for the names of its tests, and the cause in words."""

from __future__ import annotations

import re

_CAUSES: tuple[tuple[str, str, str], ...] = (
    (
        "flax", r"checkpoints_test|integration_test",
        "the file imports orbax-checkpoint, which imports `jax.experimental.colocated_python`: colocated Python is "
        "outside of xtrace",
    ),
    (
        "distrax", r"test_log_prob_2d|test_inverting_jitted_function_add",
        "it passes when its file runs alone; after other tests of the same process one operand has 64 bits",
    ),
    (
        "flax", r"test_fp8_meta_dtype",
        "cotangents of a dtype that the library defines are added by the dtype's own rule, the maximum: xtrace does "
        "not call it yet",
    ),
)


def cause_of(library: str, test: str, message: str) -> str:
    """Return why a test fails: its known cause, or the first line of its message."""
    for name, pattern, cause in _CAUSES:
        if name == library and re.search(pattern, test):
            return cause
    return f"not yet looked into: {message.splitlines()[0] if message else 'no message'}"
