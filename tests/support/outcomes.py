"""What a function of a package comes to, in ours and in jax: its results, or the class of its error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import xtrace
from tests.support.operands import assert_close
from xtrace._src.core import dtypes

Function = Callable[[Any, Any, Any], Any]


def outcome(api: Any, function: Function) -> tuple[str, Any]:
    """The results' structure and leaves, or the class of the error and its message."""
    try:
        leaves, tree = api.tree_util.tree_flatten(function(api, api.lax, api.numpy))
    except Exception as error:
        return type(error).__name__, str(error)
    return str(tree), leaves


def assert_outcomes_equal(function: Function) -> Any:
    """Compare ``function(package, package.lax, package.numpy)``: structure, types and values, or the error's class.

    Return jax's results, or the message of its error.
    """
    (tree, got), (expected_tree, expected) = outcome(xtrace, function), outcome(jax, function)
    assert tree == expected_tree, (got, expected)
    if isinstance(expected, str):
        return expected
    for one, other in zip(got, expected, strict=True):
        if not hasattr(other, "dtype"):
            assert one == other and type(one) is type(other)
            continue
        types = [(a.shape, a.dtype, bool(getattr(a, "weak_type", False))) for a in (one, other)]
        assert types[0] == types[1]
        if other.dtype != dtypes.float0:
            # A dozen operations at most.
            assert_close(np.asarray(one), np.asarray(other), 16)
    return expected
