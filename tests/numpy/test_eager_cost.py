"""What an eager call costs before its program runs, in function calls: checks and planning are done once, not again."""

import itertools

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.cost import calls_while
from tests.support.operands import assert_same
from xtrace._src.api.jit.inline_jit import inline_jit

# Past this many calls every signature has code of its own: the first three are evaluated with NumPy.
WARM = 11

A, M, MASK, FOUR = jnp.arange(12.0) + 1, jnp.ones((3, 4)), jnp.arange(12) > 5, jnp.arange(4.0)

# The code of a jitted function looks at the trace and the settings, runs the program and makes the result.
ONE_PROGRAM = 6
# Finding the array that a Python number has on the device.
NUMBER = 11
CASES = {
    "exp": (lambda: jnp.exp(A), 2),
    "isnan": (lambda: jnp.isnan(A), 2),
    "add": (lambda: A + A, 2),
    "maximum": (lambda: jnp.maximum(A, A), 2),
    "where": (lambda: jnp.where(MASK, A, A), 2),
    "sum": (lambda: jnp.sum(A), 0),
    "sum over an axis": (lambda: M.sum(1), 0),
    "max with a keyword": (lambda: jnp.max(M, axis=1), 0),
    "std": (lambda: jnp.std(A), 4 + NUMBER),
    "nanstd": (lambda: jnp.nanstd(A), 4 + NUMBER),
    "nanmean": (lambda: jnp.nanmean(A), 0),
    "median": (lambda: jnp.median(A), 4 + NUMBER),
    "quantile": (lambda: jnp.quantile(A, 0.3), 4 + NUMBER),
    "sort": (lambda: jnp.sort(A), 0),
    "diff": (lambda: jnp.diff(A), 0),
    "ravel": (lambda: M.ravel(), 0),
    "roll": (lambda: jnp.roll(A, 1), 0),
    "dot": (lambda: jnp.dot(A, A), 0),
    "tensordot": (lambda: jnp.tensordot(M, FOUR, 1), 0),
    "norm": (lambda: jnp.linalg.norm(A), 0),
    "pad": (lambda: jnp.pad(M, 1), 2),
    "clip": (lambda: jnp.clip(A, 2.0, 3.0), 2 + 2 * NUMBER),
    "linspace": (lambda: jnp.linspace(0.0, 1.0, 5), 4 + 2 * NUMBER),
}


@pytest.mark.parametrize("name", CASES)
def test_a_call_is_little_more_than_its_program(name):
    call, more = CASES[name]
    for _ in range(WARM):
        call()
    assert calls_while(call) <= ONE_PROGRAM + more


# What is given otherwise than as arrays is called as it is, with the same result.

FORMS = {
    "NumPy": lambda np_: np_.dot(np.ones(3, "float32"), np_.ones(3)),
    "NumPy second": lambda np_: np_.dot(np_.ones(3), np.ones(3, "float32")),
    "weak second": lambda np_: np_.tensordot(np_.ones((3,), "bfloat16"), 2.0, 0),
    "lists of axes": lambda np_: np_.tensordot(np_.ones((3, 4)), np_.ones((4, 3)), [[1], [0]]),
    "list of widths": lambda np_: np_.pad(np_.ones(3), [(1, 2)]),
    "array of shifts": lambda np_: np_.roll(np_.arange(5), np_.arange(2), axis=(0, 0)),
    "NumPy axis": lambda np_: np_.sort(np_.ones((3, 4)), np.int64(0)),
    "weak operand": lambda np_: np_.where(np_.asarray(True), np_.asarray(1.0) * 1, 2.0),
    "number of an array": lambda np_: np_.median(np_.arange(4)),
    "ddof": lambda np_: np_.std(np_.arange(7.0), ddof=1),
    "correction": lambda np_: np_.var(np_.arange(7.0), correction=np_.float32(2)),
    "clip of integers": lambda np_: np_.clip(np_.arange(7), 2, 4.5),
}


@pytest.mark.parametrize("name", FORMS)
def test_other_forms_of_arguments(name):
    assert_same(FORMS[name](jnp), FORMS[name](jax.numpy))


def test_only_calls_with_arrays_become_a_program():
    seen = []

    @inline_jit(static=("axis",), public=True)
    def total(x, y=None, axis=0):
        seen.append(type(x))
        return jnp.sum(x if y is None else x + y, axis)

    for axis, _ in itertools.product((0, 1), range(WARM)):
        assert_same(total(M, axis=axis), jax.numpy.ones((3, 4)).sum(axis))
    assert len(seen) == 2
    for first in (np.ones((3, 4), "float32"), np.ones((3, 4)), np.ones((3, 4), "int16")):
        for _ in range(WARM):
            assert_same(total(first, M), (jax.numpy.asarray(first) + jax.numpy.ones((3, 4))).sum(0))
    # Under 32 bits the first two are of one type.
    assert len(seen) == 4
    for number in (2.0, 3.0, 2, True):
        for _ in range(WARM):
            assert_same(total(M, number), (jax.numpy.ones((3, 4)) + number).sum(0))
    assert len(seen) == 7  # one for each type of number
    for number in (np.float32(2), 2.0):
        for _ in range(WARM):
            assert_same(total(number, M), (number + jax.numpy.ones((3, 4))).sum(0))
    assert len(seen) == 9
    for args in ((np.ones((3, 4), ">f4"), M), (M, M, [0])):
        seen.clear()
        for _ in range(2):
            try:
                total(*args)
            except TypeError as error:
                assert "axis" in str(error)
        assert seen == [type(args[0])] * 2


def test_under_a_trace_what_a_program_binds_is_remembered():
    seen = []

    @inline_jit(static=("axis", "how"), public=True)
    def total(x, y=None, axis=0, how=None):
        seen.append((axis, how))
        return jnp.sum(x if y is None else x + y, axis)

    def traced(*args, **kwargs):
        seen.clear()
        texts = {str(xtrace.make_jaxpr(lambda x: total(x, *args, **kwargs).sum())(M)) for _ in range(2)}
        gradients = [xtrace.jit(xtrace.grad(lambda x: total(x, *args, **kwargs).sum()))(M).tolist() for _ in range(2)]
        assert len(texts) == 1 and gradients[0] == gradients[1] == [[1.0] * 4] * 3
        return len(seen)

    # Once as it is and once under a derivative, by position or by keyword.
    assert traced(None, 1) == traced(axis=1) == traced(how="so") == 2
    assert traced(axis=True) == 2, "an integer is not the Boolean that equals it"
    assert traced(M) == traced(y=M) == 2
    # Functions, and arguments that do not hash: each time.
    assert traced(axis=1, how=abs) == traced(None, (0,), how=[]) == 4
    with pytest.raises(TypeError, match="multiple values for argument 'axis'"):
        xtrace.make_jaxpr(lambda x: total(x, None, 0, axis=1))(M)
