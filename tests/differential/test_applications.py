"""Whole programs give jax's values and derivatives, from texts and compiled programs no larger than jax's."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import xtrace
from benchmarks.applications import APPLICATIONS, build
from benchmarks.compiled import instructions, temporary_bytes
from tests.support.operands import assert_same_type, epsilon

pytestmark = pytest.mark.slow

# XLA assigns buffers greedily, so equal programs whose operations come in another order may differ a little.
SLACK = 1.05


class Outcome(NamedTuple):
    """What became of a program: leaves and tree of its results, lines of its text, and the compiled program."""

    leaves: list[Any]
    tree: str
    lines: int
    compiled: Any


@functools.cache
def outcome(root: Any, name: str) -> Outcome:
    """Trace, lower, compile and run the program of that name."""
    application = build(root, name)
    lowered = root.jit(application.function).lower(*application.arguments)
    compiled = lowered.compile()
    leaves, tree = root.tree_util.tree_flatten(compiled(*application.arguments))
    return Outcome(leaves, str(tree), len(lowered.as_text().splitlines()), compiled)


@pytest.fixture(autouse=True, scope="module")
def outcomes_freed():
    yield
    outcome.cache_clear()


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", APPLICATIONS)
def test_values_and_derivatives_are_jax_s(name):
    ours, theirs = outcome(xtrace, name), outcome(jax, name)
    assert ours.tree == theirs.tree
    for number, (x, y) in enumerate(zip(ours.leaves, theirs.leaves, strict=True)):
        assert_same_type(x, y, f"leaf {number}")
        got, wanted = np.asarray(x), np.asarray(y)
        assert np.isfinite(wanted).all()
        size = np.max(np.abs(wanted), initial=0)
        allowed = build(xtrace, name).roundings * (epsilon(y.dtype) or 0) * size
        np.testing.assert_allclose(got, wanted, rtol=0, atol=allowed, err_msg=f"leaf {number}")


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", APPLICATIONS)
def test_text_has_no_more_lines(name):
    assert outcome(xtrace, name).lines <= outcome(jax, name).lines


# Training draws random numbers thrice. Their hash is written out here and a loop in jax: more instructions, less time.
@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", [name for name in APPLICATIONS if name != "trained perceptron"])
def test_compiled_program_has_no_more_instructions(name):
    assert instructions(outcome(xtrace, name).compiled) <= SLACK * instructions(outcome(jax, name).compiled)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", APPLICATIONS)
def test_compiled_program_needs_no_more_memory(name):
    assert temporary_bytes(outcome(xtrace, name).compiled) <= SLACK * temporary_bytes(outcome(jax, name).compiled)
