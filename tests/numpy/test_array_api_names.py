"""xtrace.numpy has every function of the Python array API standard 2024.12, with the standard's parameters."""

from __future__ import annotations

import inspect

import jax
import jax.numpy
import pytest

import xtrace
import xtrace.numpy as jnp

# Functions of one operand and of two, and all others with their parameters.
_ELEMENTWISE_1 = """
abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log
log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt tan tanh trunc
"""
_ELEMENTWISE_2 = """
add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal floor_divide
greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply
nextafter not_equal pow remainder subtract
"""
_OTHERS = """
all: x axis keepdims|any: x axis keepdims|arange: start stop step dtype device|argmax: x axis keepdims
argmin: x axis keepdims|argsort: x axis descending stable|asarray: obj dtype device copy|astype: x dtype copy device
broadcast_arrays:|broadcast_to: x shape|can_cast: from_ to|clip: x min max|concat: arrays axis|count_nonzero: x axis
cumulative_prod: x axis dtype include_initial|cumulative_sum: x axis dtype include_initial|diff: x axis n prepend append
empty: shape dtype device|empty_like: x dtype device|expand_dims: x axis|eye: n_rows n_cols k dtype device
finfo: type|flip: x axis|from_dlpack: x device copy|full: shape fill_value dtype device
full_like: x fill_value dtype device|iinfo: type|isdtype: dtype kind|linspace: start stop num dtype device endpoint
matmul: x1 x2|matrix_transpose: x|max: x axis keepdims|mean: x axis keepdims|meshgrid: indexing
min: x axis keepdims|moveaxis: x source destination|nonzero: x|ones: shape dtype device|ones_like: x dtype device
permute_dims: x axes|prod: x axis dtype keepdims|repeat: x repeats axis|reshape: x shape copy|result_type:
roll: x shift axis|searchsorted: x1 x2 side sorter|sort: x axis descending stable|squeeze: x axis|stack: arrays axis
std: x axis correction keepdims|sum: x axis dtype keepdims|take: x indices axis|take_along_axis: x indices axis
tensordot: x1 x2 axes|tile: x repetitions|tril: x k|triu: x k|unique_all: x|unique_counts: x|unique_inverse: x
unique_values: x|unstack: x axis|var: x axis correction keepdims|vecdot: x1 x2 axis|where: condition x1 x2
zeros: shape dtype device|zeros_like: x dtype device
linalg.cholesky: x upper|linalg.cross: x1 x2 axis|linalg.det: x|linalg.diagonal: x offset|linalg.eigh: x
linalg.eigvalsh: x|linalg.inv: x|linalg.matmul: x1 x2|linalg.matrix_norm: x keepdims ord|linalg.matrix_power: x n
linalg.matrix_rank: x rtol|linalg.matrix_transpose: x|linalg.outer: x1 x2|linalg.pinv: x rtol|linalg.qr: x mode
linalg.slogdet: x|linalg.solve: x1 x2|linalg.svd: x full_matrices|linalg.svdvals: x|linalg.tensordot: x1 x2 axes
linalg.trace: x offset dtype|linalg.vecdot: x1 x2 axis|linalg.vector_norm: x axis keepdims ord
fft.fft: x n axis norm|fft.ifft: x n axis norm|fft.fftn: x s axes norm|fft.ifftn: x s axes norm
fft.rfft: x n axis norm|fft.irfft: x n axis norm|fft.rfftn: x s axes norm|fft.irfftn: x s axes norm
fft.hfft: x n axis norm|fft.ihfft: x n axis norm|fft.fftfreq: n d dtype device|fft.rfftfreq: n d dtype device
fft.fftshift: x axes|fft.ifftshift: x axes
"""
# Parameters that the standard has positional only have names of NumPy's; their place is what counts.
_POSITIONAL = {
    "x", "x1", "x2", "obj", "type", "from_", "to", "dtype", "kind", "indices", "condition", "arrays", "s",
    "n_rows", "n_cols", "start", "repeats", "repetitions", "shift", "source", "destination", "fill_value", "n",
}
FUNCTIONS = {
    **{name: ["x"] for name in _ELEMENTWISE_1.split()},
    **{name: ["x1", "x2"] for name in _ELEMENTWISE_2.split()},
    **{
        name: parameters.split()
        for name, parameters in (item.split(":") for line in _OTHERS.split("\n") for item in line.split("|") if item)
    },
}
CONSTANTS = ["e", "inf", "nan", "newaxis", "pi"]
DTYPES = """
bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128
"""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_the_standard(name: str) -> None:
    found = jnp
    for part in name.split("."):
        found = getattr(found, part)
    try:
        named = inspect.signature(found).parameters
    except ValueError:  # A ufunc or a class written without one takes its operands by place.
        return
    if any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in named.values()):
        return
    wanted = [p for p in FUNCTIONS[name] if p not in _POSITIONAL]
    assert [p for p in wanted if p not in named] == []
    places = [p for p in named.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    assert len(places) >= sum(p in ("x", "x1", "x2") for p in FUNCTIONS[name])


@pytest.mark.parametrize("name", [*CONSTANTS, *DTYPES.split()])
def test_a_constant_or_dtype_of_the_standard(name: str) -> None:
    assert hasattr(jnp, name)


def test_the_inspection_functions_of_the_namespace() -> None:
    got, expected = jnp.__array_namespace_info__(), jax.numpy.__array_namespace_info__()
    assert got.capabilities() == expected.capabilities()
    assert got.default_device() == expected.default_device()
    assert got.devices() == [None, *xtrace.devices()]
    for x64 in (False, True):
        with xtrace.enable_x64(x64), jax.enable_x64(x64):
            assert got.default_dtypes() == expected.default_dtypes()
            for kind in (None, "bool", "signed integer", "numeric", "integral", ("bool", "complex floating")):
                assert got.dtypes(kind=kind) == expected.dtypes(kind=kind)
    with pytest.raises(ValueError, match="kind must be one of"):
        got.dtypes(kind="text")
