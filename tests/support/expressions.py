"""Expressions that mean the same on both packages, compared with jax: eagerly one by one, and jitted all at once.

A table is a list of texts such as ``"jnp.sum(x, axis=0)"`` over the operands below and the names `jnp`, `np` and `lax`.
"""

from __future__ import annotations

import decimal
import fractions
import functools
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy
import ml_dtypes
import numpy as np

import xtrace
from tests.support import sampling
from tests.support.operands import assert_same, ours, theirs

# Values as in NumPy; those of the names in WEAK are weakly typed.
OPERANDS: dict[str, Any] = {
    "x": (np.arange(12, dtype=np.float32) - 4).reshape(3, 4),
    "y": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "v": np.arange(4, dtype=np.float32),
    "s": np.float32(2.5),
    "w": np.float32(1.5),
    "wi": np.int32(3),
    "i": (np.arange(12, dtype=np.int8) - 3).reshape(3, 4),
    "u": np.arange(5, dtype=np.uint8),
    "n": np.array([2, 0, -1], dtype=np.int32),
    "h": (np.arange(12) / 3).reshape(3, 4).astype(ml_dtypes.bfloat16),
    "f16": (np.arange(6, dtype=np.float16) / 7),
    "b": np.arange(12).reshape(3, 4) % 3 == 0,
    "c": (np.arange(6) - 2 + 1j * np.arange(6)).astype(np.complex64).reshape(2, 3),
    "q": np.array([1.0, np.nan, -np.inf, 3.0], dtype=np.float32),
    "z": np.zeros((0, 3), dtype=np.float32),
}
WEAK = frozenset(("w", "wi"))
_MODULES = {"decimal": decimal, "fractions": fractions}


@functools.cache
def operands_of(convert: Any) -> dict[str, Any]:
    """Return the operands as one package's arrays."""
    return {name: convert(value, name in WEAK) for name, value in OPERANDS.items()}


def evaluate(package: Any, text: str, operands: Mapping[str, Any]) -> Any:
    """Return what an expression gives on one package."""
    jnp, lax = importlib.import_module(f"{package.__name__}.numpy"), importlib.import_module(f"{package.__name__}.lax")
    return eval(text, {"jnp": jnp, "np": np, "lax": lax, "package": package, **_MODULES, **operands})


def check_eagerly(text: str, rounding: float = 8, among: Sequence[str] = ()) -> None:
    """Assert that an expression gives what it gives with jax: structure, shapes, dtypes, weak types, values.

    among: expressions that jax evaluates as one program, which pays where most of them are tested; without, and in a
    run of few tests, it evaluates `text` eagerly.
    """
    together = text in among and sampling.part_run > 0.5
    expected = _of_jax(among)[text] if together else evaluate(jax, text, operands_of(theirs))
    _check(evaluate(xtrace, text, operands_of(ours)), expected, rounding, text)


def check_jitted(texts: Sequence[str], rounding: float = 8) -> None:
    """Assert that the expressions, as one jitted function of the operands, give what they give with jax's jit."""
    expected = _of_jax(texts)
    for text, result in zip(texts, _as_one_program(xtrace, texts, operands_of(ours)), strict=True):
        _check(result, expected[text], rounding, text)


_results_of_jax: dict[str, Any] = {}
_EAGERLY = object()
# Of jax: values that it needs known, and NumPy's warning of a cast, which XLA does otherwise.
_OUTSIDE_JIT = (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError, RuntimeWarning)


def _of_jax(texts: Sequence[str]) -> Mapping[str, Any]:
    """Return what jax gives for these expressions, among others."""
    missing = [text for text in texts if text not in _results_of_jax]
    # XLA casts without NumPy's warnings.
    with np.errstate(over="ignore"):
        found = _as_one_program(jax, missing, operands_of(theirs))
    for text, result in zip(missing, found, strict=True):
        _results_of_jax[text] = evaluate(jax, text, operands_of(theirs)) if result is _EAGERLY else result
    return _results_of_jax


def _as_one_program(package: Any, texts: Sequence[str], operands: Mapping[str, Any]) -> list[Any]:
    """Return what the expressions give as one jitted function; _EAGERLY for what jax does only outside jit."""
    shown: list[Any] = []

    def traced(text: str, operands: Mapping[str, Any]) -> Any:
        try:
            return evaluate(package, text, operands)
        except _OUTSIDE_JIT:
            return _EAGERLY

    def every(operands: Any) -> list[Any]:
        shown[:] = [traced(text, operands) for text in texts]
        return [leaf for result in shown for leaf in package.tree.leaves(result) if _is_array(leaf)]

    found = iter(package.jit(every)(operands))
    return [package.tree.map(lambda leaf: next(found) if _is_array(leaf) else leaf, result) for result in shown]


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _check(got: Any, expected: Any, rounding: float, where: str) -> None:
    if isinstance(expected, (list, tuple)):
        assert type(got) is type(expected), f"{where}: a {type(got).__name__}, jax gives a {type(expected).__name__}"
        assert len(got) == len(expected), f"{where}: {len(got)} results, jax gives {len(expected)}"
        for one, other in zip(got, expected, strict=True):
            _check(one, other, rounding, where)
    elif isinstance(expected, jax.Array):
        assert_same(got, expected, rounding, where)
    else:
        assert got == expected, f"{where}: {got!r}, jax gives {expected!r}"
