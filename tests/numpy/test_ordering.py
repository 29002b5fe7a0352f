"""Partitions, sorting by several keys, and places in sorted sequences, compared with jax."""

import jax
import numpy as np
import pytest

import xtrace.lax
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.rules import check_rules

CASES = [
    "jnp.partition(v, 1)", "jnp.partition(x, -2, axis=0)", "jnp.partition(y * q, 2)",
    "jnp.argpartition(y * q, 1, axis=2)", "jnp.argpartition(u, 2)", "jnp.partition(u, 2)", "jnp.argpartition(x, -1)",
    "jnp.lexsort((v, v))", "jnp.lexsort((q, v))", "jnp.lexsort(x)", "jnp.lexsort((2, 3))",
    "jnp.lexsort((x, i, b), axis=0)", "jnp.sort_complex(n)", "jnp.sort_complex(c)", "jnp.sort_complex(h)",
    "jnp.sort_complex(b)", "jnp.searchsorted(v, x, 'right')", "jnp.searchsorted(v, 2)", "jnp.searchsorted(u, v)",
    "jnp.searchsorted(jnp.ones(0), v)", "jnp.searchsorted(jnp.sort(q), q)",
    "jnp.searchsorted(v, q, 'right', method='compare_all')", "jnp.searchsorted(v, q, method='compare_all')",
    "jnp.searchsorted(v, q, 'right', method='sort')", "jnp.searchsorted(v, x, method='sort')",
    "jnp.searchsorted(v, x, method='scan_unrolled')", "jnp.searchsorted(v[::-1], x, sorter=n + 1)",
    "jnp.searchsorted(jnp.sort(c[0]), c)", "jnp.searchsorted(b[0] * False, True)",
    "jnp.searchsorted(jnp.array([0., -0.]), -0.0)", "jnp.searchsorted(i[0], 300)", "jnp.searchsorted(v, z)",
    "jnp.digitize(x, v)", "jnp.digitize(x, v[::-1])", "jnp.digitize(x, v, right=True)",
    "jnp.digitize(x, v[::-1], right=True)", "jnp.digitize(i, v)", "jnp.digitize(2, v)",
    "jnp.digitize(x, jnp.ones(0))", "jnp.digitize(x, v[:1], method='sort')",
]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("text", CASES)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, 4, among=CASES)


def test_jitted_values_are_those_of_jax():
    check_jitted(CASES[::4], 4)


@pytest.mark.slow
def test_rules():
    modules = {xtrace.lax: jnp, jax.lax: jax.numpy}
    x = np.array([[1.5, 4.0, -3.0, 2.5], [0.5, 3.0, -1.0, 7.0]], np.float32)

    def several(lax, x):
        library = modules[lax]
        return [
            library.partition(x, 2),
            library.argpartition(x, 1),
            library.searchsorted(x[0], x),
            library.partition(x, 0, 0),
        ]

    check_rules(several, x, second=False, rounding=64)


ERRORS = [
    ("jnp.partition(v, 4)", ValueError, "partition: kth=4 is out of bounds for axis 0 of length 4"),
    ("jnp.partition(v, 1.5)", TypeError, "partition: kth must be an integer"),
    ("jnp.argpartition(c, 1)", NotImplementedError, "argpartition: complex numbers have no order"),
    ("jnp.argpartition(x, 1, axis=4)", ValueError, "argpartition: axis 4 is out of bounds"),
    ("jnp.lexsort(())", TypeError, "lexsort: need a sequence of keys"),
    ("jnp.lexsort((v, n))", ValueError, "lexsort: all keys must have one shape"),
    ("jnp.lexsort(jnp.ones(()))", TypeError, "lexsort: keys must be a sequence"),
    ("jnp.sort_complex(2)", ValueError, "sort_complex: axis -1 is out of bounds"),
    ("jnp.searchsorted(v, v, 'foo')", ValueError, "side must be 'left' or 'right', got 'foo'"),
    ("jnp.searchsorted(v, v, method='foo')", ValueError, "method must be one of .* got 'foo'"),
    ("jnp.searchsorted(x, v)", ValueError, "a should be 1-dimensional, got shape"),
    ("jnp.searchsorted(v, [1])", TypeError, "searchsorted requires ndarray or scalar arguments; argument 1"),
    ("jnp.searchsorted(v, v, sorter=v)", TypeError, "sorter must have an integer type, got float32"),
    ("jnp.digitize(v, x)", ValueError, "digitize: bins must be a 1-dimensional array; got shape"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    names = {"x": jnp.arange(12.0).reshape(3, 4), "v": jnp.arange(4.0), "n": jnp.arange(3), "c": jnp.ones(3, complex)}
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "np": np, **names})
