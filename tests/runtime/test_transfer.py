"""Data on its way in: copies, sharing, scalars kept on the device, and what each value becomes."""

import gc
import weakref

import jax
import ml_dtypes
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.names import stable_name
from xtrace._src.core.avals import ShapedArray, scalar_aval
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.tables import Table
from xtrace._src.runtime import transfer
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.runtime.transfer import (
    array_from_host,
    current_device,
    first_device,
    put_on,
    scalar_array,
    scalar_to_host,
    to_concrete,
    to_operand,
)


def aligned(size, dtype=np.float32):
    """Memory that starts at a multiple of 64 bytes, which jaxlib would share if it were let."""
    itemsize = np.dtype(dtype).itemsize
    memory = np.zeros(size * itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size * itemsize].view(dtype)


# Copying


@pytest.mark.parametrize("size", [1, 16, 1000, 100_000])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "bfloat16", "float8_e4m3fn", "int4"])
def test_numpy_data_is_copied_on_the_way_in(size, dtype):
    source = aligned(size, np.dtype(dtype))
    for put in (
        to_concrete, to_operand, xtrace.device_put, jnp.asarray, jnp.array, xtrace.jit(lambda x: x),
        lambda x: xtrace.device_put(x, xtrace.devices()[0]), lambda x: put_on(x, first_device()),
    ):
        source[:] = 0
        x = put(source)
        source[:] = 1
        assert np.asarray(x).tobytes() == np.zeros(size, source.dtype).tobytes()


def test_eager_operations_copy_their_operands():
    source = aligned(1000)
    zeros = jnp.zeros(1000)
    results = [source + zeros, jnp.add(source, 0.0), xtrace.lax.add(source, source), jnp.where(True, source, 1.0)]
    source[:] = 7
    assert all(np.asarray(r).sum() == 0 for r in results)


def test_constants_closed_over_are_copied():
    for size in (3, 1000):
        source = aligned(size)
        f = xtrace.jit(lambda x, source=source: x + source)
        f(1.0)
        source[:] = 7
        assert np.asarray(f(1.0)).tolist() == [1] * size


def test_memory_is_shared_when_asked_for():
    source = aligned(1000)
    x, y = xtrace.device_put(source, may_alias=True), jnp.asarray(source, copy=False)
    source[:] = 7
    assert np.asarray(x)[0] == np.asarray(y)[0] == 7
    reference = weakref.ref(source.base)
    del source
    gc.collect()
    assert reference() is not None and np.asarray(x).sum() == 7000
    del x, y
    gc.collect()
    assert reference() is None


def test_sharing_what_cannot_be_shared_copies():
    strided, doubles = aligned(1000)[::2], aligned(1000, np.float64)
    for source in (strided, doubles, aligned(1000)[1:]):
        x = xtrace.device_put(source, may_alias=True)
        assert np.asarray(x).dtype == np.float32 and x.shape == source.shape


# Forms of data

NARROW = {"int64": np.int32, "uint64": np.uint32, "float64": np.float32, "complex128": np.complex64}


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "complex128"])
@pytest.mark.parametrize("x64", [False, True])
def test_64_bit_data_becomes_32_bit_unless_enabled(dtype, x64):
    source = np.array([1, 2, 3], dtype)
    with xtrace.enable_x64(x64):
        for value in (source, source[0], source.astype(source.dtype.newbyteorder())):
            assert to_concrete(value).dtype == (dtype if x64 else NARROW[dtype])
            assert np.asarray(to_concrete(value)).tolist() == np.asarray(value).tolist()


def test_values_out_of_range_wrap_or_overflow_as_in_jax():
    for value in (np.array([2**40 + 3, -(2**33), 5]), np.array([2**63 + 1], np.uint64), np.int64(2**40)):
        assert np.asarray(to_concrete(value)).tolist() == np.asarray(jax.numpy.asarray(value)).tolist()
    with np.errstate(over="ignore"):
        assert np.asarray(to_concrete(np.array([1e300, -1e300]))).tolist() == [np.inf, -np.inf]
    # A Python float has no type that could overflow.
    assert float(to_concrete(1e300)) == np.inf and float(jnp.add(1e300, 0)) == np.inf


def test_memory_layouts():
    source = np.arange(24, dtype=np.float32).reshape(4, 6)
    forms = [
        source.T, source[::2, 1::2], source[::-1], np.asfortranarray(source), np.broadcast_to(source[0], (3, 6)),
        source[:0], source[0, 0:1].reshape(()), source.astype(">f4"), np.frombuffer(source.tobytes(), np.float32),
        np.frombuffer(b"\0" + source.tobytes(), np.uint8)[1:].view(np.float32), source.view(np.recarray),
    ]
    for form in forms:
        x = to_concrete(form)
        assert x.shape == form.shape and np.asarray(x).tobytes() == np.ascontiguousarray(form, np.float32).tobytes()


# Scalars


def test_scalars_and_their_types():
    for value, dtype in [(True, "bool"), (3, "int32"), (2.5, "float32"), (1j, "complex64")]:
        for make in (to_concrete, to_operand):
            x = make(value)
            assert (x.shape, x.dtype.name, x.weak_type, x.item()) == ((), dtype, dtype != "bool", value)
    with xtrace.enable_x64():
        assert [to_concrete(v).dtype.name for v in (3, 2.5, 1j)] == ["int64", "float64", "complex128"]
    assert not to_concrete(np.float64(2.5)).weak_type and not to_concrete(np.float32(2.5)).weak_type


def test_literals():
    weak = ShapedArray((), np.float32, True)
    assert repr(to_concrete(Literal(2, weak))) == "Array(2., dtype=float32, weak_type=True)"
    assert repr(to_operand(Literal(2.5, ShapedArray((), ml_dtypes.bfloat16)))) == "Array(2.5, dtype=bfloat16)"
    assert repr(to_operand(Literal(np.float32(2.5), ShapedArray((), np.float32)))) == "Array(2.5, dtype=float32)"


def test_scalars_that_come_again_are_kept_as_operands_only():
    assert to_operand(1234.5) is to_operand(1234.5)
    assert to_concrete(1234.5) is not to_concrete(1234.5)
    assert xtrace.device_put(1234.5) is not to_operand(1234.5)
    zeros = [to_operand(0.0), to_operand(-0.0)]
    assert [str(z) for z in zeros] == ["0.0", "-0.0"]
    kinds = [to_operand(v) for v in (1, 1.0, True, 1 + 0j)]
    assert [k.dtype.name for k in kinds] == ["int32", "float32", "bool", "complex64"]
    assert str(to_operand(complex(1, -0.0))) == str(np.complex64(complex(1, -0.0)))
    assert str(to_operand(complex(1, 0.0))) == str(np.complex64(complex(1, 0.0)))
    assert np.isnan(float(to_operand(float("nan"))))


def test_a_kept_scalar_that_somebody_deleted_is_made_again():
    aval = scalar_aval(float)
    scalar_array(4321.5, aval, current_device()).delete()
    assert float(scalar_array(4321.5, aval, current_device())) == 4321.5
    assert float(jnp.add(4321.5, 0.0)) == 4321.5


def test_kept_scalars_are_bounded(monkeypatch):
    monkeypatch.setattr(transfer, "_scalars", Table(10))
    for i in range(1, 100):
        assert float(to_operand(i + 0.5)) == i + 0.5
    assert len(transfer._scalars) <= 10


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**63, 10**40])
def test_integers_that_do_not_fit(value):
    for make in (to_concrete, to_operand, xtrace.device_put, lambda v: scalar_to_host(v, ShapedArray((), np.int32))):
        with pytest.raises(OverflowError, match=f"Python int {value} too large to convert to int32; .*jax_enable_x64"):
            make(value)
    for small, bad in ((np.int8, 128), (np.uint8, -1), (np.uint32, 2**32)):
        with pytest.raises(OverflowError, match="too large to convert"):
            scalar_to_host(bad, ShapedArray((), small))


# What is no data


@pytest.mark.parametrize(
    "value", ["text", None, object(), [1.0], np.array(["a"]), np.ma.array([1.0]), len], ids=stable_name
)
def test_what_cannot_become_an_array(value):
    for make in (to_concrete, to_operand):
        with pytest.raises(ValueError if isinstance(value, np.ma.MaskedArray) else TypeError):
            make(value)


def test_a_tracer_is_not_concrete():
    with pytest.raises(TypeError, match="a concrete value is needed; got the traced value JitTracer"):
        xtrace.jit(to_concrete)(1.0)


# Places


def test_where_data_goes():
    device = xtrace.devices()[0]
    assert current_device() is first_device() is device
    assert not to_concrete(np.ones(3)).committed and to_concrete(np.ones(3), device).committed
    assert to_concrete(1.0).signature is to_concrete(1.0).aval
    for setting in (device, "cpu", "CPU"):
        with xtrace.default_device(setting):
            assert current_device() is device and to_concrete(1.0).signature is to_concrete(1.0).aval
    for wrong in (3, "abacus", []):
        words = r"jax_default_device: the setting accepts a device, .*'cpu'.*; got"
        with pytest.raises(ValueError, match=words), xtrace.default_device(wrong):
            raise AssertionError("the block ran")


def test_putting_an_array_where_it_is_shares_its_memory():
    x = jnp.ones(3)
    y = put_on(x, first_device())
    assert y.buffer is x.buffer and y.committed and not x.committed
    weak = array_from_host(np.ones((), np.float32), ShapedArray((), np.float32, True), first_device())
    assert weak.weak_type and weak.committed and isinstance(weak, ConcreteArray)
