"""Stacks of transformations give what jax gives."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings

import xtrace
import xtrace.numpy
from tests.differential.compositions import OPERATIONS, SIZE, TRANSFORMATIONS, Composition, build, compositions
from tests.support.operands import assert_same_type
from tests.support.shards import examples_of

_HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large]
_ARGUMENT = (0.3, -0.7, 1.1)


def _compare(composition: Composition, jitted: bool) -> None:
    with xtrace.enable_x64(True), jax.enable_x64(True):
        x = np.array(composition.argument)
        assert x.shape == (SIZE,)
        ours, theirs = build(xtrace, composition), build(jax, composition)
        got = xtrace.jit(ours)(x) if jitted else ours(xtrace.numpy.asarray(x))
        try:
            expected = jax.jit(theirs)(x)
        except TypeError as error:
            # jax takes some derivatives forward where ours are linearized.
            if "forward-mode autodiff (jvp) to a custom_vjp" not in str(error):
                raise
            reject()
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
@pytest.mark.parametrize("shard", range(4))
def test_stacks_of_transformations(shard: int) -> None:
    @examples_of(shard)
    @settings(max_examples=500, deadline=None, suppress_health_check=_HEALTH)
    @given(compositions())
    def compare(composition: Composition) -> None:
        _compare(composition, jitted=True)

    compare()


@settings(max_examples=30, deadline=None, suppress_health_check=_HEALTH)
@given(compositions())
def test_stacks_outside_jit(composition: Composition) -> None:
    _compare(composition, jitted=False)
