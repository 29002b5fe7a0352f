"""Dot, matmul, tensordot and the others, compared with jax."""

import jax
import jax.numpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.operands import (
    COMPLEX,
    FLOAT,
    INTEGER,
    assert_same,
    assert_same_type,
    dtypes_in,
    finite_values,
    ours,
    seeds,
    theirs,
)

PRODUCTS = [
    "jnp.dot(x, v)", "jnp.dot(x, x.T)", "jnp.dot(v, v)", "jnp.dot(x, 2)", "jnp.dot(2, 3)", "jnp.dot(w, w)",
    "jnp.dot(w, 2)", "jnp.dot(x, w)", "jnp.dot(i, x.T)", "jnp.dot(h, v)", "jnp.dot(h, h.T)", "jnp.dot(b, b.T)",
    "jnp.dot(b.T, n)", "jnp.dot(i[:, :1], u[None])", "jnp.dot(y, y[0].T)", "jnp.dot(y, jnp.ones((5, 4, 2)))",
    "jnp.dot(v, y.swapaxes(1, 2))", "jnp.dot(c, c.T)", "jnp.dot(c, 1j)", "x.dot(v)",
    "jnp.dot(i, i.T, preferred_element_type=jnp.int32)", "jnp.dot(x, x.T, preferred_element_type=jnp.bfloat16)",
    "jnp.dot(x, v, precision='highest')", "jnp.dot(x, v, precision=lax.Precision.HIGH)",
    "jnp.dot(x, v, precision=('default', 'high'))", "jnp.dot(z, z.T)", "jnp.dot(z.T, z)",
    "jnp.dot(jnp.full((2,), 1.0), jnp.full((2,), 1.0))", "x @ v", "x @ x.T", "v @ x.T", "y @ v",
    "v @ y.swapaxes(1, 2)", "y @ x.T", "y @ y.swapaxes(1, 2)", "np.ones((2, 3), 'f') @ x", "x @ np.ones((4, 2))",
    "h @ x.T", "b @ b.T", "jnp.matmul(jnp.ones((1, 3, 4)), jnp.ones((5, 4, 2)))",
    "jnp.matmul(jnp.ones((5, 1, 3, 4)), jnp.ones((6, 4, 2)))",
    "jnp.matmul(jnp.ones((5, 1, 3, 4)), jnp.ones((1, 6, 4, 2)))", "jnp.matmul(jnp.ones((2, 0, 3)), jnp.ones((3, 4)))",
    "jnp.matmul(v, jnp.ones((5, 4, 2)))", "jnp.matmul(jnp.ones((1, 1, 2)), jnp.ones((1, 2, 3)))",
    "jnp.matmul(jnp.full((2,), 1.0), jnp.full((2,), 1))", "jnp.matmul(jnp.full((2,), 1.0), n[:2])",
    "jnp.matmul(i, i.T, preferred_element_type=int)", "jnp.vdot(x, x)", "jnp.vdot(c, c)", "jnp.vdot(w, w)",
    "jnp.vdot(x, np.ones(12))", "jnp.inner(x, x)", "jnp.inner(2, x)", "jnp.inner(v, y)", "jnp.inner(w, w)",
    "jnp.inner(2.5, i, preferred_element_type=jnp.int32)",
    "jnp.outer(x, v)", "jnp.outer(w, w)", "jnp.outer(i, n)", "jnp.outer(2, v)", "jnp.tensordot(x, x)",
    "jnp.tensordot(x, x, 2)", "jnp.tensordot(x, x, 0)", "jnp.tensordot(x, x.T, 1)", "jnp.tensordot(x, x, (0, 0))",
    "jnp.tensordot(y, x, ((1, 2), (0, 1)))", "jnp.tensordot(y, x, ([-1, 1], [1, 0]))", "jnp.tensordot(w, x, 0)",
    "jnp.vecdot(x, v)", "jnp.vecdot(c, c)", "jnp.vecdot(x, y)", "jnp.vecdot(x, x, axis=0)",
    "jnp.vecdot(x, v[:3], axis=0)", "jnp.matvec(x, v)", "jnp.matvec(y, x[:2])", "jnp.vecmat(v[:3], x)",
    "jnp.vecmat(c[:, :2], c)", "jnp.trace(x)", "x.trace()", "jnp.trace(i, 1)", "jnp.trace(y, axis1=0, axis2=2)",
    "jnp.trace(b)", "jnp.trace(h, -1)", "jnp.trace(c)", "jnp.trace(x, n[0])", "jnp.trace(x, dtype=int)",
]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("text", PRODUCTS)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, among=PRODUCTS)


def test_jitted_values_are_those_of_jax():
    check_jitted(PRODUCTS)


ERRORS = [
    ("jnp.dot(x, x)", TypeError, r"dot requires contracting dimensions to have the same shape, got \(4,\) and \(3,\)"),
    ("jnp.dot(x, [1, 2, 3, 4])", TypeError, "dot requires ndarray or scalar arguments; argument 1"),
    ("jnp.dot(x, v, precision='nothing')", ValueError, "precision 'nothing'"),
    ("jnp.dot(x, v, preferred_element_type='nothing')", TypeError, "dot: 'nothing' is not a dtype"),
    ("jnp.dot(x, v, out_sharding=3)", TypeError, "dot: out_sharding leaf specifications"),
    ("jnp.matmul(x, x)", TypeError, r"matmul requires contracting dimensions .* \(4,\) and \(3,\)"),
    ("jnp.matmul(x, 2)", ValueError, "matmul input operand 1 must have ndim at least 1"),
    ("2 @ x", ValueError, "matmul input operand 0 must have ndim at least 1"),
    ("jnp.matmul(jnp.ones((2, 3, 4)), jnp.ones((3, 4, 2)))", ValueError, "leading axes do not broadcast"),
    ("x @ [1, 2, 3, 4]", TypeError, "unsupported operand for @: .*list"),
    ("'a' @ x", TypeError, "unsupported operand for @"),
    ("x @ object()", TypeError, "unsupported operand type"),
    ("jnp.vdot(x, v)", TypeError, r"got \(12,\) and \(4,\)"),
    ("jnp.inner(x, jnp.ones(3))", TypeError, "inner requires contracting dimensions"),
    ("jnp.outer(x, v, out=x)", NotImplementedError, "outer"),
    ("jnp.tensordot(x, x, 3)", TypeError, "number of axes"),
    ("jnp.tensordot(x, x, ((0,), (0, 1)))", TypeError, "equal length"),
    ("jnp.tensordot(x, x, (5, 0))", ValueError, "tensordot: axis 5 is out of bounds for array of dimension 2"),
    ("jnp.tensordot(x, x, (0, 1, 2))", TypeError, "an integer or a pair"),
    ("jnp.vecdot(x, jnp.ones(3))", ValueError, "axes must match"),
    ("jnp.matvec(v, v)", ValueError, "matvec: argument 0 must have ndim at least 2"),
    ("jnp.trace(x, 1.0)", TypeError, "trace: offset must be an integer, got 1.0"),
    ("jnp.trace(v)", ValueError, "trace: axis 1 is out of bounds for array of dimension 1"),
    ("jnp.trace(x, axis1=0, axis2=0)", ValueError, "can not be same"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "x": jnp.ones((3, 4)), "v": jnp.ones(4)})


def test_dot_is_the_jaxpr_of_the_specification():
    """Spec 1.1."""
    x, y = jnp.ones((3, 4)), jnp.ones(4)
    assert str(xtrace.make_jaxpr(lambda x, y: jnp.dot(x + 1, y + 1))(x, y)) == (
        "{ lambda ; a:f32[3,4] b:f32[4]. let\n"
        "    c:f32[3,4] = add a 1.0\n"
        "    d:f32[4] = add b 1.0\n"
        "    e:f32[3] = dot_general[\n"
        "      dimension_numbers=(([1], [0]), ([], []))\n"
        "      preferred_element_type=float32\n"
        "    ] c d\n"
        "  in (e,) }"
    )


@st.composite
def factors(draw):
    """Draw the shapes of two operands of matmul that go together."""
    inner, outer = draw(st.integers(0, 4)), [draw(st.integers(0, 3)) for _ in range(2)]
    batch = draw(st.lists(st.integers(0, 3), max_size=2))
    found = []
    for side in (0, 1):
        kept = draw(st.lists(st.booleans(), min_size=len(batch), max_size=len(batch)))
        own = [n if keep else 1 for n, keep in zip(batch, kept, strict=True)][draw(st.integers(0, len(batch))) :]
        core = [outer[0], inner] if side == 0 else [inner, outer[1]]
        vector = not own and draw(st.booleans())
        found.append((inner,) if vector else tuple(own + core))
    return found


def assert_products_agree(got, expected, terms):
    """Assert agreement in type, and in value to the error of a sum of so many terms of size 16."""
    assert_same_type(got, expected)
    if jax.numpy.issubdtype(expected.dtype, jax.numpy.inexact):
        scale = np.asarray(16 * max(terms, 1)).astype(expected.dtype)
        assert_same(got + scale, expected + scale, 4 * max(terms, 1))
    else:
        assert_same(got, expected)


@pytest.mark.drawn(0.3)
@given(factors(), dtypes_in([*FLOAT, *INTEGER, *COMPLEX]), dtypes_in([*FLOAT, *INTEGER]), seeds)
@settings(max_examples=60)
def test_matmul_of_any_shapes_and_types(pair, left, right, seed):
    one, other = finite_values(left, pair[0], seed), finite_values(right, pair[1], seed + 1)
    terms = one.shape[-1]
    got = jnp.matmul(ours(one), ours(other))
    assert_products_agree(got, jax.numpy.matmul(theirs(one), theirs(other)), terms)
    if one.ndim <= 2 and other.ndim <= 2:
        assert_products_agree(jnp.dot(ours(one), ours(other)), jax.numpy.dot(theirs(one), theirs(other)), terms)
    jitted = xtrace.jit(jnp.matmul)(ours(one), ours(other))
    assert_products_agree(jitted, jax.numpy.matmul(theirs(one), theirs(other)), terms)


@pytest.mark.drawn(0.3)
@given(st.data())
@settings(max_examples=40)
def test_tensordot_over_any_axes(data):
    shape = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    first = list(data.draw(st.permutations(range(len(shape)))))[: data.draw(st.integers(0, len(shape)))]
    rest = data.draw(st.lists(st.integers(1, 3), max_size=2))
    order = data.draw(st.permutations(range(len(first) + len(rest))))
    sizes = [shape[i] for i in first] + rest
    second = [order.index(n) for n in range(len(first))]
    seed = data.draw(seeds)
    values = finite_values(np.float32, shape, seed), finite_values(np.float32, [sizes[n] for n in order], seed + 1)
    terms = int(np.prod([shape[i] for i in first]))
    got = jnp.tensordot(*map(ours, values), (first, second))
    assert_products_agree(got, jax.numpy.tensordot(*map(theirs, values), (first, second)), terms)


def test_a_large_product_runs():
    """Spec 4.4, at a size that a test can afford."""
    x = jnp.array(np.random.default_rng(0).normal(size=(500, 500)).astype(np.float32))
    got = np.asarray(jnp.dot(x, x).block_until_ready())
    assert np.allclose(got, np.asarray(x) @ np.asarray(x), atol=500 * 4 * np.finfo(np.float32).eps * 4)


@pytest.mark.parametrize("product", ["jnp.dot(a, b)", "jnp.tensordot(a, b, 1)", "jnp.einsum('ij,jk', a, b)", "a @ b"])
@pytest.mark.parametrize(
    ("fill", "dtype", "result"),
    [
        (300, "int8", "int8"),
        (7, "uint8", "uint8"),
        (1 + 2j, "complex64", "complex64"),
        (0.5j, "float32", "complex64"),
        (0.5j, "float16", "complex64"),
    ],
)
def test_weakly_typed_factors_wider_than_the_product(product, fill, dtype, result):
    """jax refuses these ("must not be narrower"); they follow the promotion of every other operation."""
    with xtrace.enable_x64(True):
        a, b = jnp.full((2, 3), fill), np.arange(12).reshape(3, 4).astype(dtype)
        got = xtrace.jit(lambda a, b: eval(product, {"jnp": jnp, "a": a, "b": b}))(a, b)
        expected = np.full((2, 3), fill) @ b
    assert (got.dtype, got.weak_type) == (np.dtype(result), False)
    np.testing.assert_array_equal(got, expected.astype(result))
