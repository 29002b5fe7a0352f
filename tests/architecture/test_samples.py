"""Runs draw a part of costly tables and files by the commit; runs of named files take all."""

from types import SimpleNamespace

import pytest

from tests.support.sampling import Sample, sample_of


def _items(**markers):
    found = {name: SimpleNamespace(args=args) for name, args in markers.items()}
    return [SimpleNamespace(nodeid=f"test[{i}]", get_closest_marker=found.get) for i in range(1000)]


def test_each_seed_draws_a_part_of_its_own():
    first, second = ([item.nodeid for item in _items(drawn=(0.3,)) if item in Sample(1.0, seed)] for seed in "ab")
    assert all(250 < len(drawn) < 350 for drawn in (first, second)) and first != second
    assert all(item in Sample(1.0, "a") for item in _items())
    assert all(item in Sample(1.0, "a", whole_tables=True) for item in _items(drawn=(0.3,)))


@pytest.mark.parametrize(("part", "expected"), [(1.0, 100), (0.1, 100), (0.02, 20)])
def test_thorough_files_are_a_tenth_at_most(part, expected):
    taken = [item for item in _items(thorough=()) if item in Sample(part, "a")]
    assert 0.6 * expected < len(taken) < 1.4 * expected
    assert all(item in Sample(1.0, "a", whole_files=True) for item in _items(thorough=()))


@pytest.mark.parametrize(
    ("arguments", "whole"),
    [(["tests"], False), (["tests/rules"], False), (["tests/rules/test_loop_rules.py"], True),
     (["tests", "tests/ops/test_fft.py::test_rules"], True)],
)
def test_files_that_are_named_are_whole(arguments, whole):
    options = {"sample": 1.0, "sample_seed": "a", "whole_tables": False, "thorough": False}
    sample = sample_of(SimpleNamespace(args=arguments, getoption=options.get))
    assert sample.whole_tables == sample.whole_files == whole
