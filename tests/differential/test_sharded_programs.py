"""Random programs on meshes give what `jax.jit` gives: values, output shardings, and types on explicit axes."""

from __future__ import annotations

import jax
import pytest
from hypothesis import HealthCheck, given, settings

import xtrace
from tests.differential import sharded_programs
from tests.differential.test_programs import compare_results, results_of_jax
from tests.support.shards import examples_of

_OURS, _THEIRS = sharded_programs.library(xtrace), sharded_programs.library(jax)
_HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(12))
def test_sharded_programs(shard: int) -> None:
    """1,080 programs in all."""

    @examples_of(shard)
    @settings(max_examples=9, deadline=None, suppress_health_check=_HEALTH)
    @given(sharded_programs.groups(10))
    def compare(group: sharded_programs.Group) -> None:
        other, mine = sharded_programs.Run(_THEIRS, group), sharded_programs.Run(_OURS, group)
        theirs, ours = results_of_jax(other), mine()
        assert mine.seen == other.seen
        for got, expected, sharded in zip(ours, theirs, group.together, strict=True):
            compare_results(got, expected, sharded.program)
            pairs = zip(xtrace.tree.leaves(got), jax.tree.leaves(expected), strict=True)
            for x, y in pairs:
                assert repr(x.sharding) == repr(y.sharding)

    compare()
