"""Public functions with objects that have ``__jax_array__`` in the place of arrays: their programs are the same.

What jax refuses to take, its jitted functions and those with derivatives of their own, may be refused here.
"""

from __future__ import annotations

import warnings
from typing import Any

import jax
import pytest

import xtrace
from tests.differential.test_draws import COSTLY, ROUNDS, ROWS
from tests.support.draws import Call, converted_operands, drawn_calls
from tests.support.operands import ours, theirs
from tests.support.sampling import number_of_draws

pytestmark = pytest.mark.thorough

_TABLE = ROWS | COSTLY
# Trees and dtypes are not made of arrays, and such an object is not iterable.
_NAMES = sorted(n for n in _TABLE if n.split(".")[0] not in ("tree", "tree_util", "dtypes") and n != "numpy.iterable")
# Functions of one test; calls of one of them are also evaluated.
_TOGETHER = 16


class StandIn:
    """Stands for an array, and has nothing else of one."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __jax_array__(self) -> Any:
        return self._array


def lowered(call: Call, operands: list[Any], wrap: Any) -> Any:
    """Return the text of the program of a call with each operand wrapped, or the class of the error."""
    returned: list[Any] = []

    def function(*arrays: Any) -> Any:
        result = call.plain(xtrace, [wrap(x) for x in arrays])
        returned[:] = [x for x in xtrace.tree.leaves(result) if not isinstance(x, xtrace.Array)]
        return [x for x in xtrace.tree.leaves(result) if isinstance(x, xtrace.Array)]

    try:
        return xtrace.jit(function).lower(*operands).as_text(), repr(returned)
    except Exception as error:
        return type(error)


def evaluated(call: Call, operands: list[Any], wrap: Any) -> Any:
    """Return the call's results as text, or the class of the error."""
    try:
        return repr(call.plain(xtrace, [wrap(x) for x in operands]))
    except Exception as error:
        return type(error)


def refused_by_jax(call: Call) -> bool:
    """Return whether jax does not take an object that stands for an array."""
    operands = converted_operands(call, theirs, x64=False)
    try:
        call.plain(jax, [StandIn(x) for x in operands])
    except (TypeError, ValueError):
        return True
    return False


@pytest.mark.slow
@pytest.mark.drawn(1 / 8)
@pytest.mark.parametrize("first", range(0, len(_NAMES), _TOGETHER), ids=lambda i: f"from {_NAMES[i]}")
def test_objects_are_taken_where_arrays_are(first: int, pytestconfig: pytest.Config) -> None:
    number = number_of_draws(pytestconfig.getoption("sample_seed"))
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place, name in enumerate(_NAMES[first : first + _TOGETHER]):
            for call in drawn_calls(name, _TABLE[name], number % ROUNDS, 2):
                call = call._replace(mode="value")
                operands = converted_operands(call, ours, x64=False)
                for outcome in (lowered, evaluated) if place == number // ROUNDS % _TOGETHER else (lowered,):
                    expected, got = (outcome(call, operands, wrap) for wrap in (lambda x: x, StandIn))
                    if got != expected and not (got is ValueError and refused_by_jax(call)):
                        found.append(f"{outcome.__name__} {call}: {got}, of arrays {expected}")
    assert not found, f"XTRACE_DRAWS_SEED={number}:\n" + "\n\n".join(found)
