"""Random programs on sharded arrays give what `jax.jit` gives: values, types, and the shardings of results."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import xtrace
from tests.differential import programs
from tests.differential.test_programs import _compare, _results_of_jax
from tests.sharding.meshes import OURS, THEIRS
from tests.support.shards import examples_of

_HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
SHAPES = [(), (8,), (4,), (2, 4), (4, 1), (1, 8), (4, 4), (8, 8), (0, 4), (2, 1, 4), (4, 2, 2), (3, 4)]
MESHES = {"x8": {"x": 8}, "x4y2": {"x": 4, "y": 2}, "x2y2z2": {"x": 2, "y": 2, "z": 2}}


@st.composite
def specs(draw: Any, shape: tuple[int, ...], axes: dict[str, int]) -> tuple[Any, ...]:
    """A specification of an array of this shape; its dimensions are multiples of their numbers of shards."""
    free, entries = dict(axes), []
    for size in shape:
        fitting = [name for name, parts in free.items() if size % parts == 0]
        entry = draw(st.sampled_from([None, *fitting]))
        if entry is not None:
            size //= free.pop(entry)
            more = [name for name, parts in free.items() if size % parts == 0]
            second = draw(st.sampled_from([None, *more])) if more else None
            if second is not None:
                del free[second]
                entry = (entry, second)
        entries.append(entry)
    return tuple(entries)


@st.composite
def sharded_programs(draw: Any) -> Any:
    """A mesh, and programs with a specification for each input, None for one that stays on the host."""
    mesh = draw(st.sampled_from(list(MESHES)))
    together = draw(st.tuples(*[programs.programs(shapes=SHAPES)] * 10))
    places = [
        tuple([
            draw(st.one_of(st.none(), specs(np.shape(x), MESHES[mesh]))) if isinstance(x, np.ndarray) else None
            for x in program.inputs
        ])
        for program in together
    ]
    return mesh, together, places


def _jitted(side: Any, lib: Any, mesh: str, together: Any, places: Any, kind: str = "Auto") -> Any:
    def function(repeats, *arguments):
        return [programs.run(lib, *one) for one in zip(together, arguments, repeats, strict=True)]

    arguments = [
        [
            x if spec is None else side.put(x, side.named(mesh, *spec, kind=kind))
            for x, spec in zip(p.inputs, row, strict=True)
        ]
        for p, row in zip(together, places, strict=True)
    ]
    repeats = tuple([program.repeats for program in together])
    return side.jit(function, static_argnums=0)(repeats, *arguments)


def _describe(sharding: Any) -> str:
    """Return the text of a sharding; entries of None at its end are jax's for results that depend on a sharded input."""
    return re.sub(r"\((None, )*None,?\)", "()", re.sub(r"(, None)+\)", ",)", repr(sharding)))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(12))
def test_sharded_programs(shard: int) -> None:
    """2,040 programs in all."""

    @examples_of(shard)
    @settings(max_examples=17, deadline=None, suppress_health_check=_HEALTH)
    @given(sharded_programs())
    def compare(drawn: Any) -> None:
        mesh, together, places = drawn
        ours = _jitted(OURS, programs.library(xtrace), mesh, together, places)
        theirs = _results_of_jax(lambda: _jitted(THEIRS, programs.library(jax), mesh, together, places))
        for one, other, program in zip(ours, theirs, together, strict=True):
            _compare(one, other, program)
            pairs = zip(xtrace.tree_util.tree_leaves(one), jax.tree_util.tree_leaves(other), strict=True)
            for x, y in pairs:
                assert _describe(x.sharding) == _describe(y.sharding), program

    compare()
