"""Reading and updating by index, take and nonzero, compared with jax; indices are drawn from a small grammar."""

import warnings

import jax
import jax.numpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.operands import BOOL, FLOAT, INTEGER, assert_same, dtypes_in, ours, random_values, seeds, theirs
from xtrace._src.core.errors import ConcretizationTypeError, NonConcreteBooleanIndexError
from xtrace.numpy.indexing.index_plans import read_index

READS = [
    "x[0]", "x[-1]", "x[5]", "x[-5]", "x[0, 1]", "x[1:]", "x[::2]", "x[::-1]", "x[2:0:-1]", "x[-1:-3:-1]", "x[3:1]",
    "x[5:10]", "x[-10:2]", "x[:, None]", "x[..., 0]", "x[...]", "x[()]", "x[None]", "x[0, None, 1:3]",
    "x[None, ..., None]", "x[n]", "x[:, n]", "x[n, n]", "x[n, 1]", "x[1, n]", "x[n[0]]", "x[n[0], 1:3]",
    "x[1:3, n[0]]", "x[n[0], n[1]]", "x[None, n[0]]", "x[n[2], ::-1]", "y[n[1], ::-1, ::2]", "x[np.array([0, 1])]",
    "x[np.array([5, -5, -1])]", "x[jnp.array([5, -5, -1])]", "x[jnp.array(-7)]", "x[np.array(0)]", "x[np.uint8(1)]",
    "x[u[:2]]", "x[i[0]]", "x[u[1]]", "x[np.array([True, False, True])]", "x[True]", "x[False]", "x[:, True]",
    "x[0, [0, 1]]", "x[[0, 1], ...]", "y[n[:2], :, n[:2]]", "y[:, n[:2], None, n[:2]]", "y[:, n[:2], n[:2]]",
    "y[::2, n[:2]]", "y[0, n[:2]]", "y[0, :, n[:2]]", "y[n[0], 1:, n]", "y[None, n[:2], 0]", "y[n[:, None], :, n]",
    "y[..., n, None]", "x[n[:, None], n]", "x[n, :2]", "x[jnp.array([[0, 1], [1, 0]])]", "x[np.int64(0):np.int64(2)]",
    "x[slice(0, 2)]", "x[np.array([], int)]", "x[:, np.array([], int)]", "z[:, 0]", "z[np.array([], int)]", "z[1:]",
    "w[()]", "w[...]", "w[None]", "w[True]", "w[None, ..., None]", "x[np.zeros((2, 0), int)]", "b[1]", "c[0, ::-1]",
    "h[n]", "i[n, n]", "jnp.full((3,), 1.0)[0]", "jnp.full((3,), 1.0)[n]",
]
MASKS = [
    "x[x > 2]", "x[x[:, 0] > 0]", "x[:, x[0] > -3]", "x[x[:, 0] > 0, 1]", "x[x[:, 0] > 0, jnp.array([1])]",
    "x[x > 99]", "y[:, x > 2]", "y[jnp.array([True, False])]", "x[jnp.bool_(True)]", "x[0:jnp.array(2)]",
    "jnp.nonzero(x)", "jnp.flatnonzero(b)", "jnp.argwhere(x > 2)", "jnp.argwhere(w)", "x.nonzero()", "jnp.nonzero(c)",
    "x.at[x > 2].set(0)", "x.at[x[:, 0] > 0].add(v)",
]
CHOSEN = [
    "x.at[5].get()", "x.at[5].get(mode='fill')", "x.at[n].get(mode='fill', fill_value=7)",
    "x.at[n + 2].get(mode='fill')", "x.at[n + 2].get(mode='clip')", "x.at[n - 3].get(mode='clip')",
    "x.at[n + 2].get(mode='drop')", "x.at[n].get(mode='promise_in_bounds')", "x.at[n].get()",
    "x.at[5, n + 3].get(mode='fill')", "i.at[n + 2].get(mode='fill')", "u.at[n + 4].get(mode='fill')",
    "b.at[n + 2].get(mode='fill')", "x.at[n].get(wrap_negative_indices=False, mode='fill')",
    "x.at[1:3, 0].get(mode='fill')", "y.at[:, n, 1:3].get(mode='fill')", "x.at[-1].get(mode='fill')",
    "x.at[jnp.array([0, 2])].get(indices_are_sorted=True, unique_indices=True, mode='clip')",
    "x.at[n].get(mode=lax.GatherScatterMode.CLIP)", "jnp.take(x, n, 0)", "jnp.take(x, n)", "jnp.take(v, 2)",
    "jnp.take(w, 0)", "jnp.take(x, n + 9, axis=1)", "jnp.take(x, n - 2, axis=1, mode='clip')",
    "jnp.take(x, n * 9, mode='wrap')", "jnp.take(i, n * 9, mode='fill')",
    "jnp.take(x, n > 0, axis=0)", "x.take(True)",
    "jnp.take(x, n + 3, axis=0, mode='fill', fill_value=7)", "x.take(n, axis=-1)",
    "jnp.take(z, jnp.array([], int), axis=0)", "jnp.take(x, jnp.array([[0, 1], [2, 3]]), axis=1)",
    "jnp.nonzero(x, size=3)", "jnp.nonzero(x, size=30, fill_value=-1)",
    "jnp.nonzero(y > 3, size=30, fill_value=(7, 8, 9))", "jnp.flatnonzero(b, size=3)", "jnp.flatnonzero(x, size=0)",
    "jnp.argwhere(x, size=20, fill_value=9)", "jnp.nonzero(x, size=30, fill_value=np.float32(0.5))",
    "jnp.argwhere(x, size=20, fill_value=(1, 2.5))", "jnp.nonzero(z, size=2)", "x.nonzero(size=4)",
    "jnp.flatnonzero(q, size=5)",
]
UPDATES = [
    "x.at[0].set(5)", "x.at[5].set(5)", "x.at[-5].set(5)", "x.at[n].add(1)", "x.at[jnp.array([0, 0])].add(1)",
    "x.at[0, n + 2].set(5)", "x.at[0].set(v)", "x.at[0].set([1, 2, 3, 4])", "x.at[:, 1].set(v[1:])",
    "x.at[::2].set(5)", "x.at[::-1].set(x)", "x.at[1:3, ::2].multiply(3)", "x.at[2:0:-1, 1].set(v[:2])",
    "x.at[None].set(2)", "x.at[None, ::-1].set(x[None])", "x.at[...].add(1)", "x.at[()].set(1)", "w.at[()].set(2)",
    "x.at[:0].set(1)", "x.at[0].multiply(2)", "x.at[0].mul(2)", "x.at[0].divide(2)", "x.at[0].power(2)",
    "x.at[0].subtract(2)", "x.at[0].min(1)", "x.at[0].max(-3)", "x.at[0].apply(jnp.sin)",
    "x.at[:, n].apply(lambda e: e * 2)", "x.at[n[0], 1:3].set(9)", "y.at[n[:2], :, n[:2]].set(x[:2, :3])",
    "y.at[:, n[:2], None, n[:2]].add(1)", "y.at[1, n].set(x)", "y.at[0, :, n].set(x[:, :3])",
    "y.at[n[:, None], 0, n].add(1)", "y.at[::-1, n, ::2].set(jnp.ones((2, 3, 2)))",
    "x.at[jnp.array([[0, 1], [1, 0]])].add(1)", "x.at[True].set(1)", "x.at[False].set(1)",
    "x.at[5].set(1, mode='clip')", "x.at[-1, n - 9].add(1, mode='clip')", "x.at[n + 2].set(1, mode='drop')",
    "x.at[n].add(1, wrap_negative_indices=False)", "i.at[0].set(3)", "i.at[n].max(5)", "b.at[0].set(True)",
    "b.at[n].max(True)", "h.at[n].add(1)", "c.at[0].set(2)", "i.at[0].divide(2)", "jnp.full((2,), 1.0).at[0].set(w)",
    "jnp.full((2,), 1.0).at[0].add(s)", "x.at[0].set(w)", "jnp.full((2,), 1).at[0].set(1)",
    "x.at[jnp.array([2, 0])].set(1.0, unique_indices=True)", "z.at[:, 0].set(1)", "x.at[np.array([0, 2])].set(x[:2])",
]
TABLES = {"reads": READS, "chosen": CHOSEN, "updates": UPDATES}
IN_TABLES = [text for table in TABLES.values() for text in table]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("text", IN_TABLES + MASKS)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, among=IN_TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_jitted_values_are_those_of_jax(table):
    check_jitted(TABLES[table])


ERRORS = [
    ("x[1.5]", TypeError, "integer or boolean type, got indexer with type float.*at position 0.*valid indices"),
    ("x[0, 'a']", TypeError, "string indexing is not supported; got 'a' at position 1.*integers, slices"),
    ("x['a']", TypeError, "string indexing"),
    ("x[1j]", TypeError, "got indexer with type complex"),
    ("x[jnp.array([1.5])]", TypeError, "got indexer with type float32"),
    ("x[np.array(['a'])]", TypeError, "must have integer or boolean type"),
    ("x[[0, 1]]", TypeError, r"use `arr\[array\(seq\)\]` instead of `arr\[seq\]`"),
    ("x[range(2)]", TypeError, "non-tuple sequence"),
    ("x[object()]", IndexError, "only integers, slices"),
    ("x[{}]", IndexError, "only integers, slices"),
    ("x[0, 1, 2]", IndexError, "Too many indices: array is 2-dimensional, but 3 were indexed"),
    ("jnp.float32(1)[0]", IndexError, "array is 0-dimensional, but 1 were indexed"),
    ("x[..., ...]", IndexError, "single ellipsis"),
    ("x[jnp.array([True, False])]", IndexError, r"index 0: got \(2,\), expected \(3,\)"),
    ("x[:, x[:, 0] > 0]", IndexError, r"index 1: got \(3,\), expected \(4,\)"),
    ("x[0:2.5]", TypeError, "slice entries must be integers"),
    ("x[::0]", ValueError, "slice step cannot be zero"),
    ("x[jnp.array([0, 1]), jnp.array([0, 1, 2])]", ValueError, r"\(2,\), \(3,\)"),
    ("jnp.zeros((0, 3))[0]", IndexError, "out of bounds for axis 0 with size 0"),
    ("jnp.zeros((0, 3))[jnp.array([0])]", IndexError, "out of bounds for axis 0 with size 0"),
    ("x.at[0, 1.5].set(1)", TypeError, "must have integer or boolean type"),
    ("x.at[0].set(jnp.ones(3))", ValueError, "does not broadcast"),
    ("x.at[0].set('a')", TypeError, "is not a valid"),
    ("x.at[0].get(mode='nothing')", ValueError, "'nothing'"),
    ("jnp.take(x, 0, mode='promise_in_bounds')", ValueError, "mode must be"),
    ("x.at[0].set(1, mode='nothing')", ValueError, "'nothing'"),
    ("x.at[0].set(1, out_sharding=3)", TypeError, "out_sharding"),
    ("x.at[0].apply(lambda e: e > 1)", TypeError, "func must map"),
    ("jnp.array([True]).at[0].add(True)", TypeError, "bool"),
    ("jnp.take(x, 1.5)", ValueError, "take: indices must have an integer type, got dtype float32"),
    ("jnp.take(x, 1, mode='drop')", ValueError, "take: mode must be 'fill', 'clip' or 'wrap', got 'drop'"),
    ("jnp.take(x, 1, mode='promise_in_bounds')", ValueError, "take: mode must be"),
    ("jnp.take(x, 1, mode=3)", ValueError, "take: mode must be"),
    ("jnp.take(x, [1, 2])", TypeError, "take requires ndarray or scalar arguments; argument 1"),
    ("jnp.take(x, 1, axis=5)", ValueError, "take: axis 5 is out of bounds"),
    ("jnp.take(x, 1, mode='raise')", NotImplementedError, "'raise'"),
    ("jnp.take(jnp.zeros((0,)), 0)", IndexError, "without elements"),
    ("jnp.nonzero(jnp.float32(1))", ValueError, "atleast_1d"),
    ("jnp.nonzero(x, size=-1)", ValueError, "size must not be negative"),
    ("jnp.nonzero(x, size=2, fill_value=(1, 2, 3))", ValueError, "fill_value must be a number or a tuple of 2"),
    ("jnp.nonzero(x, fill_value=[1, 2])", ValueError, "fill_value must be a number or a tuple of 2"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_indices_are_named(text, error, fragment):
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "np": np, "x": jnp.ones((3, 4))})


def test_a_traced_mask_is_an_error():
    """Spec 2.9 and section 3."""
    x = jnp.arange(10.0) - 5

    def f(x):
        return x[x < 0]

    assert f(x).tolist() == [-5, -4, -3, -2, -1]
    with pytest.raises(NonConcreteBooleanIndexError) as caught:
        xtrace.jit(f)(x)
    assert "Array boolean indices must be concrete; got ShapedArray(bool[10])" in str(caught.value)
    assert isinstance(caught.value, IndexError)
    with pytest.raises(NonConcreteBooleanIndexError):
        xtrace.jit(lambda x: x.at[x < 0].set(0))(x)


def test_traced_slice_bounds_and_sizes_are_errors():
    with pytest.raises(IndexError, match=r"Slice entries must be static integers.*at position 0"):
        xtrace.jit(lambda x, n: x[n:])(jnp.ones(3), 1)
    with pytest.raises(ConcretizationTypeError, match="nonzero without size="):
        xtrace.jit(jnp.nonzero)(jnp.ones(3))


def test_updating_casts_and_warns():
    x = jnp.arange(3, dtype=jnp.int8)
    with pytest.warns(FutureWarning, match="cannot safely cast value from dtype=float32 to dtype=int8"):
        assert x.at[0].set(1.5).tolist() == [1, 1, 2]
    assert x.tolist() == [0, 1, 2]


@pytest.mark.parametrize("value", [1.5, 1j, np.complex64(2 + 1j), 3])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("write", [
    lambda p, x, v: x.at[0].set(v), lambda p, x, v: x.at[:2].add(v),
    lambda p, x, v: p.jit(lambda x: x.at[0].multiply(v))(x),
    lambda p, x, v: p.numpy.put(x, 0, v, inplace=False),
    lambda p, x, v: p.numpy.place(x, p.numpy.array([True, False, True]), v, inplace=False),
    lambda p, x, v: p.numpy.fill_diagonal(p.numpy.outer(x, x), v, inplace=False),
    lambda p, x, v: p.numpy.put_along_axis(x, p.numpy.array([0]), v, 0, inplace=False),
    lambda p, x, v: p.numpy.insert(x, 0, v),
])
def test_writes_warn_of_lost_parts_as_in_jax(write, dtype, value):
    def outcome(package):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            package.eval_shape(lambda x: write(package, x, value), package.ShapeDtypeStruct((3,), dtype))
        return sorted(x.category.__name__ for x in caught)

    assert outcome(xtrace) == outcome(jax)


def test_positions_share_one_plan_and_so_one_compiled_program():
    """A loop over positions must not compile once for each."""
    assert len({read_index((10, 10), i, True, False).plan for i in range(-10, 10)}) == 1
    assert len({read_index((10, 10), (i, 3), True, False).plan for i in range(10)}) == 1
    assert len({read_index((10, 10), slice(i, i + 2), True, False).plan for i in range(9)}) == 1
    x = jnp.arange(100.0).reshape(10, 10)
    assert [float(x[i, 3]) for i in range(10)] == [10.0 * i + 3 for i in range(10)]
    assert [x[i : i + 2].tolist()[1][0] for i in range(9)] == [10.0 * (i + 1) for i in range(9)]


def test_static_indices_are_slices_and_not_gathers():
    def f(x):
        return x[0], x[1:, ::2], x[::-1], x[:, None], x[..., -1]

    operations = [str(e.primitive) for e in xtrace.make_jaxpr(f)(jnp.ones((3, 4))).eqns]
    assert operations == ["slice", "squeeze", "slice", "rev", "broadcast_in_dim", "slice", "squeeze"]
    traced = [str(e.primitive) for e in xtrace.make_jaxpr(lambda x, n: x[n])(jnp.ones((3, 4)), 1).eqns]
    assert "dynamic_slice" in traced and "gather" not in traced
    assert "gather" in str(xtrace.make_jaxpr(lambda x, n: x[n])(jnp.ones((3, 4)), jnp.array([1])))


@pytest.mark.parametrize("method", ["multiply", "divide", "power", "set", "min"])
def test_one_position_for_each_lane_is_written_once(method):
    """So the derivative by a factor exists, as without vmap."""
    x, n, y = np.arange(1, 13, dtype=np.float32).reshape(3, 4) / 8, np.array([0, 3, 3]), np.array([2, 3, 4], np.float32)

    def total(root, x, y):
        found = root.vmap(lambda x, n, y: getattr(x.at[n], method)(y))(x, n, y)
        return (found**2).sum() + (getattr(x.at[n[1], ::2], method)(y[:2]) ** 2).sum()

    def derivatives(root):
        return root.jit(root.grad(lambda x, y: total(root, x, y), (0, 1)))(x, y)

    for got, expected in zip(derivatives(xtrace), derivatives(jax), strict=True):
        assert_same(got, expected, 16)


def test_the_index_is_read_again_after_a_change():
    index = np.array([0, 1])
    x = jnp.arange(3)
    assert x[index].tolist() == [0, 1]
    index[0] = 2
    assert x[index].tolist() == [2, 1]


# The grammar: an index is items for the axes of the operand in turn, with new axes and an ellipsis anywhere.


@st.composite
def slices(draw, length):
    bound = st.one_of(st.none(), st.integers(-length - 2, length + 2))
    step = draw(st.sampled_from([None, 1, 2, 3, -1, -2]))
    return slice(draw(bound), draw(bound), step)


@st.composite
def indices(draw, shape, *, masks=True):
    """Draw an index for `shape`: integers, slices, index arrays, masks, None and an ellipsis."""
    block = draw(st.lists(st.integers(0, 3), max_size=2))
    items, axis = [], 0
    kinds = ["integer", "slice", "array", "scalar array", "list", *(["mask"] if masks else [])]
    while axis < len(shape) and draw(st.integers(0, 5)):
        length = shape[axis]
        kind = draw(st.sampled_from(kinds))
        if draw(st.integers(0, 6)) == 0:
            items.append(None)
        if kind in ("integer", "scalar array") and length:
            number = draw(st.integers(-length - 1, length))
            items.append(number if kind == "integer" else np.array(number, np.int32))
        elif kind in ("array", "list") and length:
            own = [n if draw(st.booleans()) else 1 for n in block][draw(st.integers(0, len(block))) :]
            values = np.random.default_rng(draw(seeds)).integers(-length - 1, length + 1, own)
            items.append(values.astype(draw(st.sampled_from([np.int32, np.int8]))))
        elif kind == "mask" and not any(isinstance(x, np.ndarray) and x.ndim for x in items):
            # A mask broadcasts with index arrays as the number of its true elements does, so it stands alone.
            items.append(random_values(np.bool_, (length,), draw(seeds)))
            break
        else:
            items.append(draw(slices(length)))
        axis += 1
    if draw(st.integers(0, 3)) == 0 and not any(isinstance(x, np.ndarray) and x.dtype == bool for x in items):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
    return items[0] if len(items) == 1 and draw(st.booleans()) else tuple(items)


def converted(index, convert):
    """Return the index with its arrays made those of one package."""
    if isinstance(index, tuple):
        return tuple(converted(x, convert) for x in index)
    return convert(index) if isinstance(index, np.ndarray) else index


@st.composite
def indexed(draw, *, masks=True):
    """Draw an operand's shape and an index that NumPy accepts but for its bounds."""
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=3)))
    index = draw(indices(shape, masks=masks))
    return shape, index


@pytest.mark.drawn(0.3)
@given(indexed(), dtypes_in([*BOOL, *INTEGER, *FLOAT]), seeds, st.booleans())
@settings(max_examples=100)
def test_reads_by_any_index(case, dtype, seed, as_numpy):
    shape, index = case
    value = random_values(dtype, shape, seed)
    convert = (lambda x: x, lambda x: x) if as_numpy else (ours, theirs)
    try:
        expected = theirs(value)[converted(index, convert[1])]
    except (IndexError, ValueError, TypeError) as error:
        with pytest.raises((IndexError, ValueError, TypeError)):
            ours(value)[converted(index, convert[0])]
        assert isinstance(error, Exception)
        return
    assert_same(ours(value)[converted(index, convert[0])], expected)


@given(indexed(masks=False), seeds)
@settings(max_examples=40)
def test_reads_by_any_traced_index(case, seed):
    shape, index = case
    value = random_values(np.float32, shape, seed)
    listed = list(index) if isinstance(index, tuple) else [index]
    places = [n for n, x in enumerate(listed) if isinstance(x, np.ndarray)]
    traced = [ours(listed[n]) for n in places]

    def read(x, arrays):
        found = list(listed)
        for n, array in zip(places, arrays, strict=True):
            found[n] = array
        return x[tuple(found)]

    try:
        expected = theirs(value)[converted(index, theirs)]
    except (IndexError, ValueError, TypeError):
        return
    assert_same(xtrace.jit(read)(ours(value), traced), expected)


@pytest.mark.drawn(0.3)
@given(
    indexed(), st.sampled_from(["set", "add", "multiply", "min", "max"]), seeds, st.sampled_from([None, "clip", "drop"])
)
@settings(max_examples=60)
def test_updates_by_any_index(case, method, seed, mode):
    shape, index = case
    value = random_values(np.float32, shape, seed, -4, 4)
    try:
        target = theirs(value)[converted(index, theirs)].shape
    except (IndexError, ValueError, TypeError):
        return
    if method == "set":
        # Which of several values for one element stays is not specified, so they are all the same.
        update = np.float32(7)
    else:
        update = random_values(np.float32, target, seed + 1, 1, 2)
    got = getattr(ours(value).at[converted(index, ours)], method)(ours(update), mode=mode)
    expected = getattr(theirs(value).at[converted(index, theirs)], method)(theirs(update), mode=mode)
    assert_same(got, expected, rounding=16)


@pytest.mark.drawn(0.3)
@given(st.data())
@settings(max_examples=15)
def test_take_and_nonzero_of_any_array(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    value = random_values(np.float32, shape, data.draw(seeds))
    axis = data.draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1)))
    places = np.random.default_rng(data.draw(seeds)).integers(-9, 9, data.draw(st.lists(st.integers(0, 3), max_size=2)))
    mode = data.draw(st.sampled_from([None, "clip", "wrap", "fill"]))
    got = jnp.take(ours(value), ours(places), axis=axis, mode=mode)
    assert_same(got, jax.numpy.take(theirs(value), theirs(places), axis=axis, mode=mode))
    mask = random_values(np.bool_, shape, data.draw(seeds))
    size, fill = data.draw(st.integers(0, 9)), data.draw(st.integers(-2, 2))
    got = jnp.nonzero(ours(mask), size=size, fill_value=fill)
    assert_same(got, jax.numpy.nonzero(theirs(mask), size=size, fill_value=fill))


_TWO = np.array([0, 1])
_MASK = np.array([True, False, True, False, True])
_NONE = np.zeros(0, bool)


# Of truth values beside an ellipsis or a new axis, jax keeps one element where NumPy keeps the axis.
@pytest.mark.drawn(0.2)
@pytest.mark.parametrize(
    "index",
    [
        np.s_[:, _TWO, ..., _TWO], np.s_[:, _TWO, ..., 0], np.s_[:, 0, ..., _TWO], np.s_[_TWO, ..., _TWO, _TWO],
        np.s_[..., _TWO, _TWO], np.s_[:, _TWO, _TWO, ...], np.s_[_TWO, ..., 0, 0], np.s_[0, ..., _TWO],
        np.s_[0, _TWO, ..., 0], np.s_[:, _TWO, ..., True, 0], np.s_[:, True, ..., _TWO, _TWO],
        np.s_[:, np.ones((4, 5), bool), ..., True], np.s_[:, 0, ..., _MASK], np.s_[:, _TWO, ..., np.array(0)],
        np.s_[:, _TWO, None, ..., _TWO], np.s_[:, 0, ..., 1], np.s_[None, True], np.s_[_TWO, None, True],
        np.s_[None, _TWO[:1], False], np.s_[_NONE], np.s_[_NONE, ...], np.s_[1:, _NONE], np.s_[:, None, _NONE],
        np.s_[_TWO[:1], _NONE], np.s_[np.zeros((0, 4), bool)], np.s_[np.zeros((3, 0), bool)],
        np.s_[np.zeros((0, 0), bool)], np.s_[:, np.zeros((4, 0), bool)], np.s_[_NONE, ..., _TWO[:1]],
        np.s_[0, ..., _NONE], np.s_[np.zeros((0, 4, 5), bool)],
    ],
    ids=repr,
)
def test_ellipses_and_masks_follow_numpy(index):
    values = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    x = jnp.asarray(values)
    expected = values[index]
    written = values.copy()
    written[index] = -np.arange(expected.size, dtype=np.float32).reshape(expected.shape)
    np.testing.assert_array_equal(x[index], expected)
    np.testing.assert_array_equal(x.at[index].get(mode="fill"), expected)
    np.testing.assert_array_equal(x.at[index].set(-jnp.arange(expected.size).reshape(expected.shape)), written)
    assert xtrace.eval_shape(lambda x: x[index], x).shape == expected.shape


def test_an_empty_mask_fits_axes_of_its_other_sizes_only():
    for shape in [(0, 5), (0, 4, 5, 1), (4, 0)]:
        with pytest.raises(IndexError):
            jnp.zeros((3, 4, 5))[np.zeros(shape, bool)]
