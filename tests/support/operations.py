"""Checks of one operation against jax: values eagerly and jitted, types, jaxpr text, the module, errors.

An operation is given as a function of the module it comes from and of its operands, and runs on both packages:

    check_values(lambda lax, x: lax.rev(x, (0,)), values)
"""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, assert_same_type, ours, theirs
from xtrace import lax

Operation = Callable[..., Any]

# What jaxprs of jax show and ours do not: the types of literals, parameters that are None, the function of an update.
_LITERAL_TYPE = re.compile(r"(?<![\w.])(-?(?:\d[\w.+-]*|inf|nan|True|False)|\([^() ]*j\)):\w+\[\]")
_NO_PARAMETER = re.compile(r"\b\w+=None(?=[\s\]])")
_UPDATE = re.compile(r"update_jaxpr=\{[^}]*\}|update_consts=\(\)")


def values_of(value: Any) -> Any:
    """Return the leaves of a result as a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def check_values(operation: Operation, *operands: Any, rounding: float = 4) -> None:
    """Assert that the operation agrees with jax's, eagerly and jitted, and that its module verifies."""
    mine, other = ours(list(operands)), theirs(list(operands))
    expected = values_of(operation(jax.lax, *other))
    assert_same(values_of(operation(lax, *mine)), expected, rounding, "eager")
    jitted = xtrace.jit(lambda *xs: operation(lax, *xs))
    assert_same(values_of(jitted(*mine)), expected, rounding, "jitted")
    # MLIR's bindings are loaded only by what needs them.
    importlib.import_module("xtrace._src.xla.mlir.modules").verify(jitted.lower(*mine).as_text(debug_info=True))


def check_types(operation: Operation, *operands: tuple[Any, Any]) -> None:
    """Assert that shapes, dtypes and weak types of the results are jax's; operands are pairs (shape, dtype).

    Each operand whose dtype a Python scalar has is tried strongly and weakly typed.
    """
    default = [np.dtype(d) for d in (np.int32, np.float32, np.complex64)]
    choices = [[False, True] if np.dtype(dtype) in default else [False] for _, dtype in operands]
    for weak in itertools.product(*choices):
        described = list(zip(operands, weak, strict=True))
        mine = [xtrace.ShapeDtypeStruct(s, np.dtype(d), weak_type=w) for (s, d), w in described]
        other = [jax.ShapeDtypeStruct(s, np.dtype(d), weak_type=w) for (s, d), w in described]
        got = values_of(xtrace.eval_shape(lambda *xs: operation(lax, *xs), *mine))
        expected = values_of(jax.eval_shape(lambda *xs: operation(jax.lax, *xs), *other))
        for one, two in zip(got, expected, strict=True):
            assert_same_type(one, two, f"operands {described}")


def plain_text(text: str) -> str:
    """Return a jaxpr's text on one line, without what only jax prints."""
    text = _LITERAL_TYPE.sub(r"\1", _NO_PARAMETER.sub("", _UPDATE.sub("", text)))
    # Newer releases of jax show this parameter of top_k, which has one value.
    text = re.sub(r"(top_k\[[^]]*?)is_stable=True", r"\1", text)
    text = re.sub(r"\s+", " ", text).replace("[ ", "[").replace(" ]", "]")
    return re.sub(r"(= [\w-]+)\[\]", r"\1", text)


def check_jaxpr(operation: Operation, *operands: Any) -> None:
    """Assert that the jaxpr reads as jax's."""
    mine = xtrace.make_jaxpr(lambda *xs: operation(lax, *xs))(*ours(list(operands)))
    other = jax.make_jaxpr(lambda *xs: operation(jax.lax, *xs))(*theirs(list(operands)))
    assert plain_text(str(mine)) == plain_text(str(other))


def check_error(operation: Operation, kind: type[Exception], words: Sequence[str], *operands: Any) -> None:
    """Assert that the call is an error of this class, traced and eagerly, whose message has all the words.

    jax must raise too, though not always the same class: where it has no check, another error shows through.
    """
    mine, other = ours(list(operands)), theirs(list(operands))
    for run in (lambda f: f(*mine), lambda f: xtrace.make_jaxpr(f)(*mine)):
        with pytest.raises(kind) as raised:
            run(lambda *xs: operation(lax, *xs))
        for word in words:
            assert word in str(raised.value)
    with pytest.raises(Exception):  # noqa: B017
        jax.jit(lambda *xs: operation(jax.lax, *xs))(*other)
