"""Comparison of random numbers and keys with jax's, bit for bit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.random
import numpy as np

import xtrace
from xtrace import random

IMPLS = ("threefry2x32", "rbg", "unsafe_rbg")


def pair(seed: int, impl: str) -> tuple[Any, Any]:
    """Return the same typed key of both packages."""
    return random.key(seed, impl=impl), jax.random.key(seed, impl=impl)


@contextlib.contextmanager
def settings(name: str, value: Any) -> Iterator[None]:
    """Make a setting `value` in both packages."""
    with getattr(xtrace, name)(value), getattr(jax, name)(value):
        yield


def bits_of(x: Any) -> tuple[Any, ...]:
    """Return what tells an array of either package apart: name of the dtype, shape, and bytes of its elements."""
    if "key<" in str(x.dtype):
        words = (random if isinstance(x, xtrace.Array) else jax.random).key_data(x)
        return str(x.dtype), x.shape, np.asarray(words).tobytes()
    return str(np.dtype(x.dtype)), tuple(x.shape), np.asarray(x).tobytes()


def assert_identical(got: Any, expected: Any) -> None:
    """Assert that two results, or trees of them, agree in dtype, shape and every bit."""
    ours, theirs = xtrace.tree.leaves(got), jax.tree.leaves(expected)
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        assert bits_of(x) == bits_of(y), f"{x}\njax has {y}"
