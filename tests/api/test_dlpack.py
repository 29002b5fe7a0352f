"""The modules `dlpack` and `experimental.key_reuse`, doors to what arrays and random keys have."""

from __future__ import annotations

import subprocess
import sys

import jax.dlpack
import jax.numpy
import ml_dtypes
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, finite_values
from xtrace import dlpack
from xtrace.experimental import key_reuse

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4", "int2", "str", "O", "M8[s]",
]


@pytest.mark.parametrize("name", DTYPES)
def test_supported_dtypes(name):
    assert dlpack.is_supported_dtype(name) is jax.dlpack.is_supported_dtype(name)


def test_supported_dtypes_are_shared():
    for name in DTYPES:
        if dlpack.is_supported_dtype(name):
            with xtrace.enable_x64(True):
                x = xtrace.numpy.ones(3, name)
                assert_same(dlpack.from_dlpack(x), x)
    for wrong in ("float0", xtrace.random.key(0).dtype, 3.5):
        with pytest.raises(TypeError):
            dlpack.is_supported_dtype(wrong)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.complex64, ml_dtypes.bfloat16])
def test_arrays_come_from_other_libraries(dtype):
    values = finite_values(dtype, (3, 4), 0)
    assert_same(dlpack.from_dlpack(jax.numpy.asarray(values)), jax.numpy.asarray(values))
    # NumPy itself has no name for bfloat16.
    if np.dtype(dtype) != ml_dtypes.bfloat16:
        for source in (values, values.T, np.asfortranarray(values)):
            assert_same(dlpack.from_dlpack(source), jax.dlpack.from_dlpack(source))
            assert_same(dlpack.from_dlpack(source, copy=True), jax.dlpack.from_dlpack(source, copy=True))


def test_memory_is_shared_or_copied():
    x = xtrace.numpy.arange(3.0)
    pointer = x.unsafe_buffer_pointer()
    shared = dlpack.from_dlpack(x, copy=False)
    assert shared.unsafe_buffer_pointer() == pointer
    assert dlpack.from_dlpack(x, copy=True).unsafe_buffer_pointer() != pointer
    device = xtrace.devices("cpu")[0]
    assert dlpack.from_dlpack(x, device=device).devices() == {device}
    unaligned = np.arange(20, dtype=np.int8)[1:]
    with pytest.raises(ValueError, match="copy=None copies where it must"):
        dlpack.from_dlpack(unaligned, copy=False)
    assert_same(dlpack.from_dlpack(unaligned), jax.numpy.asarray(unaligned))
    with pytest.raises(TypeError, match="has no __dlpack__"):
        dlpack.from_dlpack([1.0])


def test_reused_keys():
    assert key_reuse.KeyReuseError is xtrace.errors.KeyReuseError
    with xtrace.debug_key_reuse(True):
        key = xtrace.random.key(0)
        first = xtrace.random.normal(key_reuse.unconsumed_copy(key))
        assert xtrace.random.normal(key_reuse.reuse_key(key)) == first == xtrace.random.normal(key)
        with pytest.raises(key_reuse.KeyReuseError):
            xtrace.random.normal(key)


_WITHOUT_JAX = """
import sys
import ml_dtypes, numpy as np
import xtrace
from xtrace.experimental.layout import Format, Layout
turned = Format(Layout((1, 0)), xtrace.sharding.SingleDeviceSharding(xtrace.devices()[0]))
for dtype in (np.float32, np.complex64, np.bool_, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
    values = np.arange(6).reshape(2, 3).astype(dtype)
    for x in (xtrace.numpy.asarray(values), xtrace.device_put(values, turned)):
        shared = xtrace.dlpack.from_dlpack(x)
        assert (shared.dtype, shared.shape, shared.format) == (x.dtype, x.shape, x.format)
        assert np.asarray(shared).tolist() == np.asarray(shared.T).T.tolist() == values.tolist()
assert "jax" not in sys.modules
"""


def test_memory_is_taken_over_where_jax_is_not_imported():
    done = subprocess.run([sys.executable, "-c", _WITHOUT_JAX], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
