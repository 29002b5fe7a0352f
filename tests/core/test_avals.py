"""Avals: interned, immutable, and found for every kind of value an operation accepts."""

import copy
import enum
import gc
import pickle
import threading
import weakref

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xtrace
from tests.support.names import stable_name
from tests.support.operands import ours
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, ShapeDtypeStruct, aval_of, is_array_like, scalar_aval, short_repr
from xtrace.sharding import AbstractMesh, NamedSharding, PartitionSpec

KEY = dtypes.StoredDType("key<fry>", np.dtype(np.uint32), (2,))


# Interning


@given(
    st.lists(st.integers(0, 5), max_size=4).map(tuple),
    st.sampled_from([*dtypes.all_dtypes.values(), KEY]),
    st.booleans(),
    st.sampled_from([None, NamedSharding(AbstractMesh((2,), "x"), PartitionSpec())]),
)
def test_equal_avals_are_one_object(shape, dtype, weak_type, sharding):
    one = ShapedArray(shape, dtype, weak_type, sharding)
    assert ShapedArray(list(shape), dtype, int(weak_type), sharding) is one
    assert ShapedArray(tuple(map(np.int64, shape)), dtype, weak_type, sharding) is one
    # A split does not survive another shape.
    assert one.update() is one and one.update(shape=(*shape, 7)).update(shape=shape, sharding=sharding) is one
    assert pickle.loads(pickle.dumps(one)) is one
    assert copy.copy(one) is one and copy.deepcopy(one) is one
    assert (one.shape, one.dtype, one.weak_type, one.explicit_sharding) == (shape, dtype, weak_type, sharding)
    assert one.ndim == len(shape) and one.size == int(np.prod(shape, dtype=int))
    assert one.strip_weak_type() is ShapedArray(shape, dtype, False, sharding)


def test_every_spelling_of_a_dtype_gives_the_same_aval():
    one = ShapedArray((2,), np.dtype(np.float32))
    assert ShapedArray((2,), "float32") is ShapedArray((2,), np.float32) is ShapedArray((2,), "f4") is one


def test_different_avals_differ():
    one = ShapedArray((2,), np.dtype(np.float32))
    split = NamedSharding(AbstractMesh((2,), "x"), PartitionSpec(None))
    others = [
        ShapedArray((2, 1), one.dtype), ShapedArray((), one.dtype), ShapedArray((2,), np.dtype(np.int32)),
        ShapedArray((2,), one.dtype, True), ShapedArray((2,), one.dtype, False, split),
    ]
    assert len({one, *others}) == 6 and all(one != other for other in others)


def test_avals_nobody_holds_are_freed():
    reference = weakref.ref(ShapedArray((123457, 3), np.dtype(np.int8)))
    gc.collect()
    assert reference() is None


def test_threads_making_the_same_avals_get_the_same_objects():
    threads, rounds = 8, 300
    found = [[] for _ in range(threads)]
    start = threading.Barrier(threads)

    def make(mine):
        start.wait()
        for i in range(rounds):
            # Every other one is dropped at once, so that entries die while others look them up.
            ShapedArray((99991, i), np.dtype(np.float32))
            mine.append(ShapedArray((i, 99991), np.dtype(np.float32)))

    workers = [threading.Thread(target=make, args=(mine,)) for mine in found]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for same in zip(*found, strict=True):
        assert all(one is same[0] for one in same)
        assert same[0].shape[1] == 99991


@pytest.mark.parametrize("shape", [(2.5,), ("a",), (None,)])
def test_a_size_that_is_no_integer_is_an_error(shape):
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        ShapedArray(shape, np.dtype(np.float32))


@pytest.mark.parametrize("shape, dtype", [
    ((2**57,), np.int8), ((2**55,), np.float32), ((10**6,) * 4, np.float32), ((2**62, 4, 0), np.float32),
])
def test_arrays_that_no_device_can_address_have_no_type_in_stablehlo(shape, dtype):
    with pytest.raises(ValueError, match=r"an array of type .* would have 2\*\*57 bytes or more"):
        _ = ShapedArray(shape, np.dtype(dtype)).mlir_type


def test_arrays_below_the_limit_have_a_type_in_stablehlo():
    assert ShapedArray((2**57 - 1,), np.dtype(np.int8)).mlir_type == f"tensor<{2**57 - 1}xi8>"
    assert ShapedArray((0, 2**62, 4), np.dtype(np.int8)).mlir_type == f"tensor<0x{2**62}x4xi8>"


def test_avals_are_immutable():
    one = ShapedArray((2,), np.dtype(np.float32))
    with pytest.raises(AttributeError, match=r"update\(shape=\.\.\.\)"):
        one.shape = (3,)
    assert one.shape == (2,)


@pytest.mark.parametrize("dtype", dtypes.all_dtypes.values(), ids=str)
def test_aval_texts(dtype):
    one, weak = ShapedArray((3, 4), dtype), ShapedArray((), dtype, True)
    assert repr(one) == f"ShapedArray({dtype.name}[3,4])" and one.str_short(False) == f"{dtype.name}[3,4]"
    assert repr(weak) == f"ShapedArray({dtype.name}[], weak_type=True)"
    if dtype.itemsize < 8 or dtype == np.complex64:
        theirs = jax.core.ShapedArray((3, 4), dtype)
        assert one.str_short(True) == theirs.str_short(short_dtypes=True)
        assert one.str_short() == theirs.str_short()
    if dtype.name in ("int1", "uint1"):
        with pytest.raises(TypeError, match=f"no operation takes or gives {dtype.name}"):
            _ = one.mlir_type
    else:
        assert one.mlir_type.startswith("tensor<3x4x") and weak.mlir_type.startswith("tensor<")


def test_the_length_of_an_aval_is_that_of_its_first_axis():
    assert len(ShapedArray((3, 4), np.dtype(np.float32))) == 3
    with pytest.raises(TypeError, match="len"):
        len(ShapedArray((), np.dtype(np.float32)))


# The aval of a value


class Colour(enum.IntEnum):
    RED = 1


VALUES = [
    True, 1, 1.0, 1j, np.float64(1), np.float32(1), np.bool_(True), np.complex128(1), np.int64(1), Colour.RED,
    np.zeros((2, 3)), np.zeros(2, np.int64), np.zeros(0, np.uint8), np.zeros(2, ml_dtypes.bfloat16),
    np.zeros(2, ml_dtypes.int4), ml_dtypes.bfloat16(1), np.zeros((2, 3)).T, np.zeros(4, np.float16)[::2],
]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("value", VALUES, ids=stable_name)
def test_aval_of_agrees_with_jax(value, x64):
    with xtrace.enable_x64(x64), jax.enable_x64(x64):
        found, theirs = aval_of(value), jax.make_jaxpr(lambda x: x)(value).in_avals[0]
    assert (found.shape, found.dtype, found.weak_type) == (theirs.shape, theirs.dtype, theirs.weak_type)


@pytest.mark.parametrize("method", ["to_tangent_aval", "at_least_vspace", "to_ct_aval"])
def test_types_of_tangents_and_cotangents_are_those_of_jax(method):
    """Rules of custom_jvp make symbolic zeros of these types."""

    def types(module):
        values = (
            module.numpy.ones(2), module.numpy.ones(2, "bfloat16"), module.numpy.arange(3), 1.0, 1j, True,
            module.random.key(0), module.new_ref(module.numpy.zeros(2)),
        )
        return [str(getattr(module.typeof(x), method)()) for x in values]

    assert types(xtrace) == types(jax)


def test_other_byte_orders_become_the_machine_s():
    value = np.arange(3, dtype=">f4")
    assert aval_of(value) is ShapedArray((3,), np.dtype(np.float32))
    for result in (xtrace.jit(lambda x: x)(value), xtrace.jit(lambda: value)()):
        np.testing.assert_array_equal(result, [0, 1, 2])


def test_aval_of_arrays_and_tracers():
    array = ours(np.zeros((2, 3), np.float32), weak_type=True)
    assert aval_of(array) is array.aval is ShapedArray((2, 3), np.dtype(np.float32), True)
    seen = []
    xtrace.make_jaxpr(lambda x: seen.append(aval_of(x)))(array)
    assert seen == [array.aval]


def test_scalar_avals_follow_the_setting():
    for x64, dtype in ((False, np.float32), (True, np.float64)):
        with xtrace.enable_x64(x64):
            assert scalar_aval(float) is ShapedArray((), np.dtype(dtype), True)


@pytest.mark.parametrize("value", [None, "text", [1, 2], {"a": 1}, object(), np.zeros(2, object), np.array("text")])
def test_anything_else_is_no_array(value):
    assert not is_array_like(value)
    with pytest.raises(TypeError):
        aval_of(value)


def test_the_error_names_value_and_type():
    with pytest.raises(TypeError, match=r"\[1, 2\] of type <class 'list'> is not a valid JAX type: expected an array"):
        aval_of([1, 2])


def test_shown_is_short_and_one_line():
    assert short_repr([1, 2]) == "[1, 2]"
    assert short_repr("x" * 100).endswith("...") and len(short_repr("x" * 100)) == 60
    assert short_repr(np.zeros((30, 30))) == short_repr(np.zeros((30, 30))).partition("\n")[0]


# ShapeDtypeStruct


def test_structs_compare_by_what_they_describe():
    one = ShapeDtypeStruct((2, 3), np.float32)
    assert one == ShapeDtypeStruct([2, np.int64(3)], "float32") and hash(one) == hash(ShapeDtypeStruct((2, 3), "f4"))
    others = [ShapeDtypeStruct((3, 2), np.float32), ShapeDtypeStruct((2, 3), np.int32), one.update(weak_type=True)]
    assert all(one != other for other in others) and one != one.aval
    assert one.aval is ShapedArray((2, 3), np.dtype(np.float32)) and one.update(shape=(4,)).shape == (4,)
    assert (one.ndim, one.size, len(one)) == (2, 6, 2)
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize("keywords", [{}, {"weak_type": True}])
def test_structs_print_as_jax(keywords):
    for shape, dtype in (((2, 3), np.float32), ((), ml_dtypes.bfloat16)):
        assert repr(ShapeDtypeStruct(shape, dtype, **keywords)) == repr(jax.ShapeDtypeStruct(shape, dtype, **keywords))


@pytest.mark.parametrize("dtype", ["float64", "uint64", "complex128", int, float])
@pytest.mark.parametrize("x64", [False, True])
def test_structs_keep_dtypes_of_64_bits(dtype, x64):
    """And what they describe is narrowed where they are given to a function."""

    def facts(module):
        one = module.ShapeDtypeStruct((3,), dtype)
        traced = module.jit(lambda x: x).trace(one)
        narrow = module.ShapeDtypeStruct((3,), "float32")
        inside = [repr(traced.jaxpr.in_avals[0]), repr(module.typeof(one)), module.numpy.zeros_like(one).dtype]
        return repr(one), one.dtype, one == narrow, repr(one.update(shape=(4,))), repr(traced.out_info), inside

    with xtrace.enable_x64(x64), jax.enable_x64(x64):
        assert facts(xtrace) == facts(jax)


def test_wrong_structs():
    with pytest.raises(ValueError, match="dtype must be specified"):
        ShapeDtypeStruct((2,), None)
    with pytest.raises(TypeError, match="shape must be a sequence of integers, got 3"):
        ShapeDtypeStruct(3, np.float32)
    with pytest.raises(TypeError, match=r"shape must be a sequence of integers, got \(2\.5,\)"):
        ShapeDtypeStruct((2.5,), np.float32)
    with pytest.raises(TypeError):
        ShapeDtypeStruct((2,), "text")
