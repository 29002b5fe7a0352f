"""What arguments may be: axes by any sequence, numbers that only one dtype holds, operands of other classes, types."""

import collections
import operator
import warnings

import jax
import jax.numpy
import numpy as np
import pytest
import scipy.sparse

import xtrace
from xtrace import lax, tree_util
from xtrace import numpy as jnp

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
OPERATORS = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift", "matmul", "eq",
    "ne", "lt", "le", "gt", "ge", "iadd", "imul", "imatmul",
]
REFUSED = [{}, {1}, [1.0], (1.0,), np.array(["a"]), np.array([None])]


class Deferring:
    """Takes over every operator."""

    def __getattr__(self, name):
        raise AttributeError(name)

    def _taken(self, other):
        return "taken"

    __array_ufunc__ = None
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rand__ = __ror__ = _taken
    __rxor__ = __rlshift__ = __rrshift__ = __rmatmul__ = __rdivmod__ = __lt__ = __le__ = __gt__ = __ge__ = _taken
    __eq__ = __ne__ = _taken
    __hash__ = None


class Factors(tuple):
    """A tuple that multiplies arrays."""

    def __rmul__(self, other):
        return "taken"


@pytest.mark.parametrize("name", [*OPERATORS, "divmod"])
def test_operators_leave_unknown_classes_to_their_own_methods(name):
    function = divmod if name == "divmod" else getattr(operator, name)
    assert function(jnp.ones(4), Deferring()) == "taken"
    assert xtrace.jit(lambda x: len(function(x, Deferring())))(jnp.ones(4)) == 5
    assert jnp.ones(4) * Factors((2.0,)) == "taken"


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("other", REFUSED, ids=repr)
def test_operators_refuse_containers_and_arrays_of_no_numbers(name, other):
    for package in (jnp, jax.numpy):
        with pytest.raises((TypeError, ValueError)):
            getattr(operator, name)(package.ones(4), other)


@pytest.mark.parametrize("axis", [range(2), [0, 1], {0, 1}, np.array([0, 1]), collections.deque([0, 1])], ids=repr)
def test_axes_are_any_sequence(axis):
    x = jnp.asarray(X)
    for name in ("sum", "max", "all", "mean", "var", "std", "prod", "any", "flip", "ptp", "nansum", "count_nonzero"):
        np.testing.assert_allclose(getattr(jnp, name)(x, axis=axis), getattr(jnp, name)(x, axis=(0, 1)))
    assert jnp.expand_dims(x, axis).shape == (1, 1, 2, 3, 4)
    assert jnp.squeeze(jnp.ones((1, 1, 3)), axis).shape == (3,)
    np.testing.assert_array_equal(jnp.roll(x, 1, axis), jnp.roll(x, 1, (0, 1)))
    np.testing.assert_array_equal(x.sum(axis), x.sum((0, 1)))


def test_axes_and_shapes_are_read_once():
    x = jnp.asarray(X)
    for name in ("sum", "max", "all", "mean", "var", "flip", "ptp", "nansum", "count_nonzero"):
        np.testing.assert_allclose(getattr(jnp, name)(x, iter((0, 1))), getattr(jnp, name)(x, (0, 1)))
    np.testing.assert_array_equal(jnp.roll(x, iter((1, 2)), iter((0, 1))), jnp.roll(x, (1, 2), (0, 1)))
    assert jnp.moveaxis(x, iter((0,)), iter((2,))).shape == (3, 4, 2)
    assert jnp.squeeze(jnp.expand_dims(x, iter((0, 1))), iter((0,))).shape == (1, 2, 3, 4)
    assert x.transpose(iter((2, 0, 1))).shape == jnp.tile(jnp.ones(()), iter((4, 2, 3))).shape == (4, 2, 3)
    for shaped in (x.reshape, lambda n: lax.reshape(x, n), lambda n: lax.full(n, 1.0), lambda n: jnp.resize(x, n)):
        assert shaped(n for n in (4, 6)).shape == (4, 6)
    assert x.reshape(n for n in (-1, 6)).shape == (4, 6)
    assert lax.broadcasted_iota(int, iter((2, 3)), 1).shape == jnp.indices(iter((2, 3)))[0].shape == (2, 3)
    found = jnp.unravel_index(5, iter((2, 3))), jnp.unravel_index(5, range(2, 4))
    assert str(found) == str((jnp.unravel_index(5, (2, 3)),) * 2)


FLAGS = {
    "gelu": lambda package, flag: package.nn.gelu(X, approximate=flag),
    "unique": lambda package, flag: package.numpy.unique(X, return_index=flag, return_counts=flag),
    "indices": lambda package, flag: package.numpy.indices((2, 3), sparse=flag),
    "cumsum": lambda package, flag: package.lax.cumsum(X, 1, reverse=flag),
    "array_equal": lambda package, flag: package.numpy.array_equal(X, X, equal_nan=flag),
    "logsumexp": lambda package, flag: package.nn.logsumexp(X, return_sign=flag),
    "choice": lambda package, flag: package.random.choice(package.random.key(0), 5, (4,), replace=flag),
    "dynamic_slice": lambda package, flag: package.lax.dynamic_slice_in_dim(X, 1, 1, allow_negative_indices=flag),
}


@pytest.mark.parametrize("flag", [np.bool_(True), np.array(False), jnp.array(True), 1], ids=repr)
@pytest.mark.parametrize("name", FLAGS)
def test_flags_that_python_reads_are_any_values(name, flag):
    found, expected = FLAGS[name](xtrace, flag), FLAGS[name](jax, np.asarray(flag))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-6), found, expected)


def test_flags_of_compiled_programs_are_no_arrays():
    for package in (jnp, jax.numpy):
        assert package.sum(X, 0, keepdims=np.True_).shape == (1, 3, 4)
        with pytest.raises(ValueError, match=r"keepdims|Non-hashable"):
            package.sum(X, 0, keepdims=np.array(True))


@pytest.mark.parametrize("method", ["set", "add", "max", "multiply"])
def test_integers_that_only_the_target_holds_are_written(method):
    largest = 2**32 - 1
    for package in (jnp, jax.numpy):
        found = getattr(package.arange(3, dtype="uint32").at[1], method)(largest)
        assert found.tolist() == [0, 0 if method == "add" else largest, 2]
        with pytest.raises(OverflowError):
            getattr(package.zeros(3, "int32").at[1], method)(largest)


def test_array_takes_what_jax_takes_by_position():
    with pytest.warns(DeprecationWarning):
        assert jnp.array(X, None, False, "K", 4).shape == (1, 2, 3, 4)
    with pytest.raises(TypeError, match="at most 5"):
        jnp.array(X, None, False, "K", 4, None)


@pytest.mark.parametrize(
    "value", [None, "text", 1j, 2, np.complex64(1), [1j], [1, 2.0], X, "float32", "complex64", range(2), memoryview(X)],
    ids=lambda value: type(value).__name__,
)
def test_complexity_of_objects(value):
    for name in ("iscomplexobj", "isrealobj"):
        assert getattr(jnp, name)(value) == getattr(jax.numpy, name)(value)


def test_complexity_of_scalar_types():
    assert jnp.iscomplexobj(jnp.complex64)
    assert not jnp.iscomplexobj(jnp.float32)
    assert jnp.isrealobj(jnp.bfloat16)


@pytest.mark.parametrize("value", [None, "text", float, {}, Ellipsis, 2, [1, 2], X], ids=repr)
def test_shapes_of_objects(value):
    for name in ("shape", "ndim", "size"):
        assert getattr(jnp, name)(value) == getattr(np, name)(value)


class _OfAnotherLibrary:
    shape, ndim, size = (2, 3), 2, 6


@pytest.mark.parametrize(
    "value",
    [
        np.array(["a", "b"]), np.array([None, 1]), np.array(["2020"], "M8[D]"), np.str_("a"), "abc", int,
        scipy.sparse.csr_array(np.ones((2, 3))), np.ma.masked_array([1, 2], [0, 1]), np.zeros(2, [("a", "i4")]),
        _OfAnotherLibrary(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_shapes_of_arrays_of_other_libraries(value):
    for name in ("shape", "ndim", "size"):
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            assert getattr(jnp, name)(value) == getattr(jax.numpy, name)(value), name


@pytest.mark.parametrize("order", ["C", "F", "A"])
@pytest.mark.parametrize("shape", [(2, 3, 4), (6, 4), -1, (4, -1), 24, range(24, 25), np.array([3, 8])], ids=repr)
def test_reshape_keeps_an_array_of_numpy(shape, order):
    for values in (X, X.astype(np.int64), np.asfortranarray(X)):
        found, expected = (package.reshape(values, shape, order) for package in (jnp, jax.numpy))
        assert type(found) is type(expected) is np.ndarray and found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        assert np.shares_memory(found, values) == np.shares_memory(expected, values)


def test_reshape_keeps_an_array_of_numpy_while_tracing():
    assert xtrace.jit(lambda: float(jnp.reshape(X, (6, 4))[0, 1]))() == 1
    assert type(jnp.reshape(np.float32(2), (1, 1))) is np.ndarray
    assert isinstance(jnp.reshape(2.0, ()), xtrace.Array)
    for package in (jnp, jax.numpy):
        with pytest.raises(ValueError, match="cannot reshape array of size 24 into shape"):
            package.reshape(X, (5, 5))


@pytest.mark.parametrize(
    ("y", "x", "axis"),
    [((2, 3, 10), (3, 10), -1), ((10,), (3, 10), -1), ((3, 10), (2, 3, 10), -1), ((2, 3, 10), (10,), 2)],
    ids=repr,
)
def test_trapezoid_of_coordinates_of_another_rank(y, x, axis):
    values, places = np.arange(np.prod(y)).reshape(y) / 7, np.arange(np.prod(x)).reshape(x) ** 2 / 9
    expected = jax.numpy.trapezoid(values, places, axis=axis)
    np.testing.assert_allclose(jnp.trapezoid(values, places, axis=axis), expected, rtol=1e-5)


@pytest.mark.parametrize("mode", ["promise_in_bounds", "clip", "fill", None])
@pytest.mark.parametrize("wrap", [None, True, False])
def test_whether_take_along_axis_counts_from_the_end(mode, wrap):
    options = {} if wrap is None else {"wrap_negative_indices": wrap}
    found, expected = (
        package.take_along_axis(package.asarray(X[0]), np.array([[-1, -3]] * 3), 1, mode, **options)
        for package in (jnp, jax.numpy)
    )
    np.testing.assert_array_equal(found, expected)


def test_a_registered_named_tuple_is_flattened_as_registered():
    pair = collections.namedtuple("pair", "value name")
    tree_util.register_pytree_node(pair, lambda p: ((p.value,), p.name), lambda name, values: pair(values[0], name))
    assert tree_util.tree_leaves(pair(1.0, "text")) == [1.0]
    assert tree_util.flatten_one_level_with_keys(pair(1.0, "text"))[1] == "text"
    assert xtrace.grad(lambda p: p.value**2)(pair(3.0, "text")) == pair(6.0, "text")
    with pytest.raises(ValueError, match="registration"):
        tree_util.register_pytree_node(pair, lambda p: ((), None), lambda _, __: None)


def test_names_are_those_of_jax():
    assert repr(jnp.float32) == repr(jax.numpy.float32)
    mine, other = jnp.ones(1).sharding, jax.numpy.ones(1).sharding
    assert type(mine).__name__ == type(other).__name__
    assert repr(mine).startswith("SingleDeviceSharding(device=")
