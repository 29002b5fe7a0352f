"""Stacks of transformations give what jax gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy
from tests.differential.compositions import OPERATIONS, SIZE, TRANSFORMATIONS, Composition, build, compositions
from tests.support.operands import assert_same_type
from tests.support.shards import examples_of

pytestmark = pytest.mark.thorough

_HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large]
_ARGUMENT = (0.3, -0.7, 1.1)


def _compare(composition: Composition, jitted: bool) -> None:
    with xtrace.enable_x64(True), jax.enable_x64(True):
        x = np.array(composition.argument)
        ours = build(xtrace, composition)
        got = xtrace.jit(ours)(x) if jitted else ours(xtrace.numpy.asarray(x))
        try:
            expected = jax.jit(build(jax, composition))(x)
        except (TypeError, AssertionError) as error:
            if not _is_refused_by_jax(error):
                raise
            reject()
        _assert_close(composition, got, expected)


def _compare_as_one_program(together: Sequence[Composition]) -> None:
    """Compare jitted functions, compiled together: half of the time to compile a small program is the same for all."""

    def results(lib: Any) -> Any:
        functions = [build(lib, composition) for composition in together]
        arguments = [np.array(composition.argument) for composition in together]
        return lib.jit(lambda *arguments: [f(x) for f, x in zip(functions, arguments, strict=True)])(*arguments)

    with xtrace.enable_x64(True), jax.enable_x64(True):
        try:
            expected = results(jax)
        except (TypeError, AssertionError) as error:
            if not _is_refused_by_jax(error):
                raise
            reject()
        for composition, x, y in zip(together, results(xtrace), expected, strict=True):
            _assert_close(composition, x, y)


def _is_refused_by_jax(error: Exception) -> bool:
    """Whether jax takes a derivative forward where ours is linearized, or maps the cases of a `cond` along unlike axes.

    The second is the gradient of a mapped `cond` with a function of a matrix that has a custom rule in one branch.
    """
    texts = ("forward-mode autodiff (jvp) to a custom_vjp", "select cases must have the same shapes")
    return str(error) == "" or any(text in str(error) for text in texts)


def _assert_close(composition: Composition, got: Any, expected: Any) -> None:
    assert got.shape == (SIZE,)
    assert_same_type(got, expected)
    # tanh bounds results by 1; each transformation multiplies the operations, and their roundings, by a few.
    roundings = 64 * len(composition.operations) * 8 ** len(composition.transformations)
    np.testing.assert_allclose(got, expected, rtol=0, atol=roundings * np.finfo(np.float64).eps)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_each_operation_differentiated_and_mapped(name):
    _compare(Composition((name,), ("grad", "vmap"), _ARGUMENT), False)
    _compare(Composition((name,), ("vmap", "grad", "jvp"), _ARGUMENT), True)


@pytest.mark.parametrize("name", sorted(TRANSFORMATIONS))
def test_each_transformation(name):
    _compare(Composition(("sin", "product"), (name,), _ARGUMENT), False)
    _compare(Composition(("matrix", "choice"), ("vmap", name), _ARGUMENT), True)
    if name != "while_loop":
        _compare(Composition(("quotient",), (name, "grad", "jit"), _ARGUMENT), False)


@pytest.mark.slow
@pytest.mark.drawn(0.5)
@pytest.mark.parametrize("shard", range(12))
def test_stacks_of_transformations(shard: int) -> None:
    """2,040 compositions in all: half of them with --thorough, a tenth in an ordinary run."""

    @examples_of(shard)
    @settings(max_examples=17, deadline=None, suppress_health_check=_HEALTH)
    @given(st.tuples(*[compositions()] * 10))
    def compare(together: Sequence[Composition]) -> None:
        _compare_as_one_program(together)

    compare()


@settings(max_examples=30, deadline=None, suppress_health_check=_HEALTH)
@given(compositions())
def test_stacks_outside_jit(composition: Composition) -> None:
    _compare(composition, jitted=False)
