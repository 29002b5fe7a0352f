"""Grids, triangles, diagonals and flattened positions, compared with jax."""

import jax
import jax.numpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.operands import assert_same

CALLS = [
    "jnp.unravel_index(np.array([0, 5, 11]), (3, 4))", "jnp.unravel_index(5, (3, 4))", "jnp.unravel_index(5, 3)",
    "jnp.unravel_index(np.array([12, -1, -13, 100]), (3, 4))", "jnp.unravel_index(i, [2, 3])",
    "jnp.unravel_index(u, (3, 4))", "jnp.unravel_index(0, ())", "jnp.unravel_index(n, np.array([3, 4]))",
    "jnp.unravel_index(wi, (2, 2))", "jnp.unravel_index(np.float32([-9, -8.5, -1, 0.5, 7.5, 99, np.nan]), (2, 4))",
    "jnp.unravel_index(1.5, (3, 4))", "jnp.unravel_index(np.array([True, False]), (2, 2))",
    "jnp.ravel_multi_index((5, 2), (3, 4), mode='wrap')", "jnp.ravel_multi_index((5, -2), (3, 4), mode='clip')",
    "jnp.ravel_multi_index((n, -n), (3, 4), mode='wrap', order='F')", "jnp.ravel_multi_index((5, 2), (3, 4), 'ignore')",
    "jnp.ravel_multi_index((n, u[:3]), (3, 4), mode='clip', dtype='int8')", "jnp.ravel_multi_index((), ())",
    "jnp.ravel_multi_index((u[:, None], u), (5, 5), mode='clip')", "jnp.ravel_multi_index((1, 2), (3, 4))",
    "jnp.ravel_multi_index((np.array([0, 1]), np.array([2, 3])), (3, 4), order='F')",
    "jnp.ix_(n, u)", "jnp.ix_(n, x[0], v)", "jnp.ix_(z[:, 0])", "jnp.ix_()",
    "jnp.mgrid[0:3, 0:2]", "jnp.mgrid[0:3]", "jnp.mgrid[0:1:5j]", "jnp.mgrid[0:3., 1:2]", "jnp.mgrid[:3]",
    "jnp.mgrid[:]", "jnp.mgrid[0:3:2, 0:1:2j]", "jnp.mgrid[5:1:-1]", "jnp.mgrid[()]", "jnp.ogrid[0:3, 0:2]",
    "jnp.ogrid[0:3]", "jnp.ogrid[0:1:3j, 0:2:0.5]", "jnp.ogrid[0:0]",
    "jnp.r_[1, 2, 3]", "jnp.r_[n, 0, 0, s]", "jnp.r_[0:3]", "jnp.r_[-1:1:6j, 5, 6]", "jnp.r_['0,2', [1, 2], [3, 4]]",
    "jnp.r_['-1', x, x]", "jnp.r_['0,2,0', [1, 2], [3, 4]]", "jnp.r_['1,2,0', [1, 2], [3, 4]]", "jnp.r_['r', v, v]",
    "jnp.r_['c', [1, 2], [3, 4]]", "jnp.r_[x, x]", "jnp.r_['0,3,1', [1, 2], [3, 4]]", "jnp.r_['0,3,-2', v, v]",
    "jnp.r_[1:3, 2.5]", "jnp.r_[2]", "jnp.c_[v, v]", "jnp.c_[x, x]", "jnp.c_['0', x, x]", "jnp.c_[0:3, 0:3]",
    "jnp.c_[1, 2]", "jnp.c_['0,2', v, v]", "jnp.c_['r', v, v]", "jnp.c_['c', v, v]",
    "jnp.c_['1,3', [1, 2], [3, 4]]", "jnp.c_[y, y[:, :, :1]]",
    "jnp.s_[1:3, ...]", "jnp.index_exp[1:3]", "jnp.index_exp[1, 2]", "len(jnp.r_)", "jnp.diag_indices(3)",
    "jnp.diag_indices(3, 3)", "jnp.diag_indices(0)", "jnp.diag_indices(2, 0)", "jnp.diag_indices_from(x[:, :3])",
    "jnp.tril_indices(3)", "jnp.tril_indices(3, 1)", "jnp.tril_indices(2, m=4)", "jnp.tril_indices(0)",
    "jnp.tril_indices(2, 0, 1)", "jnp.triu_indices(3)", "jnp.triu_indices(3, -1)", "jnp.triu_indices(2, m=4)",
    "jnp.triu_indices(2, 5)", "jnp.tril_indices_from(x, 1)", "jnp.triu_indices_from(x)",
    "jnp.mask_indices(3, jnp.tril, size=4)", "jnp.mask_indices(3, jnp.triu, size=6)",
]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("text", [*CALLS, "jnp.mask_indices(3, jnp.triu)", "jnp.mask_indices(3, jnp.tril, 1)"])
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, among=CALLS)


def test_jitted_values_are_those_of_jax():
    check_jitted(CALLS)


ERRORS = [
    ("jnp.unravel_index([1], (3, 4))", TypeError, "unravel_index requires"),
    ("jnp.unravel_index(1j, (3, 4))", TypeError, "unravel_index: indices must be integers or real numbers"),
    ("jnp.unravel_index(1, (2.5, 3))", TypeError, "unravel_index: shape must be"),
    ("jnp.ravel_multi_index((5, 2), (3, 4))", ValueError, "invalid entry in coordinates array for an axis of size 3"),
    ("jnp.ravel_multi_index((1, 2), (3, 4), order='K')", ValueError, "order='K'"),
    ("jnp.ravel_multi_index((1, 2), (3, 4), mode='foo')", ValueError, "mode='foo'"),
    ("jnp.ravel_multi_index((1, 2, 3), (3, 4))", ValueError, "3 arrays, but dims"),
    ("jnp.ravel_multi_index((1.5, 2), (3, 4))", ValueError, "float32 is not an integer type"),
    ("jnp.ravel_multi_index((1, 2), (3, 4), dtype='float32')", ValueError, "float32 is not an integer type"),
    ("jnp.ravel_multi_index((1, 2), (3, 2.5))", TypeError, "dims must be an integer, got 2.5"),
    ("xtrace.jit(lambda a: jnp.ravel_multi_index((a, 2), (3, 4)))(1)", xtrace.errors.ConcretizationTypeError, "wrap"),
    ("jnp.ix_([0, 1])", TypeError, "ix_ requires"),
    ("jnp.ix_(jnp.ones(2, bool))", NotImplementedError, "ix_: boolean"),
    ("jnp.ix_(jnp.ones((2, 2)))", ValueError, r"1-dimensional, got shape \(2, 2\)"),
    ("jnp.mgrid[3]", TypeError, r"mgrid\[...\] takes slices"),
    ("jnp.ogrid[0:3, 2]", TypeError, r"ogrid\[...\] takes slices"),
    ("xtrace.jit(lambda a: jnp.mgrid[0:a])(3)", xtrace.errors.ConcretizationTypeError, "mgrid as the stop"),
    ("jnp.r_['foo', 1]", ValueError, "could not understand directive 'foo'"),
    ("jnp.r_['0,1,2,3', 1]", ValueError, "could not understand"),
    ("jnp.r_[1, '0']", ValueError, "must be placed at the beginning"),
    ("jnp.r_[()]", IndexError, "nothing to join"),
    ("jnp.r_['5', 1]", ValueError, "axis 5 is out of bounds"),
    ("jnp.diag_indices(-1)", ValueError, "n argument to diag_indices must be nonnegative"),
    ("jnp.diag_indices(2, -1)", ValueError, "ndim argument"),
    ("jnp.diag_indices(2.5)", TypeError, "diag_indices: n must be an integer"),
    ("jnp.diag_indices_from(jnp.ones((2, 3)))", ValueError, r"equal length, got shape \(2, 3\)"),
    ("jnp.diag_indices_from(jnp.ones(2))", ValueError, "at least 2-d"),
    ("jnp.tril_indices(-1)", TypeError, "tril_indices: n and m must not be negative"),
    ("jnp.triu_indices(2.5)", TypeError, "triu_indices: n must be an integer"),
    ("jnp.triu_indices(2, k=0.5)", TypeError, "triu_indices: k must be an integer"),
    ("jnp.tril_indices_from(jnp.ones(2))", ValueError, r"2-D inputs are accepted, got shape \(2,\)"),
    ("jnp.mask_indices(2.5, jnp.tril)", TypeError, "mask_indices: n"),
    ("xtrace.jit(lambda: jnp.mask_indices(3, jnp.tril))()", xtrace.errors.ConcretizationTypeError, "size="),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "xtrace": xtrace})


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.lists(st.integers(-50, 50), max_size=5), st.data())
@settings(max_examples=10)
def test_positions_and_indices_of_any_shape(shape, places, data):
    array = np.array(places, np.int32)
    found = jnp.unravel_index(array, tuple(shape))
    assert_same(found, jax.numpy.unravel_index(array, tuple(shape)))
    indices = [data.draw(st.integers(-9, 9)) for _ in shape]
    for mode in ("wrap", "clip"):
        for order in ("C", "F"):
            got = jnp.ravel_multi_index(indices, shape, mode, order)
            assert int(got) == np.ravel_multi_index(indices, shape, mode, order)
