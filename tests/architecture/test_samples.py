"""Runs draw a part of costly tables by the commit; runs of named files take all rows."""

from types import SimpleNamespace

import pytest

from tests.support.sampling import Sample, sample_of


def _items(part=None):
    marker = None if part is None else SimpleNamespace(args=(part,))
    return [SimpleNamespace(nodeid=f"test[{i}]", get_closest_marker=lambda _: marker) for i in range(1000)]


def test_each_seed_draws_a_part_of_its_own():
    first, second = ([item.nodeid for item in _items(0.3) if item in Sample(1.0, seed, False)] for seed in "ab")
    assert all(250 < len(drawn) < 350 for drawn in (first, second)) and first != second
    assert all(item in Sample(1.0, "a", False) for item in _items())
    assert all(item in Sample(1.0, "a", True) for item in _items(0.3))


@pytest.mark.parametrize(
    ("arguments", "whole"),
    [(["tests"], False), (["tests/rules"], False), (["tests/rules/test_loop_rules.py"], True),
     (["tests", "tests/ops/test_fft.py::test_rules"], True)],
)
def test_files_that_are_named_are_whole(arguments, whole):
    options = {"sample": 1.0, "sample_seed": "a", "whole_tables": False}
    assert sample_of(SimpleNamespace(args=arguments, getoption=options.get)).whole_tables == whole
