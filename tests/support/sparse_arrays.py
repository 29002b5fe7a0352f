"""Sparse arrays of both packages, and their comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.experimental.sparse
import numpy as np

import xtrace
import xtrace.experimental.sparse


class Package:
    """One of the two packages under the names that cases use."""

    def __init__(self, api: Any) -> None:
        self.api, self.np, self.lax, self.sparse = api, api.numpy, api.lax, api.experimental.sparse


OURS, THEIRS = Package(xtrace), Package(jax)
_FIELDS = ("nse", "n_batch", "n_dense")


def draw(shape: tuple[int, ...], seed: int = 0, dtype: Any = np.float32, share: float = 0.5) -> Any:
    """Return an array in which a share of the elements, all of them small integers, is not zero."""
    generator = np.random.default_rng(seed)
    values = generator.integers(1, 6, shape) * generator.choice([-1, 1], shape)
    return (values * (generator.random(shape) < share)).astype(dtype)


def facts_of(package: Package, value: Any) -> Any:
    """Return what is to be compared of a result: for a sparse array its layout and its elements."""
    if isinstance(value, package.sparse.JAXSparse):
        known = [(name, getattr(value, name)) for name in _FIELDS if hasattr(value, name)]
        return [type(value).__name__, tuple(value.shape), known, np.asarray(value.todense())]
    if isinstance(value, dict):
        return {name: facts_of(package, x) for name, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [facts_of(package, x) for x in value]
    return np.asarray(value)


def assert_facts(found: Any, expected: Any, rounding: float = 16) -> None:
    """Assert that facts agree, floats to some units of their spacing."""
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype and found.shape == expected.shape, (found, expected)
        if expected.dtype.kind in "fc":
            tolerance = rounding * np.finfo(expected.dtype).eps
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(found, expected)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            assert_facts(found[name], expected[name], rounding)
    elif isinstance(expected, list):
        assert len(found) == len(expected), (found, expected)
        for mine, other in zip(found, expected, strict=True):
            assert_facts(mine, other, rounding)
    else:
        assert found == expected


def compare(case: Callable[[Package], Any], rounding: float = 16) -> None:
    """Assert that ``case(package)`` has the same result in both packages."""
    assert_facts(facts_of(OURS, case(OURS)), facts_of(THEIRS, case(THEIRS)), rounding)


def compare_programs(case: Callable[..., Any], make: Callable[[Package], Any], rounding: float = 16) -> None:
    """Assert that ``case(package, operand)`` under jit has the same result in both packages, for ``make(package)``.

    One program is compiled much faster than the operations one by one.
    """

    def run(package: Package) -> Any:
        operand = make(package)
        return facts_of(package, package.api.jit(lambda x: case(package, x))(operand))

    assert_facts(run(OURS), run(THEIRS), rounding)
