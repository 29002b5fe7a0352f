"""Random programs on meshes give what `jax.jit` gives: values, output shardings, and types on explicit axes."""

from __future__ import annotations

from typing import Any

import jax
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import xtrace
from tests.differential import sharded_programs
from tests.differential.test_programs import compare_results, results_of_jax
from tests.support.shards import examples_of

pytestmark = pytest.mark.thorough

_OURS, _THEIRS = sharded_programs.library(xtrace), sharded_programs.library(jax)
_HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(12))
def test_sharded_programs(shard: int) -> None:
    """1,080 programs in all, a tenth of them in an ordinary run."""

    @examples_of(shard)
    @settings(max_examples=9, phases=[Phase.generate], deadline=None, suppress_health_check=_HEALTH)
    @given(sharded_programs.groups(10))
    def compare(group: sharded_programs.Group) -> None:
        other = sharded_programs.Run(_THEIRS, group)
        theirs = results_of_jax(other)
        mine = sharded_programs.Run(_OURS, group, other.refused)
        ours = mine()
        assert mine.seen == other.seen
        assert mine.refused == other.refused
        for got, expected, sharded in zip(ours, theirs, group.together, strict=True):
            compare_results(got, expected, sharded.program)
            for x, y in zip(xtrace.tree.leaves(got), jax.tree.leaves(expected), strict=True):
                assert _pieces(x) == _pieces(y)

    compare()


def _pieces(x: Any) -> list[str]:
    """Return the piece that each device has."""
    return [f"{device.id}: {index}" for device, index in x.sharding.devices_indices_map(x.shape).items()]
