"""Programs of drawn calls do not become longer with the sizes of operands where jax's do not.

A chain of thousands of operations takes XLA minutes to compile, or ends it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy
import jax.scipy.special
import numpy as np
import pytest

import xtrace
import xtrace.scipy.special
from tests.differential.test_draws import COSTLY, EXAMPLES, ROWS, rounds
from tests.support.draws import Call, Operand, drawn_calls

pytestmark = pytest.mark.thorough

_TOGETHER = 64
_TABLE = ROWS | COSTLY
_NAMES = list(_TABLE)
# Operands have so many times their drawn lengths; calls with more elements than these are left out.
_TIMES, _MOST = (4, 16), 1 << 18
# A loop in the place of one comparison of all pairs, or padding that one of two sizes needs, is so many lines at most.
_LINES = 40
# Functions that jax computes by a loop over the elements, and whose derivatives here are of logarithmic depth.
_LOGARITHMIC = {f"numpy.{name}.accumulate" for name in ("maximum", "minimum", "fmax", "fmin", "multiply", "logaddexp")}


def _longer(tree: Any, times: int, as_arrays: bool) -> Any:
    """Return arguments whose arrays, and sequences of arrays, are so many times as long.

    as_arrays: sequences of arrays of one type become an array.
    """
    if isinstance(tree, Operand):
        return tree._replace(value=np.tile(tree.value, [times if n > 1 else 1 for n in np.shape(tree.value)]))
    if type(tree) in (list, tuple):
        items = [_longer(item, times, as_arrays) for item in tree]
        if len(items) < 2 or not all(isinstance(x, Operand) for x in items):
            return type(tree)(items)
        if as_arrays and len({(x.value.shape, x.value.dtype) for x in items}) == 1:
            return Operand(np.stack([x.value for x in items * times]))
        return type(tree)(items * times)
    return {key: _longer(x, times, as_arrays) for key, x in tree.items()} if isinstance(tree, dict) else tree


def _lines(package: Any, function: Callable[..., Any], operands: Sequence[Any]) -> int:
    """Return the number of lines of the module of a function's arrays."""

    def arrays(*values: Any) -> list[Any]:
        return [leaf for leaf in package.tree.leaves(function(package, values)) if isinstance(leaf, package.Array)]

    return int(package.jit(arrays).lower(*operands).as_text().count("\n"))


def _growth(package: Any, calls: Sequence[Call]) -> int | None:
    """Return how many lines longer the program of the last call is; None where a call is refused."""
    found = []
    for call in calls:
        operands = [x.value for x in call.operands()]
        if sum(x.size for x in operands) > _MOST:
            return None
        try:
            found.append(_lines(package, call.evaluate, operands))
        except Exception:  # longer arguments fit together in some of the calls only
            return None
    return found[-1] - found[0]


def _with_longer(call: Call, times: int, as_arrays: bool) -> Call:
    positional = [_longer(x, times, as_arrays) for x in call.arguments]
    return call._replace(arguments=tuple(positional), keywords=_longer(call.keywords, times, as_arrays))


# Functions of a vector, or of the rows of a matrix, whose programs are as long for every number of elements.
_AS_LONG: dict[str, Callable[[Any, Any], Any]] = {
    **{name: lambda p, x, name=name: getattr(p.numpy, name)(x)  # type: ignore[misc]
       for name in ("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack")},
    "stack along the last axis": lambda p, x: p.numpy.stack(x, -1),
    "concatenate along no axis": lambda p, x: p.numpy.concatenate(x, None),
    "repeat by traced counts": lambda p, x: p.numpy.repeat(x[0], x[1].astype(int), total_repeat_length=9),
    "nonzero": lambda p, x: p.numpy.nonzero(x, size=5),
    "union1d": lambda p, x: p.numpy.union1d(x, x, size=5),
    "intersect1d": lambda p, x: p.numpy.intersect1d(x, x + 1, size=5, return_indices=True),
    "isin": lambda p, x: p.numpy.isin(x, x),
    "bessel_jn": lambda p, x: p.scipy.special.bessel_jn(x[0], v=len(x) - 1),
    "derivative of bessel_jn": lambda p, x: p.jvp(
        lambda y: p.scipy.special.bessel_jn(y, v=len(x) - 1), (x[0],), (x[1],)),
}


@pytest.mark.parametrize("name", _AS_LONG)
def test_programs_are_as_long_for_every_size(name: str) -> None:
    short, long = (_lines(xtrace, lambda p, x: _AS_LONG[name](p, *x), [np.ones((n, n), np.float32)]) for n in (30, 90))
    assert long <= short + 2, f"{short} lines for 30 rows and {long} for 90"


def test_a_choice_by_many_conditions_is_one_operation() -> None:
    def chosen(x: Any) -> Any:
        return xtrace.numpy.select([x > i for i in range(99, -1, -1)], [x * i for i in range(99, -1, -1)], -1)

    x = np.array([-3, 0.5, 42.5, 200], np.float32)
    found = xtrace.make_jaxpr(chosen)(x)
    assert [e.primitive.name for e in found.eqns].count("select_n") == 1
    np.testing.assert_array_equal(np.asarray(xtrace.jit(chosen)(x)), np.array([-1, 0, 42.5 * 42, 200 * 99], np.float32))
    assert np.asarray(xtrace.grad(lambda x: chosen(x).sum())(x)).tolist() == [0, 0, 42, 99]


@pytest.mark.drawn(0.15)
@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(_NAMES), _TOGETHER), ids=lambda i: f"from {_NAMES[i]}")
def test_programs_do_not_grow_with_sizes_where_those_of_jax_do_not(first: int, pytestconfig: pytest.Config) -> None:
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in rounds(pytestconfig):
            for name in _NAMES[first : first + _TOGETHER]:
                for call in drawn_calls(name, _TABLE[name], number, EXAMPLES):
                    for as_arrays in (False, True):
                        calls = [_with_longer(call, n, as_arrays) for n in _TIMES]
                        growth = _growth(xtrace, calls)
                        if growth is None or growth <= _LINES * (4 if name in _LOGARITHMIC else 1):
                            continue
                        expected = _growth(jax, calls)
                        if expected is not None and growth > 2 * expected + _LINES:
                            found.append(f"{growth} lines more, {expected} in jax: {call}")
    assert not found, "\n".join(found)
