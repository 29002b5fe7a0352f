"""Making arrays, scalar types, and questions about dtypes and shapes, compared with jax."""

import enum
import fractions
import operator
import pickle
import warnings

import jax
import jax.numpy
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.operands import ALL, assert_same, dtypes_in, ours, shapes, theirs, weak_scalars
from xtrace._src.core.errors import ConcretizationTypeError

FROM_DATA = [
    "jnp.array(1)", "jnp.array(1.5)", "jnp.array(True)", "jnp.array(1j)", "jnp.asarray(2)", "jnp.asarray(2.0)",
    "jnp.array(w)", "jnp.asarray(w)", "jnp.array(w, dtype=float)", "jnp.asarray(w, dtype=jnp.float32)",
    "jnp.array(x)", "jnp.array(x, dtype=int)", "jnp.array([1, 2, 3])", "jnp.array([1, 2.0])", "jnp.array([1, True])",
    "jnp.array([True, False])", "jnp.array([1, np.float16(2)])", "jnp.array([1, np.int8(2)])",
    "jnp.array([1.0, np.int8(2)])", "jnp.array([np.float64(1), 2])", "jnp.array([w, w])", "jnp.array([w, 1.0])",
    "jnp.array([s, 1])", "jnp.array([i[0, 0], 2])", "jnp.array([i[0, 0], 2.5])", "jnp.array([[s, w], [1, 2]])",
    "jnp.array([x, x])", "jnp.array([x, np.ones((3, 4), np.int8)])", "jnp.array([x, [[1, 2, 3, 4]] * 3])",
    "jnp.array([1 + 2j, 3.0])", "jnp.array([])", "jnp.array([[]])", "jnp.array([[], []], dtype=int)", "jnp.array(())",
    "jnp.array((1, 2))", "jnp.array(range(3))", "jnp.array(memoryview(b'abc'))", "jnp.array(np.float64(2))",
    "jnp.array(np.arange(3)[::-1])", "jnp.array(np.ones((2, 3), 'f').T)", "jnp.array(1, dtype=bool)",
    "jnp.array(1.7, dtype=int)", "jnp.array([1.7], dtype=int)", "jnp.array(x, ndmin=3)", "jnp.array(2.0, ndmin=2)",
    "jnp.array(x, copy=False)", "jnp.asarray([1], copy=False)", "jnp.asarray(1, copy=False)", "jnp.array(2**31 - 1)",
    "jnp.array(-(2**31))", "jnp.array(2**31, dtype=jnp.uint32)", "jnp.array(1e300)",
    "jnp.array([2**63], dtype=float)", "jnp.array(1, dtype='int4')", "jnp.array([1.5, 2], dtype='float8_e4m3fn')",
    "jnp.array([np.ones(2), [1, 2]])", "jnp.array(h)", "jnp.array(np.array([-1]), dtype=jnp.uint8)",
    "jnp.array([[1, 2], [3, 4]], dtype=jnp.bfloat16)", "jnp.array('1.5', dtype=float)",
    "jnp.array(['1', '2'], dtype=int)",
    "jnp.array(np.array([1, 2], object), dtype=float)", "jnp.array(np.longdouble(1.5), dtype=float)",
    "jnp.array([range(3), [4, 5, 6]])", "jnp.array([range(2), n[:2]])", "jnp.array([memoryview(b'ab')])",
    "jnp.asarray(fractions.Fraction(1, 3), dtype=float)", "jnp.array([fractions.Fraction(7, 2), 1], dtype=int)",
    "jnp.array([decimal.Decimal('0.5'), s], dtype=complex)",
]
FILLED = [
    "jnp.zeros((3,))", "jnp.zeros(3)", "jnp.zeros((2, 0))", "jnp.zeros(())", "jnp.zeros([2, 3], bool)",
    "jnp.ones((3,), int)", "jnp.ones((2,), jnp.bfloat16)", "jnp.ones(2, complex)", "jnp.empty((2,), 'int8')",
    "jnp.zeros(np.array([3, 2]))", "jnp.full((2, 3), 1)", "jnp.full((2, 3), 1.0)", "jnp.full((2,), True)",
    "jnp.full((2,), 1j)", "jnp.full((), 2)", "jnp.full((2, 3), w)", "jnp.full((2, 4), v)", "jnp.full((), s)",
    "jnp.full((2,), 2.7, int)", "jnp.full((2,), -1, jnp.uint32)", "jnp.full((2,), 300, jnp.int8)",
    "jnp.full((2,), v[1], int)", "jnp.zeros_like(x)", "jnp.zeros_like(w)",
    "jnp.ones_like(wi)", "jnp.zeros_like(2)", "jnp.zeros_like(2, dtype=float)", "jnp.zeros_like(x, shape=(2,))",
    "jnp.ones_like(x, dtype=bool)", "jnp.empty_like(w)", "jnp.zeros_like(np.ones(3))", "jnp.full_like(x, 3)",
    "jnp.full_like(x, v)", "jnp.full_like(w, 2)", "jnp.full_like(wi, 2.5)", "jnp.full_like(x, 2, shape=(2,))",
    "jnp.full_like(v, x[0, 1])", "jnp.full_like(i, 300)", "jnp.zeros_like(package.ShapeDtypeStruct((2,), jnp.int8))",
    "jnp.eye(3)", "jnp.eye(3, k=1)", "jnp.eye(3, 4, -1, dtype=jnp.int8)", "jnp.eye(3, dtype=bool)", "jnp.eye(0)",
    "jnp.eye(3, 2, n[0])", "jnp.identity(2)", "jnp.identity(2, dtype=complex)", "jnp.tri(3)", "jnp.tri(3, 4, 1)",
    "jnp.tri(3, k=-1, dtype=int)", "jnp.tri(2, 3, 2, dtype=bool)", "jnp.tril(x)", "jnp.triu(x, 1)", "jnp.tril(y, -1)",
    "jnp.triu(y, k=-1)", "jnp.tril(i)", "jnp.triu(b)", "jnp.tril(c)", "jnp.tril(h, k=10)", "jnp.triu(z)",
]
COUNTED = [
    "jnp.arange(10)", "jnp.arange(0)", "jnp.arange(-2)", "jnp.arange(3.5)", "jnp.arange(1, 10)",
    "jnp.arange(1, 10, 2)", "jnp.arange(5, 1)", "jnp.arange(5, 1, -2)", "jnp.arange(0, 5, 1)",
    "jnp.arange(0.0, 1.0, 0.1)", "jnp.arange(0.5, 3, dtype=int)", "jnp.arange(3, dtype=float)",
    "jnp.arange(3, dtype=jnp.bfloat16)", "jnp.arange(3, dtype=complex)", "jnp.arange(0, 10, 3, dtype='float16')",
    "jnp.arange(np.float64(3))", "jnp.arange(np.int8(3))", "jnp.arange(0, True)", "jnp.arange(3, step=2)",
    "jnp.arange(start=3)", "jnp.arange(0, 2, np.float32(0.3))", "jnp.linspace(0, 1, 5)", "jnp.linspace(0, 1)",
    "jnp.linspace(0, 9, 4, dtype=int)", "jnp.linspace(0, 1, 5, retstep=True)",
    "jnp.linspace(0, 1, 5, endpoint=False)", "jnp.linspace(0, 1, 1)", "jnp.linspace(0, 1, 1, retstep=True)",
    "jnp.linspace(w, 1, 1)", "jnp.linspace(0, 1, 0)", "jnp.linspace(0, 1, 0, retstep=True)",
    "jnp.linspace(0, 1, 1, endpoint=False, retstep=True)", "jnp.linspace(0, 1, 2)", "jnp.linspace(0, 1j, 3)",
    "jnp.linspace(v, 1, 3, axis=1)", "jnp.linspace(v, x, 5, axis=1)", "jnp.linspace(v, x, 5, axis=-1, retstep=True)",
    "jnp.linspace(h[0], 1, 3)", "jnp.linspace(0, 1, 4, dtype=jnp.bfloat16)", "jnp.linspace(s, -3, 7)",
    "jnp.linspace(-2.5, 2.5, 6, dtype=int)", "jnp.logspace(0, 2, 5)", "jnp.logspace(0, 2, 4, dtype=int)",
    "jnp.logspace(0, 3, 4, base=2)", "jnp.logspace(v, 2, 3, axis=1)", "jnp.geomspace(1, 10, 5)",
    "jnp.geomspace(-1, -8, 4)", "jnp.geomspace(v + 1, 10, 4)", "jnp.geomspace(1, 1000, 4, endpoint=False)",
]
SPREAD = [
    "jnp.meshgrid(v, n)", "jnp.meshgrid(v, n, indexing='ij', sparse=True)", "jnp.meshgrid(v, n, u)", "jnp.meshgrid()",
    "jnp.meshgrid(v)", "jnp.indices((2, 3))", "jnp.indices((2, 3), sparse=True)", "jnp.indices((2, 3), dtype=float)",
    "jnp.indices(())", "jnp.broadcast_to(v, (3, 4))", "jnp.broadcast_to(2.0, (3,))", "jnp.broadcast_to(w, (2,))",
    "jnp.broadcast_to(x[:, :1], (2, 3, 4))", "jnp.broadcast_to(x, (3, 4))", "jnp.broadcast_arrays(x, v)",
    "jnp.broadcast_arrays(1, x)", "jnp.broadcast_arrays()", "jnp.broadcast_arrays(x[:, :1], v, 2.0)",
    "jnp.broadcast_shapes((2, 1), (3,))", "jnp.broadcast_shapes((2, 1), 3)", "jnp.broadcast_shapes()",
    "x.astype(int)", "w.astype(float)", "w.astype(jnp.float32)", "x.astype(bool)", "c.astype(bool)",
    "b.astype(float)", "jnp.astype(x, jnp.complex64)", "jnp.astype(w, None)", "q.astype(jnp.int32)",
    "(x * 1e9).astype(jnp.int8)", "jnp.float32(1.5)", "jnp.int4(3)", "jnp.int32(2.7)", "jnp.complex64(1)",
    "jnp.bool_(3)", "jnp.int32(x)", "jnp.bfloat16(w)", "jnp.float32([1, 2])", "jnp.float32(s)", "jnp.uint2(3)",
    "jnp.float8_e4m3fn(1.3)", "jnp.float4_e2m1fn(1.3)", "jnp.float32(x=1)",
    "jnp.float32(fractions.Fraction(1, 3))", "jnp.int32(decimal.Decimal('7.5'))", "jnp.bool_(fractions.Fraction(1, 3))",
]
FACTS = [
    "jnp.shape(x)", "jnp.shape(1)", "jnp.ndim(x)", "jnp.ndim(2.0)", "jnp.size(y)", "jnp.size(y, 1)",
    "jnp.size(y, (0, 2))", "jnp.isscalar(1)", "jnp.isscalar(s)", "jnp.isscalar(v)", "jnp.isscalar(np.array(1))",
    "jnp.isscalar('a')", "jnp.isscalar([1])", "jnp.result_type(1, 2.0)", "jnp.result_type(x, 1j)",
    "jnp.result_type(i, u)", "jnp.result_type('int8', np.int16)", "jnp.result_type(w, wi)",
    "jnp.promote_types('int32', 'float16')", "jnp.promote_types(int, float)", "jnp.promote_types('int8', 'uint8')",
    "jnp.promote_types(jnp.bfloat16, int)", "jnp.can_cast(int, float)", "jnp.can_cast('int32', 'int8')",
    "jnp.can_cast(jnp.bfloat16, jnp.float32)", "jnp.can_cast(jnp.float32, jnp.bfloat16)",
    "jnp.can_cast(jnp.ones(1).dtype, jnp.int32)",
    "jnp.can_cast('int32', 'int8', 'same_kind')", "jnp.issubdtype(jnp.bfloat16, jnp.floating)",
    "jnp.issubdtype(jnp.int4, jnp.signedinteger)", "jnp.isdtype(jnp.float32, 'real floating')",
    "jnp.isdtype(x.dtype, ('integral', jnp.float32))", "jnp.isdtype('bool', 'numeric')", "jnp.iterable([1])",
    "jnp.iterable(1)", "jnp.dtype('bfloat16')", "np.dtype(jnp.float32)", "jnp.pi", "jnp.e", "jnp.inf",
    "jnp.euler_gamma", "jnp.newaxis", "jnp.finfo(jnp.bfloat16).eps", "jnp.finfo(x.dtype).max",
    "jnp.iinfo(jnp.int4).min", "jnp.iinfo(u.dtype).max", "jnp.float32 == np.float32",
    "jnp.float32 == np.dtype('float32')", "jnp.float32 == jnp.float64", "isinstance(np.float32(1), jnp.float32)",
    "isinstance(x, jnp.float32)", "jnp.bool is jnp.bool_", "jnp.float_ is jnp.float64", "jnp.float32.__name__",
    "jnp.float32 in {jnp.float32}", "jnp.generic is np.generic", "isinstance(x, jnp.ndarray)",
    "isinstance(x, package.Array)", "x.shape", "x.T.shape",
]
TABLES = {"data": FROM_DATA, "filled": FILLED, "counted": COUNTED, "spread": SPREAD}
IN_TABLES = [text for table in TABLES.values() for text in table]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("text", IN_TABLES + FACTS)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, among=IN_TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_jitted_values_are_those_of_jax(table):
    check_jitted(TABLES[table])


def check_error(text, error, fragment):
    with pytest.raises(error, match=fragment):
        names = {"jnp": jnp, "np": np, "xtrace": xtrace, "fractions": fractions}
        eval(text, names | {"x": jnp.ones((3, 4)), "v": jnp.ones(4)})


ERRORS = [
    ("jnp.array('a')", TypeError, "array: 'a' of type .*str.* is not a valid"),
    ("jnp.array(['a'])", TypeError, "a list element is neither a number nor an array: 'a'"),
    ("jnp.array(b'a')", TypeError, "bytes"),
    ("jnp.array(fractions.Fraction(1, 3))", TypeError, "Fraction"),
    ("jnp.array({1, 2}, float)", TypeError, "does not convert to float32"),
    ("jnp.array([1, None], float)", ValueError, "a list element is neither a number nor an array: None"),
    ("jnp.array(np.array(['a']))", TypeError, "its NumPy dtype is <U1"),
    ("jnp.array(np.array([None]))", TypeError, "its NumPy dtype is object"),
    ("jnp.array(object())", TypeError, "object"),
    ("jnp.array({'a': 1})", TypeError, "dict"),
    ("jnp.array([1, None])", ValueError, "a list element is neither a number nor an array: None"),
    ("jnp.array(None)", ValueError, "None is not a valid value"),
    ("jnp.array([[1], [1, 2]])", ValueError, "must be rectangular"),
    ("jnp.array([1, [2]])", ValueError, "must be rectangular"),
    ("jnp.array([x, v])", TypeError, r"must be rectangular.*\(3, 4\), \(4,\)"),
    ("jnp.array([x, 2])", TypeError, "must be rectangular"),
    ("jnp.array(2**31)", OverflowError, "2147483648"),
    ("jnp.array([300], jnp.int8)", OverflowError, "300"),
    ("jnp.int8(300)", OverflowError, "300"),
    ("jnp.uint8(-1)", OverflowError, "-1"),
    ("jnp.array(1j, dtype=float)", TypeError, "complex number 1j cannot become float32"),
    ("jnp.array(x, order='F')", NotImplementedError, "order"),
    ("jnp.array(x, int, True, 'K', 0, None)", TypeError, "at most 5 arguments"),
    ("jnp.array(x, device='gpu7')", ValueError, "device must be a device"),
    ("jnp.array(x, out_sharding=3)", TypeError, "array: out_sharding leaf specifications"),
    ("jnp.zeros(3, dtype=object)", TypeError, "zeros: .*object.* is not a dtype"),
    ("jnp.zeros((2, -1))", TypeError, "zeros: shape .* negative"),
    ("jnp.zeros(2.5)", TypeError, "zeros: shape must be an integer"),
    ("jnp.zeros((2, 'a'))", TypeError, "zeros: shape must be"),
    ("jnp.full((2,), [1, 2])", TypeError, "full requires ndarray or scalar arguments"),
    ("jnp.full((3,), v)", ValueError, "does not broadcast"),
    ("jnp.zeros_like([1, 2])", TypeError, "zeros_like requires ndarray or scalar"),
    ("jnp.arange(True)", TypeError, "does not accept dtype bool"),
    ("jnp.arange(1j)", ValueError, "must be real"),
    ("jnp.arange(None)", TypeError, "start must be a number"),
    ("jnp.arange(v)", ValueError, "must be scalars"),
    ("jnp.arange(0, 5, 0)", ZeroDivisionError, "step must not be zero"),
    ("jnp.arange(float('nan'))", ValueError, "no finite number"),
    ("jnp.arange(float('inf'))", OverflowError, "no finite number"),
    ("jnp.linspace(0, 1, -1)", ValueError, "num must not be negative, got -1"),
    ("jnp.linspace(0, 1, 2.5)", TypeError, "num must be an integer, got 2.5"),
    ("jnp.linspace(0, v, 3, axis=4)", ValueError, "linspace: axis 4 is out of bounds for array of dimension 2"),
    ("jnp.eye(3.0)", TypeError, "eye: N must be an integer"),
    ("jnp.eye(-1)", ValueError, "eye: N must not be negative"),
    ("jnp.tril(v)", ValueError, "tril must be at least 2D"),
    ("jnp.tril(x, 1.5)", TypeError, "k must be an integer"),
    ("jnp.meshgrid(x)", ValueError, "must be 1D"),
    ("jnp.meshgrid(v, indexing='a')", ValueError, "'xy' and 'ij'"),
    ("jnp.meshgrid(v, copy=False)", ValueError, "copy=True"),
    ("jnp.broadcast_to(x, (2,))", ValueError, "fewer dimensions"),
    ("jnp.broadcast_to(x, (2, 3, 5))", ValueError, "does not broadcast"),
    ("jnp.broadcast_shapes((2,), (3,))", ValueError, r"\(2,\), \(3,\)"),
    ("jnp.broadcast_arrays(x, [1])", TypeError, "broadcast_arrays requires ndarray or scalar arguments; argument 1"),
    ("jnp.size(x, 2)", ValueError, "size: axis 2 is out of bounds for array of dimension 2"),
    ("jnp.float32()", TypeError, "x"),
    ("jnp.float32('a')", ValueError, "asarray: 'a' does not convert to float32"),
    ("jnp.isdtype(x.dtype, 'nothing')", ValueError, "isdtype: kind"),
    ("jnp.from_dlpack([1])", TypeError, "no __dlpack__"),
    ("x.astype('nothing')", TypeError, "astype: 'nothing' is not a dtype"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    check_error(text, error, fragment)


def test_a_64_bit_dtype_asked_for_by_name_warns_and_python_types_do_not():
    for text in ("jnp.zeros(3, 'float64')", "jnp.zeros(3, np.int64)", "jnp.float64(1)", "jnp.arange(3, dtype='int64')"):
        with pytest.warns(UserWarning, match="Explicitly requested dtype .*64.* is not available"):
            eval(text, {"jnp": jnp, "np": np})
    for dtype in (int, float, complex, bool):
        jnp.zeros(3, dtype)
    with xtrace.enable_x64(True):
        assert jnp.zeros(3, "float64").dtype == np.float64
        assert jnp.array(2**40).dtype == np.int64


@pytest.mark.parametrize(("call", "warning"), [
    (lambda P, z: P.numpy.array(z, dtype=float), np.exceptions.ComplexWarning),
    (lambda P, z: P.numpy.sum(z, dtype=float), np.exceptions.ComplexWarning),
    (lambda P, z: P.numpy.mean(z, dtype=float), np.exceptions.ComplexWarning),
    (lambda P, z: P.numpy.cumsum(z, dtype=float), np.exceptions.ComplexWarning),
    (lambda P, z: P.numpy.astype(z, float), DeprecationWarning),
    (lambda P, z: z.astype(int), DeprecationWarning),
    (lambda P, z: P.jit(lambda z: z.astype(int))(z), DeprecationWarning),
])
def test_complex_to_real_warns(call, warning):
    for package in (jax, xtrace):
        with pytest.warns(warning):
            assert call(package, package.numpy.array([1 + 2j])).ravel().tolist() == [1.0]


@pytest.mark.drawn(0.3)
@given(st.data())
@settings(max_examples=100)
def test_nested_lists_of_any_scalars(data):
    depth = data.draw(st.integers(1, 3))
    sides = data.draw(st.lists(st.integers(0, 3), min_size=depth, max_size=depth))
    scalars = st.one_of(
        st.booleans(), weak_scalars(low=0), st.integers(-5, 5).map(np.int8), st.integers(0, 5).map(np.uint16),
        st.integers(-5, 5).map(np.float32), st.integers(-5, 5).map(np.float64),
        st.integers(-5, 5).map(ml_dtypes.bfloat16),
    )
    arrays = data.draw(st.booleans())

    def nested(level):
        if level == depth:
            value = data.draw(scalars)
            return np.asarray(value) if arrays and isinstance(value, np.generic) else value
        return [nested(level + 1) for _ in range(sides[level])]

    value = nested(0)
    assert_same(jnp.array(ours(value)), jax.numpy.array(theirs(value)))


@given(st.data())
@settings(max_examples=60)
def test_filled_arrays_of_any_type(data):
    shape, own = data.draw(shapes(0, 3, 0, 3)), data.draw(dtypes_in(ALL))
    value = data.draw(weak_scalars((bool, int, float)))
    dtype = data.draw(st.one_of(st.none(), dtypes_in(ALL)))
    like = np.zeros(shape, own)
    for name in ("zeros", "ones", "empty"):
        assert_same(getattr(jnp, name)(shape, own), getattr(jax.numpy, name)(shape, own))
        if name != "empty":
            got, expected = getattr(jnp, f"{name}_like"), getattr(jax.numpy, f"{name}_like")
            assert_same(got(ours(like), dtype), expected(theirs(like), dtype))
    assert_same(jnp.full(shape, value, dtype), jax.numpy.full(shape, value, dtype))
    assert_same(jnp.full_like(ours(like), value, dtype), jax.numpy.full_like(theirs(like), value, dtype))


@given(
    st.integers(-20, 20), st.integers(-20, 20), st.integers(-5, 5).filter(bool), st.sampled_from([1, 0.5, 0.3, 1 / 7])
)
@settings(max_examples=60)
def test_arange_of_any_range(start, stop, step, scale):
    arguments = (start * scale, stop * scale, step * scale)
    assert_same(jnp.arange(*arguments), jax.numpy.arange(*arguments))
    assert_same(jnp.arange(*arguments[:2]), jax.numpy.arange(*arguments[:2]))


def test_arange_takes_no_traced_argument():
    with pytest.raises(ConcretizationTypeError, match="arange argument stop"):
        xtrace.jit(lambda n: jnp.arange(n))(3)


def test_numpy_data_is_copied_on_the_way_in():
    source = np.zeros(1024, np.float32)
    made = [jnp.array(source), jnp.asarray(source), jnp.asarray(source, copy=True)]
    source[0] = 7
    assert [float(x[0]) for x in made] == [0, 0, 0]


def test_memory_is_shared_on_request():
    source = np.zeros(2048, np.float32)
    start = -source.ctypes.data // 4 % 16  # XLA shares memory that is aligned to 64 bytes
    aligned = source[start : start + 1024]
    shared, through_dlpack = jnp.asarray(aligned, copy=False), jnp.from_dlpack(aligned)
    aligned[0] = 7
    assert float(np.asarray(shared)[0]) == 7
    assert float(np.asarray(through_dlpack)[0]) == 7
    assert float(jnp.from_dlpack(shared, copy=True)[0]) == 7


def test_array_makes_a_copy_and_asarray_does_not():
    x = jnp.ones(3)
    assert jnp.asarray(x) is x
    copy = jnp.array(x)
    x.delete()
    assert copy.tolist() == [1, 1, 1]


def test_a_device_commits_the_array():
    device = xtrace.devices()[0]
    for made in (jnp.zeros(3, device=device), jnp.array([1], device=device), jnp.arange(3, device=device)):
        assert made.committed and made.device == device


def test_objects_with_numpy_or_jax_protocols():
    class AsNumPy:
        def __array__(self, dtype=None, copy=None):
            return np.ones(2, np.float32)

    class AsArray:
        def __jax_array__(self):
            return jnp.float32(2)

    class Number(enum.IntEnum):
        ONE = 1

    assert jnp.array(AsNumPy()).tolist() == [1, 1]
    assert jnp.array([AsNumPy(), AsNumPy()]).shape == (2, 2)
    assert jnp.array([AsArray(), 1]).tolist() == [2, 1]
    assert jnp.asarray(Number.ONE).dtype == np.int32


def test_scalar_types_are_classes_like_numpys():
    assert repr(jnp.float32) == "<class 'jax.numpy.float32'>"
    assert pickle.loads(pickle.dumps(jnp.float32)) is jnp.float32
    assert pickle.loads(pickle.dumps(jnp.bool_)) is jnp.bool_
    assert hash(jnp.int8) == hash(np.int8)
    assert str(jnp.float32 | None)
    for name in ("int2", "uint4", "float8_e5m2", "complex128"):
        assert getattr(jnp, name).dtype.name == name
    assert operator.index(jnp.int32(3)) == 3


OUT_OF_RANGE = [
    "jnp.full((2,), jnp.nan, dtype=int)", "jnp.full((2,), -1.5, jnp.uint8)", "jnp.full((2,), 1e12, jnp.uint32)",
    "jnp.full((2,), np.float32(300.5), jnp.int8)", "jnp.full((2,), np.array([-1.5, 3e5]), jnp.uint16)",
    "lax.convert_element_type(-1.5, jnp.uint8)", "lax.convert_element_type(np.float32(-1.5), jnp.uint8)",
    "lax.full_like(jnp.zeros(2, jnp.uint8), np.float32(-1.5))", "jnp.max(u, initial=-1.5)", "jnp.insert(u, 0, -1.5)",
    "jnp.nanmax(u, initial=-1.5)", "jnp.nansum(u, initial=np.float32(-1.5))",
]


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
def test_constants_that_an_integer_type_cannot_hold_become_what_they_become_in_jax():
    """NumPy converts them, while a program is traced, and what it gives depends on the machine; arrays saturate."""
    check_jitted(OUT_OF_RANGE)
    for text in OUT_OF_RANGE:
        check_eagerly(text)


def test_arrays_made_while_tracing_are_constants_of_the_trace():
    """As in JAX they are tracers, so that what is done with them is staged and their values are not there."""
    data = np.arange(3, dtype=np.float32)
    made = []

    def f(x):
        made[:] = [jnp.array(1.5), jnp.array([1, 2]), jnp.asarray(data), jnp.int8(3), jnp.array([x, 1.0])]
        return made

    results = xtrace.jit(f)(2.0)
    data[0] = 7
    assert all(isinstance(x, xtrace.core.Tracer) for x in made)
    assert_same(results, [jax.numpy.array(1.5), jax.numpy.array([1, 2]), jax.numpy.arange(3.0), jax.numpy.int8(3),
                          jax.numpy.array([2.0, 1.0])])
    assert str(xtrace.make_jaxpr(lambda x: x + jnp.array(1.5))(2.0)).count("let") == 1
    with pytest.raises(ConcretizationTypeError, match="a constant made while tracing"):
        xtrace.jit(lambda: int(jnp.array(3)))()
    text = str(xtrace.make_jaxpr(lambda: jnp.array([1, 2]) * jnp.array(2))())
    assert "mul" in text and "2" in text


def test_creation_reads_as_in_jax():
    text = str(xtrace.make_jaxpr(lambda: (jnp.zeros((2, 3)), jnp.arange(1, 5), jnp.eye(2, dtype=bool)))())
    assert "broadcast_in_dim 0.0" in text and "iota[dimension=0 dtype=int32 shape=(4,)]" in text
    assert text.count("iota") == 3 and "convert_element_type" not in text


def test_questions_about_dtypes_take_arrays():
    """As in jax, which warns that this will end."""
    for numpy, array in ((jnp, jnp.ones(2)), (jax.numpy, jax.numpy.ones(2))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            assert numpy.isdtype(array, "real floating") and numpy.isdtype("float32", array)
            assert numpy.can_cast(numpy.int8, array) and not numpy.can_cast(numpy.int32, array)


def test_users_classes_extend_scalar_types():
    for lib in (jnp, jax.numpy):
        class Kind(lib.uint8):
            """What a step is."""

            FIRST = lib.asarray(3, dtype=lib.uint8)

        assert (Kind.__name__, Kind.__doc__, Kind.dtype, int(Kind.FIRST)) == ("Kind", "What a step is.", np.uint8, 3)
        assert Kind(5).dtype == np.uint8 and lib.zeros(2, Kind).dtype == np.uint8
