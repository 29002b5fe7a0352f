"""Segment reductions against jax.ops."""

import jax
import jax.ops
import numpy as np
import pytest

import xtrace
import xtrace.ops
from tests.support.operands import ALL, assert_same, finite_values, ours, theirs

NAMES = ["segment_sum", "segment_prod", "segment_max", "segment_min"]
IDS = np.array([0, 1, 1, 2, -1, 7], np.int32)
OPTIONS = [{}, {"bucket_size": 2}, {"bucket_size": 4}, {"mode": "clip"}, {"mode": "promise_in_bounds"}]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", NAMES)
def test_values(name):
    def case(library, *operands):
        found = {}
        for x in operands:
            for i, keywords in enumerate(OPTIONS):
                found[f"{x.dtype} {x.shape} {i}"] = getattr(library.ops, name)(x, IDS, 4, **keywords)
        return found

    kinds = [d for d in ALL if d.kind != "b" or name in ("segment_max", "segment_min")]
    operands = [finite_values(d, (6,), 1) for d in kinds] + [finite_values(np.float32, (6, 2, 3), 2)]
    expected = jax.jit(lambda *a: case(jax, *a))(*map(theirs, operands))
    assert_same(xtrace.jit(lambda *a: case(xtrace, *a))(*map(ours, operands)), expected, 16)


@pytest.mark.parametrize("name", NAMES)
def test_eager(name):
    """The number of segments from the numbers themselves; sorted and unique ones; a scalar."""
    x = finite_values(np.float32, (3, 2), 3)
    for ids, keywords in (([2, 0, 0], {}), ([0, 1, 3], {"indices_are_sorted": True, "unique_indices": True})):
        ids = np.array(ids, np.int32)
        got = getattr(xtrace.ops, name)(ours(x), ours(ids), **keywords)
        assert_same(got, getattr(jax.ops, name)(theirs(x), theirs(ids), **keywords))
    assert_same(getattr(xtrace.ops, name)(2.0, 1, 3), getattr(jax.ops, name)(2.0, 1, 3))


@pytest.mark.parametrize("keywords", [{}, {"bucket_size": 2}])
@pytest.mark.parametrize("name", NAMES)
def test_data_is_broadcast_to_ids(name, keywords):
    """One row for several ids, and ids of several axes."""
    ids = np.array([[0, 1, 1], [2, -1, 0]], np.int32)

    def case(library, convert):
        function = getattr(library.ops, name)
        rows = [(2.0, IDS), (np.ones(1, np.float32), IDS), (finite_values(np.float32, (1, 2), 3), IDS)]
        # jax has no buckets of ids of several axes.
        several = [] if keywords else [(finite_values(np.float32, shape, 4), ids) for shape in ((3,), (3, 3), (1, 3))]
        return [function(convert(x), ids, 4, **keywords) for x, ids in [*rows, *several]]

    assert_same(case(xtrace, ours), case(jax, theirs))


def test_derivatives():
    x = finite_values(np.float32, (6, 2), 5)

    def case(library, api, x):
        def scalar(name):
            return lambda x: (getattr(library, name)(x, IDS, 4, mode="drop")[:3] ** 2).sum()

        return [(api.grad(scalar(n))(x), api.vmap(scalar(n), 1)(x[:, :, None])) for n in NAMES if n != "segment_prod"]

    # Products have no derivative where numbers come twice, in jax neither.
    assert_same(xtrace.jit(lambda x: case(xtrace.ops, xtrace, x))(ours(x)),
                jax.jit(lambda x: case(jax.ops, jax, x))(theirs(x)), 64)


@pytest.mark.parametrize("name", NAMES)
def test_errors(name):
    function, x = getattr(xtrace.ops, name), np.ones(6, np.float32)
    for error, words, arguments in (
        (ValueError, "num_segments must be non-negative, got -1", (x, IDS, -1)),
        (ValueError, r"segment_ids.* the shape \(3,\), and data \(6,\) does not broadcast", (x, IDS[:3], 4)),
        (ValueError, "no segment_ids", (x[:0], IDS[:0])),
        (TypeError, "segment_ids must be integers, got f32", (x, x, 4)),
        (TypeError, "num_segments must be an integer, got 2.5", (x, IDS, 2.5)),
        (TypeError, f"{name} requires ndarray", ([1.0], IDS, 2)),
    ):
        with pytest.raises(error, match=words):
            function(*arguments)
    with pytest.raises(ValueError, match="mode"):
        function(x, IDS, 4, mode="foo")
    with pytest.raises(ValueError, match="bucket_size must be positive"):
        function(x, IDS, 4, bucket_size=0)
    with pytest.raises(xtrace.errors.ConcretizationTypeError, match=f"{name}: num_segments is not given"):
        xtrace.jit(lambda ids: function(x, ids))(IDS)
    with pytest.raises(xtrace.errors.ConcretizationTypeError, match="argument num_segments"):
        xtrace.jit(lambda n: function(x, IDS, n))(4)
