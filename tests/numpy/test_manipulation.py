"""Reshaping, joining, splitting, repeating, rolling and padding, compared with jax."""

import jax
import jax.numpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.operands import ALL, arrays, assert_same, dtypes_in, ours, shapes, theirs
from xtrace._src.core.errors import ConcretizationTypeError

RESHAPED = [
    "x.reshape(4, 3)", "x.reshape((2, 6))", "x.reshape([2, 6])", "x.reshape(-1)", "x.reshape(3, 4)",
    "jnp.reshape(x, np.array(12))", "x.reshape(np.array(-1))", "jnp.reshape(x, (np.array(-1), np.array(2)))",
    "x.reshape(2, -1)", "jnp.reshape(x, (2, -1))", "jnp.reshape(x, 12)", "x.reshape((2, -1), order='F')",
    "jnp.reshape(y, (4, 6), 'F')", "jnp.reshape(w, ())", "jnp.reshape(w, (1, 1))", "jnp.reshape(2.0, (1, 1))",
    "jnp.reshape(z, (2, -1))", "x.reshape(np.array([2, 6]))", "x.ravel()", "v.ravel()", "x.ravel('F')",
    "jnp.ravel(w)", "y.ravel(order='F')", "x.flatten()", "x.T", "y.T", "w.T", "x.mT", "y.mT", "x.transpose(1, 0)",
    "x.transpose((1, 0))", "x.transpose(np.array([1, 0]))", "x.transpose([1, 0])", "y.transpose(2, 0, 1)",
    "x.transpose(None)", "jnp.transpose(x, (0, 1))",
    "jnp.transpose(y, (-1, 0, 1))", "jnp.transpose(w)", "jnp.permute_dims(x, (1, 0))", "jnp.matrix_transpose(y)",
    "jnp.swapaxes(y, 0, -1)", "x.swapaxes(0, 1)", "jnp.moveaxis(y, 0, -1)", "jnp.moveaxis(y, (0, 1), (2, 0))",
    "jnp.swapaxes(x, (0,), 1)", "jnp.moveaxis(y, np.array([0]), [2])", "jnp.sum(y, np.array([0, -1]))",
    "jnp.moveaxis(x, (0, 1), (1, 0))", "jnp.rollaxis(y, 2)", "jnp.rollaxis(y, 0, 3)", "jnp.rollaxis(y, 2, 1)",
    "jnp.expand_dims(x, 0)", "jnp.expand_dims(x, (0, 2))", "jnp.expand_dims(x, -1)", "jnp.expand_dims(w, 0)",
    "jnp.squeeze(x)", "jnp.squeeze(x[None])", "jnp.squeeze(x[None, :, None], 0)", "x[:, None].squeeze((1,))",
    "jnp.squeeze(w)", "jnp.atleast_1d(w)", "jnp.atleast_1d(1, x)", "jnp.atleast_2d(v)", "jnp.atleast_2d(2.0)",
    "jnp.atleast_3d(v)", "jnp.atleast_3d(x)", "jnp.atleast_3d(y, w)", "jnp.atleast_2d()", "jnp.copy(w)", "x.copy()",
    "jnp.copy(x)", "jnp.resize(v, (3, 3))", "jnp.resize(x, 30)", "jnp.resize(w, 3)", "jnp.resize(z, (2, 2))",
]
JOINED = [
    "jnp.concatenate([x, x])", "jnp.concatenate([x, i], 1)", "jnp.concatenate([x, v], None)", "jnp.concatenate(x)",
    "jnp.concatenate([x, x], dtype=int)", "jnp.concatenate((x, x[:1], x[:0]))", "jnp.concatenate([b, i], -1)",
    "jnp.concatenate([jnp.full((2,), 1.0), jnp.full((2,), 1.0)])", "jnp.concatenate([jnp.full((2,), 1.0), n])",
    "jnp.concatenate([x, x], np.int64(1))", "jnp.concatenate(x, np.int8(0))", "jnp.concat([x, x], axis=np.array(-1))",
    "jnp.append(x, x, np.int32(1))", "jnp.concatenate(y, np.array(1))",
    "jnp.concatenate([x])", "jnp.concatenate(np.ones((2, 3)))", "jnp.concat([x, x], axis=1)", "jnp.stack([x, x])",
    "jnp.stack([x, i], 1)", "jnp.stack([w, w])", "jnp.stack([1, 2.0])", "jnp.stack([x, x], axis=-1)", "jnp.stack(x)",
    "jnp.stack([x, x], dtype=jnp.bfloat16)", "jnp.vstack([v, v])", "jnp.vstack([x, v])", "jnp.vstack([1, 2])",
    "jnp.hstack([v, v])", "jnp.hstack([x, x])", "jnp.hstack([1, 2])", "jnp.hstack([x, i], dtype=int)",
    "jnp.vstack(x)", "jnp.dstack([v, v])", "jnp.dstack([x, x])", "jnp.column_stack([v, v])",
    "jnp.column_stack([v, x.T])", "jnp.append(x, v)", "jnp.append(x, x, axis=0)", "jnp.append(1, 2)",
    "jnp.stack(range(3))", "jnp.hstack(range(3))",
    "jnp.concatenate({1: v, 2: v}.values())", "jnp.stack({1: x, 2: x}.values())",
    "jnp.block([[x, x], [x, x]])", "jnp.block(1)", "jnp.block([x, v[:3, None]])", "jnp.block([[x], [v]])",
]
SPLIT = [
    "jnp.split(x, 3)", "jnp.split(x, 2, 1)", "jnp.split(x, [1, 3], axis=1)", "jnp.split(v, (2,))",
    "jnp.array_split(v, 3)", "jnp.array_split(x, [1, 2], axis=1)", "jnp.array_split(v, 6)", "jnp.hsplit(x, 2)",
    "jnp.array_split(v, 4 / 2)",
    "jnp.hsplit(v, 2)", "jnp.vsplit(x, 3)", "jnp.dsplit(y, [1])", "jnp.unstack(x)", "jnp.unstack(y, axis=1)",
    "jnp.unstack(z)",
]
REPEATED = [
    "jnp.tile(x, 2)", "jnp.tile(v, (2, 2))", "jnp.tile(x, (2, 1, 1))", "jnp.tile(x, 0)", "jnp.tile(w, 3)",
    "jnp.tile(x, 1)", "jnp.tile(x, ())", "jnp.repeat(x, 2)", "jnp.repeat(x, 2, 0)", "x.repeat(2, axis=1)",
    "jnp.repeat(2, 3)", "jnp.repeat(w, 3)", "jnp.repeat(x, 0)", "jnp.repeat(x, np.array([1, 2, 0]), axis=0)",
    "jnp.repeat(v, np.array([2]))", "jnp.repeat(v, np.array([1, 2, 0, 1]), total_repeat_length=3)",
    "jnp.repeat(v, np.array([1, 2, 0, 1]), total_repeat_length=6)", "jnp.repeat(x, n + 1, 0, total_repeat_length=5)",
    "jnp.repeat(v, u[1:], total_repeat_length=5)", "jnp.repeat(v, np.array([1, 2, 1, 0]), total_repeat_length=6)",
    "jnp.repeat(v, n[0], total_repeat_length=9)", "jnp.repeat(v, np.array([0, 0, 0, 0]), total_repeat_length=2)",
    "jnp.repeat(x, 2, axis=0, total_repeat_length=5)", "jnp.repeat(x, 2, axis=0, total_repeat_length=8)",
    "jnp.flip(x)", "jnp.flip(x, 0)", "jnp.flip(y, (0, -1))", "jnp.flip(w)", "jnp.fliplr(x)", "jnp.flipud(y)",
    "jnp.roll(x, 1)", "jnp.roll(x, range(2), range(2))", "jnp.roll(x, -1, 0)", "jnp.roll(x, (1, 2), (0, 1))",
    "jnp.roll(x, 1, (0, 1))",
    "jnp.roll(x, (1, 2), 0)", "jnp.roll(x, (1, 2))", "jnp.roll(x, 99, 1)", "jnp.roll(w, 2)", "jnp.roll(z, 1, 0)",
    "jnp.roll(x, 1.9)", "jnp.roll(x, (True, -1.5), (0, 1))", "jnp.roll(x, v[:2], 1)", "jnp.roll(x, i[2, 2], 0)",
    "jnp.roll(x, n[:2], (0, 1))", "jnp.roll(x, n)",
    "jnp.roll(x, np.array([1, 2]), (0, 1))", "jnp.rot90(x)", "jnp.rot90(x, 2)", "jnp.rot90(x, 3)",
    "jnp.rot90(y, -1, (2, 0))", "jnp.rot90(x, 4)", "jnp.pad(x, 1)", "jnp.pad(x, (1, 2))",
    "jnp.pad(x, ((1, 2), (0, 1)))", "jnp.pad(x, ((1, 2),))", "jnp.pad(x, (3,))", "jnp.pad(x, 1, constant_values=2.5)",
    "jnp.pad(i, 1, constant_values=2.5)", "jnp.pad(x, 0)", "jnp.pad(x, 1, constant_values=((1, 2), (3, 4)))",
    "jnp.pad(x, 1, constant_values=(1, 2))", "jnp.pad(w, 1)", "jnp.pad(v, 1, constant_values=s)",
    "jnp.pad(jnp.full((2,), 1.0), 1)", "jnp.pad(b, ((0, 1), (1, 0)))", "jnp.diag(v)", "jnp.diag(v, -1)",
    "jnp.diag(v, 2)", "jnp.diag(x)", "jnp.diag(x, 1)", "jnp.diag(x, -5)", "jnp.diagflat(x)", "jnp.diagflat(v, 1)",
    "jnp.diagonal(x)", "jnp.diagonal(x, offset=1, axis1=1, axis2=0)", "y.diagonal()", "jnp.diagonal(y, 1, 0, 2)",
    "jnp.diag(b)", "jnp.sort(q)", "x[::-1].sort(axis=0)", "jnp.sort(x % 3, axis=None)",
    "jnp.sort(q, descending=True)", "jnp.argsort(v % 2)", "jnp.argsort(x % 3, axis=0)",
    "jnp.argsort(v % 2, descending=True)", "x.argsort(axis=None)", "jnp.sort(c, axis=-1)",
]
TABLES = {"reshaped": RESHAPED, "joined": JOINED, "split": SPLIT, "repeated": REPEATED}
IN_TABLES = [text for table in TABLES.values() for text in table]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("text", IN_TABLES)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, among=IN_TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_jitted_values_are_those_of_jax(table):
    check_jitted(TABLES[table])


ERRORS = [
    ("x.reshape(5, -1)", TypeError, r"cannot reshape array of shape \(3, 4\) \(size 12\) into shape \(5, -1\)"),
    ("x.reshape(-1, -1)", TypeError, "only specify one unknown axis size"),
    ("x.reshape(13)", TypeError, r"\(size 12\) into shape \(13,\) \(size 13\)"),
    ("x.reshape(2.5)", TypeError, "reshape: shape must be an integer"),
    ("x.reshape()", TypeError, r"into shape \(\)"),
    ("x.reshape('a')", TypeError, "reshape: shape must be"),
    ("jnp.sort(x, kind='stable')", TypeError, "sort: kind and order are not supported"),
    ("x.reshape(3, 4, order='A')", NotImplementedError, "order must be 'C' or 'F', got 'A'"),
    ("jnp.reshape([1, 2], (2, 1))", TypeError, "reshape requires ndarray or scalar"),
    ("x.reshape(3, 4, order='K')", ValueError, "order must be 'C' or 'F', got 'K'"),
    ("x.flatten('K')", NotImplementedError, "order must be 'C' or 'F', got 'K'"),
    ("x.flatten('Q')", ValueError, "order must be 'C' or 'F', got 'Q'"),
    ("jnp.transpose(x, (0, 0))", TypeError, "no permutation"),
    ("jnp.transpose(x, (0, 2))", ValueError, "transpose: axis 2 is out of bounds for array of dimension 2"),
    ("jnp.transpose(x, 1)", TypeError, "axes must be a sequence"),
    ("v.mT", ValueError, "at least two-dimensional; got ndim=1"),
    ("jnp.swapaxes(x, 0, 5)", IndexError, "swapaxes: axis 5 is out of bounds for array of dimension 2"),
    ("jnp.swapaxes(x, 0, 1.0)", IndexError, "swapaxes: axis must be an integer, got 1.0"),
    ("x.swapaxes(None, 1)", ValueError, "swapaxes: axis must be an integer, got None"),
    ("jnp.swapaxes(x, [0], 1)", ValueError, r"swapaxes: axis must be an integer, got \[0\]"),
    ("jnp.packbits(x > 0, True)", ValueError, "packbits: axis must be an integer, got True"),
    ("jnp.moveaxis(x, (0, 1), 1)", ValueError, "2 vs 1"),
    ("jnp.moveaxis(x, (0, 0), (1, 0))", ValueError, "moveaxis: duplicate value in axis"),
    ("jnp.rollaxis(x, 1, 5)", ValueError, "start=5 must satisfy"),
    ("jnp.expand_dims(x, 5)", ValueError, "expand_dims: axis 5 is out of bounds for array of dimension 3"),
    ("jnp.expand_dims(x, (0, 0))", ValueError, "duplicate value in axis"),
    ("jnp.squeeze(x, 0)", ValueError, r"size not equal to one: axis 0 of shape \(3, 4\)"),
    ("jnp.concatenate([x, v])", TypeError, r"different numbers of dimensions: got \(3, 4\), \(4,\)"),
    ("jnp.concatenate([x, x.T])", TypeError, r"along dimension 0 for shapes \(3, 4\), \(4, 3\)"),
    ("jnp.concatenate([1, 2])", ValueError, "Zero-dimensional arrays cannot be concatenated"),
    ("jnp.concatenate([])", ValueError, "Need at least one array"),
    ("jnp.concatenate([x, x], axis=1.0)", TypeError, "concatenate: axis must be an integer, got 1.0"),
    ("jnp.concatenate([x], axis=2)", ValueError, "concatenate: axis 2 is out of bounds for array of dimension 2"),
    ("jnp.concatenate([x, [1, 2]])", TypeError, "concatenate requires ndarray or scalar arguments; argument 1"),
    ("jnp.concatenate(2)", TypeError, "needs a list or tuple of arrays, got <class 'int'>"),
    ("jnp.stack([x, v])", ValueError, r"must have the same shape; got \(3, 4\), \(4,\)"),
    ("jnp.stack([x, x], axis=3)", ValueError, "stack: axis 3 is out of bounds for array of dimension 3"),
    ("jnp.stack([x, x], out=x)", NotImplementedError, "'out' argument to xtrace.numpy.stack"),
    ("jnp.block([[x], v])", ValueError, "same depth"),
    ("jnp.split(x, 2)", ValueError, "axis 0 of length 3 into 2 leaves 1"),
    ("jnp.split(x, 0)", ValueError, "must be positive, got 0"),
    ("jnp.split(x, [2, 1])", ValueError, "must not decrease"),
    ("jnp.split(x, 1.5)", TypeError, "indices_or_sections must be an integer"),
    ("jnp.unstack(1.0)", ValueError, "unstack: axis 0 is out of bounds for array of dimension 0"),
    ("jnp.tile(x, -1)", TypeError, "negative"),
    ("jnp.repeat(x, -1)", ValueError, "cannot be negative, got -1"),
    ("jnp.repeat(x, 1.5)", TypeError, "repeats must be integers"),
    ("jnp.repeat(x, np.array([1, 2]), axis=0)", ValueError, "do not fit axis 0 of length 3"),
    ("jnp.flip(x, 5)", ValueError, "flip: axis 5 is out of bounds"),
    ("jnp.fliplr(v)", ValueError, "fliplr: axis 1 is out of bounds for array of dimension 1"),
    ("jnp.roll(x, [[1]])", ValueError, "roll: shift must be a scalar or a vector"),
    ("jnp.roll(x, (1, 2, 3), (0, 1))", ValueError, "3 shifts for 2 axes"),
    ("jnp.rot90(v)", ValueError, "ndim at least two"),
    ("jnp.rot90(x, axes=(0, 0))", ValueError, "duplicate"),
    ("jnp.pad(x, ((1,), (2,)))", ValueError, r"unsupported shape \(2, 1\)"),
    ("jnp.pad(x, -1)", ValueError, "negative values"),
    ("jnp.pad(x, 1.5)", TypeError, "integral type"),
    ("jnp.pad(x, 1, mode='nothing')", NotImplementedError, "'nothing'"),
    ("jnp.pad(x, 1, stat_length=2)", ValueError, "unsupported keyword arguments"),
    ("jnp.pad(x, 1, constant_values=jnp.ones(3))", ValueError, "do not fit"),
    ("jnp.diag(1.0)", ValueError, "1d or 2d"),
    ("jnp.diagonal(v)", ValueError, "at least two dimensions"),
    ("jnp.diagonal(x, 0, 1, 1)", ValueError, "cannot be the same"),
    ("jnp.sort(x, 2)", ValueError, "sort: axis 2 is out of bounds"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "np": np, "x": jnp.ones((3, 4)), "v": jnp.ones(4)})


@pytest.mark.drawn(0.3)
@given(st.data())
@settings(max_examples=60)
def test_any_array_reshaped_and_transposed(data):
    shape = data.draw(shapes(0, 4, 0, 4))
    value = data.draw(arrays(data.draw(dtypes_in(ALL)), shape))
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    mine, other = ours(value), theirs(value)
    assert_same(jnp.transpose(mine, order), jax.numpy.transpose(other, order))
    assert_same(mine.reshape(shape[::-1]), other.reshape(shape[::-1]))
    assert_same(mine.reshape(shape[::-1], order="F"), other.reshape(shape[::-1], order="F"))
    source = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True)) if shape else []
    target = data.draw(st.permutations(source))
    assert_same(jnp.moveaxis(mine, source, target), jax.numpy.moveaxis(other, source, target))


@pytest.mark.drawn(0.3)
@given(st.data())
@settings(max_examples=60)
def test_any_arrays_joined_and_split(data):
    shape = list(data.draw(shapes(1, 3, 0, 3)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    values = []
    for _ in range(data.draw(st.integers(1, 3))):
        shape[axis] = data.draw(st.integers(0, 3))
        values.append(data.draw(arrays(data.draw(dtypes_in(ALL)), tuple(shape))))
    mine, other = jnp.concatenate(ours(values), axis), jax.numpy.concatenate(theirs(values), axis)
    assert_same(mine, other)
    inside = st.integers(0, mine.shape[axis])
    parts = data.draw(st.one_of(st.integers(1, 4), st.lists(inside, max_size=3).map(sorted)))
    assert_same(jnp.array_split(mine, parts, axis), jax.numpy.array_split(other, parts, axis))
    same = [values[0]] * 2
    place = data.draw(st.integers(-len(shape) - 1, len(shape)))
    assert_same(jnp.stack(ours(same), place), jax.numpy.stack(theirs(same), place))


@pytest.mark.drawn(0.3)
@given(st.data())
@settings(max_examples=40)
def test_any_array_rolled_padded_and_repeated(data):
    shape = data.draw(shapes(1, 3, 0, 4))
    value = data.draw(arrays(data.draw(dtypes_in(ALL)), shape))
    axis, amount = data.draw(st.integers(-len(shape), len(shape) - 1)), data.draw(st.integers(-6, 6))
    mine, other = ours(value), theirs(value)
    assert_same(jnp.roll(mine, amount, axis), jax.numpy.roll(other, amount, axis))
    assert_same(jnp.roll(mine, jnp.int32(amount), axis), jax.numpy.roll(other, jax.numpy.int32(amount), axis))
    widths = [data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in shape]
    fill = data.draw(st.integers(0, 3))
    assert_same(jnp.pad(mine, widths, constant_values=fill), jax.numpy.pad(other, widths, constant_values=fill))
    assert_same(jnp.repeat(mine, abs(amount), axis), jax.numpy.repeat(other, abs(amount), axis))
    counts = data.draw(st.lists(st.integers(0, 2), max_size=4))
    assert_same(jnp.tile(mine, counts), jax.numpy.tile(other, counts))


def test_split_indices_count_from_the_end_and_stop_there_as_in_numpy():
    value = np.arange(4)
    for indices in ([1, 9], [-1], [-9, 2]):
        got = jnp.split(jnp.array(value), indices)
        assert [x.tolist() for x in got] == [x.tolist() for x in np.split(value, indices)]


def test_reshape_by_a_traced_number_says_what_to_do():
    def f(x):
        return x.reshape(jnp.array(x.shape).prod())

    with pytest.raises(TypeError) as caught:
        xtrace.jit(f)(jnp.ones((2, 3)))
    message = str(caught.value)
    shape = "[JitTracer(int32[])"
    assert f"Shapes must be 1D sequences of concrete values of integer type, got {shape}" in message
    assert "If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions." in message
    assert "This value became a tracer due to xtrace operations on these lines:" in message
    assert "(f)" in message and "test_manipulation.py" in message
    assert xtrace.jit(lambda x: x.reshape((np.prod(x.shape),)))(jnp.ones((2, 3))).shape == (6,)


def test_what_must_be_concrete_says_so():
    for text in ("jnp.repeat(jnp.ones(3), n)", "jnp.split(jnp.ones(3), n)", "jnp.pad(jnp.ones(3), n)"):
        with pytest.raises(ConcretizationTypeError, match="Abstract tracer value"):
            xtrace.jit(lambda n, text=text: eval(text, {"jnp": jnp, "n": n}))(1)


def test_jaxprs_read_as_in_jax():
    def f(x, v):
        return jnp.stack([v, v]), jnp.roll(x, 1, 0), jnp.expand_dims(x, 0), x.T, jnp.split(x, 2, 1)

    operations = [str(e.primitive) for e in xtrace.make_jaxpr(f)(jnp.ones((3, 4)), jnp.ones(4)).eqns]
    assert operations == ["stack", "slice", "slice", "concatenate", "broadcast_in_dim", "transpose", "split"]


@pytest.mark.parametrize("count", [2, 7, 40])
@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
def test_a_program_rolls_an_axis_once(count, axis):
    axes = axis if axis is None or axis == 0 else axis * (count // 2) + axis[: count % 2]
    text = xtrace.jit(lambda x, s: jnp.roll(x, s, axes)).lower(np.ones((4, 6)), np.arange(count)).as_text()
    assert text.count("stablehlo.dynamic_slice") == (2 if axis == (0, 1) else 1)
    mixed = xtrace.jit(lambda x, s: jnp.roll(x, [s, 3] * count, 0)).lower(np.ones((4, 6)), 1).as_text()
    assert mixed.count("stablehlo.dynamic_slice") + mixed.count("stablehlo.slice") == 1


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_shifts_of_every_integer_are_added_exactly(dtype):
    bounds = np.iinfo(dtype)
    shifts = np.array([bounds.min, bounds.max, bounds.max, bounds.min, 1], dtype)
    for size in (1, 7, 300):
        x, expected = np.arange(size), np.roll(np.arange(size), [int(n) for n in shifts])
        np.testing.assert_array_equal(xtrace.jit(jnp.roll)(x, shifts), expected)
        mixed = xtrace.jit(lambda x, s: jnp.roll(x, [*map(int, shifts[:2]), *s]))(x, shifts[2:])
        np.testing.assert_array_equal(mixed, expected)
    many, x = np.full(5000, 2**20 - 1, np.int32), np.arange(2**20, dtype=np.int8)
    np.testing.assert_array_equal(jnp.roll(x, jnp.asarray(many)), np.roll(x, -5000))


def test_integers_may_be_arrays_without_axes():
    x = jnp.arange(6).reshape(2, 3)
    assert x.reshape(jnp.array(6)).shape == jnp.reshape(x, jnp.array(-1)).shape == (6,)
    assert jnp.reshape(x, (jnp.array(-1), jnp.array(2))).shape == (3, 2)
    assert jnp.concatenate([x, x], jnp.array(1)).shape == (2, 6)
