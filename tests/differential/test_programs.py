"""Random programs give what `jax.jit` gives: values, dtypes, weak types, shapes, trees."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import xtrace
from tests.differential import programs
from tests.support.operands import assert_same_type, epsilon
from tests.support.shards import examples_of

pytestmark = pytest.mark.thorough

_OURS, _THEIRS = programs.library(xtrace), programs.library(jax)
_HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def compare_results(ours: Any, theirs: Any, program: programs.Program) -> None:
    left, left_tree = xtrace.tree_util.tree_flatten(ours)
    right, right_tree = jax.tree_util.tree_flatten(theirs)
    assert str(left_tree) == str(right_tree)
    # A value of high precision may come from one of low precision, so the coarsest spacing in the program counts:
    # each step rounds its result and, in a reduction of up to 200 elements, as many partial results.
    coarsest = max((epsilon(d) for d in _floats(program)), default=epsilon(np.float32))
    for x, y in zip(left, right, strict=True):
        assert_same_type(x, y)
        if not epsilon(y.dtype):
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
            continue
        wide = np.complex128 if np.dtype(y.dtype).kind == "c" else np.float64
        one, other = np.asarray(x).astype(wide), np.asarray(y).astype(wide)
        size = np.max(np.abs(other), initial=1.0, where=np.isfinite(other))
        allowed = 16 * (len(program.steps) + program.repeats + 1) * max(coarsest, epsilon(y.dtype)) * size
        np.testing.assert_allclose(one, other, rtol=0, atol=allowed)


def _floats(program: programs.Program) -> list[Any]:
    found = [np.asarray(x).dtype for x in program.inputs if not isinstance(x, (bool, int, float))]
    found += [jax.numpy.dtype(s.details) for s in program.steps if s.operation == "astype"]
    return [d for d in found if jax.numpy.issubdtype(d, jax.numpy.inexact)]


def _function(program: programs.Program, lib: Any) -> Callable[..., Any]:
    return lambda repeats, *arguments: programs.run(lib, program, arguments, repeats)


def results_of_jax(run: Callable[[], Any]) -> Any:
    """Return jax's results; it refuses products of weakly typed integers and narrower ones, which xtrace forms."""
    try:
        return run()
    except TypeError as error:
        if "`preferred_element_type` must not be narrower" not in str(error):
            raise
        reject()


def _jitted(lib: Any, jit: Any, together: Sequence[programs.Program]) -> Any:
    """Run programs compiled as one: most of the time to compile a small program is the same for all."""

    def function(repeats, *arguments):
        return [programs.run(lib, *given) for given in zip(together, arguments, repeats, strict=True)]

    repeats = tuple([program.repeats for program in together])
    return jit(function, static_argnums=0)(repeats, *[program.inputs for program in together])


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(12))
def test_jitted_programs(shard: int) -> None:
    """2,040 programs in all, a tenth of them in an ordinary run."""

    @examples_of(shard)
    @settings(max_examples=17, deadline=None, suppress_health_check=_HEALTH)
    @given(st.tuples(*[programs.programs()] * 10))
    def compare(together: Sequence[programs.Program]) -> None:
        ours = _jitted(_OURS, xtrace.jit, together)
        theirs = results_of_jax(lambda: _jitted(_THEIRS, jax.jit, together))
        for results in zip(ours, theirs, together, strict=True):
            compare_results(*results)

    compare()


@settings(max_examples=150, deadline=None, suppress_health_check=_HEALTH)
@given(programs.programs(max_steps=5))
def test_eager_programs(program: programs.Program) -> None:
    """Operation by operation, against jax doing the same."""
    ours = _function(program, _OURS)(program.repeats, *program.inputs)
    theirs = results_of_jax(lambda: _function(program, _THEIRS)(program.repeats, *program.inputs))
    compare_results(ours, theirs, program)


@settings(max_examples=150, deadline=None, suppress_health_check=_HEALTH)
@given(programs.programs(max_steps=5))
def test_shapes_and_jaxprs(program: programs.Program) -> None:
    """`eval_shape` and `make_jaxpr` agree with jax on the results' types without running anything."""
    ours = _function(program, _OURS)
    theirs = _function(program, _THEIRS)
    left = xtrace.eval_shape(functools.partial(ours, program.repeats), *program.inputs)
    right = results_of_jax(lambda: jax.eval_shape(functools.partial(theirs, program.repeats), *program.inputs))
    for x, y in zip(xtrace.tree_util.tree_leaves(left), jax.tree_util.tree_leaves(right), strict=True):
        assert (x.shape, x.dtype, x.weak_type) == (y.shape, y.dtype, y.weak_type)
    closed = xtrace.make_jaxpr(ours, static_argnums=0)(program.repeats, *program.inputs)
    assert [a.shape for a in closed.out_avals] == [x.shape for x in jax.tree_util.tree_leaves(right)]
