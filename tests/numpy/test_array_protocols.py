"""What Python does with arrays and tracers: operators, conversions, attributes and their errors, as with jax's."""

import math
import operator
import pickle
import sys

import jax
import jax.numpy
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import operands_of
from tests.support.operands import ours, theirs
from xtrace.errors import ConcretizationTypeError

# Programs on the operands of tests/support/expressions.py, expressions or statements.
COMPARISONS = """
x == None | x != None | None == x | x == 'a' | 'a' == x | x == [1, 2, 3] | x == (0, 1, 2) | [0, 1] == x
x < [1, 2, 3] | x < None | x < 'a' | np.float32(2) == v | np.float32(2) < v | np.arange(4) == v | u == -1 | u > -1
i == 128 | i < 300 | b < b | c < c | v.__lt__('a') | v.__eq__(None)"""
OPERATORS = """
x + None | x + 'a' | 'a' + x | v + [1, 2, 3, 4] | [1, 2, 3, 4] + v | x * [1] | x @ [1, 2, 3, 4] | [1, 2, 3] @ x
x @ (1, 2, 3, 4) | x @ 2.0 | 2.0 @ x | x @ None | x @ 'a' | x @ s | np.float32(2) * x | np.float64(2) * x
x * np.float64(2) | np.int64(2) * i | i * np.int64(2) | np.ones(4) + v | v + np.ones(4) | np.ones((2, 3), 'f') @ x
np.int8(3) - i | np.True_ & b | b & np.True_ | np.complex64(1) * v | divmod(v, 2) | divmod(2, v + 1) | divmod(i, 2)
divmod(v, None) | i + 127 | i + 128 | i + 300 | u - 1 | u + 256 | u + (-1) | u * -1 | i * 2**31 | n + 2**31
n + 2**40 | n & 2**40 | n << 2**40 | i**2 | i**-1 | 2**i | v**0.5 | v**-1 | 2.0**v | i // 0 | i % 0 | v // 0 | v % 0
n / 2 | n // 2 | n << 1 | v << 1 | 1 << n | v & 1 | b + b | b - b | b * b | b / b | b**b | True + b | b + 1.0
c // 2 | c % 2 | -b | +b | ~b | ~v | ~i | -u | abs(b) | abs(c) | v.__add__('a') | v.__radd__(None) | v.__and__(1.5)
operator.iadd(v, 1)"""
CONVERSIONS = """
bool(z) | bool(x) | bool(s) | bool(x[:1, :1]) | not z | complex(s) | complex(b[0, 0]) | float(c[0, 0]) | int(s)
int(b[0, 0]) | operator.index(n[0]) | range(5)[n[0]] | round(s) | round(s, 1) | round(x, 1) | round(n)
round(n, -1) | round(c) | math.sqrt(s) | math.floor(s) | math.floor(n[0]) | f'{s:.1f}' | f'{n[0]:03d}'
f'{c[0, 0]:.1f}' | format(h[0, 1], '.2f') | f'{x:.1f}' | len(s) | list(s) | next(iter(v)) | 1.0 in v | None in v
'a' in v | 1 in x | hash(x) | {x} | x.item(9) | x.item('a') | x.item(0, 1) | s.tolist() | sum(v) | max(v)
all(b[0]) | memoryview | x.__array__('i4') | c.__float__() | bytes(u) | list(reversed(v))"""
ATTRIBUTES = """
x.flat | x.flat[0] | x.T = 3 | x.shape = (6,) | x.dtype = 'f' | x.flat = 1 | x[0] = 1 | x += 1 | x @= y | x[0] += 1
x.resize(2) | x.fill(3) | x.put(0, 1) | x.partition(1) | x.strides | x.base | x.data | x.flags | x.tostring()
x.nope | x.sort() | v.sort(descending=True) | v.sort(order='f') | x.argpartition(1) | x.argpartition(1, 0)
x.argpartition(9) | v.searchsorted(1.5) | v.searchsorted(n, 'right') | x.searchsorted(1)
v.searchsorted(1.0, method='sort') | v.byteswap() | i.byteswap() | n[0].byteswap() | c.byteswap() | z.byteswap()
b.byteswap() | h.byteswap() | w.byteswap() | v.byteswap(1) | x.itemsize | x.nbytes | x.ndim | x.weak_type
w.weak_type | x.device == package.devices()[0] | x.platform() | x.clone() | x.is_deleted()
x.to_device(package.devices()[0]) | x.__array_namespace__(api_version='1999') | x.astype('nope') | x.view('i1')
x.reshape(5) | x.unsafe_buffer_pointer() > 0 | x.device_buffer | x.device_buffers | x.__array_namespace__() is jnp
operator.matmul(x, v)"""
TABLES = {"comparisons": COMPARISONS, "operators": OPERATORS, "conversions": CONVERSIONS, "attributes": ATTRIBUTES}

# Of concrete arrays jax says these are there; tracers have none of them.
NEEDS_DATA = [
    "x.devices()", "x.delete()", "x.is_deleted()", "x.on_device_size_in_bytes()", "x.addressable_shards", "x.committed",
    "x.is_fully_addressable", "x.is_fully_replicated", "x.addressable_data(0)", "x.global_shards", "x.tobytes()",
    "x.unsafe_buffer_pointer()", "x.traceback", "x.__dlpack__()", "x.block_until_ready()", "x.copy_to_host_async()",
    "x.device", "x.is_ready()", "x.sharding", "x.flat", "x.platform()", "x.clone()", "x.item()", "x.tolist()",
    "pickle.dumps(x)", "f'{x:.1f}'", "bool(x)", "bool(x[:0])", "hash(x)", "x.format",
]


def texts(table):
    """The programs of a table."""
    return [text.strip() for line in table.splitlines() for text in line.split("|") if text.strip() != ""]


def outcome(package, text, operands):
    """What a program gives: a value, or the error it raises."""
    names = {"jnp": package.numpy, "np": np, "package": package, "operator": operator, "math": math, "pickle": pickle}
    names |= operands
    try:
        if text.split()[1:2] in (["="], ["+="], ["@="]):
            exec(text, names)
            return names["x"]
        return eval(text, names)
    except Exception as error:
        return error


def agree(got, expected):
    """Whether two outcomes are the same: errors are, whose classes are known to handlers of the same of Python's."""
    if isinstance(expected, Exception):
        return isinstance(got, next(c for c in type(expected).__mro__ if c.__module__ == "builtins"))
    if isinstance(expected, jax.Array):
        types = [(x.shape, str(x.dtype), getattr(x, "weak_type", None)) for x in (got, expected)]
        # Equal bits, NaN included; elementary functions may differ in the last one.
        close = np.asarray(got).tobytes() == np.asarray(expected).tobytes() or np.allclose(got, expected, 1e-6, 0, True)
        return isinstance(got, xtrace.Array) and types[0] == types[1] and close
    if isinstance(expected, (tuple, list)):
        return type(got) is type(expected) and len(got) == len(expected) and all(map(agree, got, expected))
    return repr(got) == repr(expected)


@pytest.mark.drawn(0.2)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("table", TABLES)
def test_arrays_do_what_those_of_jax_do(table):
    for text in texts(TABLES[table]):
        got = outcome(xtrace, text, operands_of(ours))
        expected = outcome(jax, text, operands_of(theirs))
        assert agree(got, expected), f"{text}: {got!r}, jax gives {expected!r}"


def outcomes_under(transform, package, x):
    """What each program of `NEEDS_DATA` gives on a tracer, called x."""
    found = []

    def function(x):
        found.extend([outcome(package, text, {"x": x}) for text in NEEDS_DATA])
        return x

    getattr(package, transform)(function)(x)
    return found


@pytest.mark.parametrize("transform", ["jit", "vmap"])
def test_tracers_refuse_what_needs_data(transform):
    values = np.ones((2, 3), np.float32)
    got, expected = (outcomes_under(transform, package, values) for package in (xtrace, jax))
    for text, mine, reference in zip(NEEDS_DATA, got, expected, strict=True):
        assert isinstance(mine, Exception) and agree(mine, reference), f"{text}: {mine!r}, jax gives {reference!r}"
        assert isinstance(mine, ConcretizationTypeError) == isinstance(reference, jax.errors.ConcretizationTypeError)
        # Not one of Python's own texts about a class that users do not know.
        assert "StagedTracer" not in str(mine) or "has no attribute" in str(mine) or text == "hash(x)"


def test_messages_about_tracers_say_what_to_do():
    def function(x):
        for use, error, words in (
            (lambda: x.devices(), ConcretizationTypeError, r"devices\(\) is not available on traced array .* f32\[3\]"),
            (lambda: x.committed, ConcretizationTypeError, "depends on the value of the argument x"),
            (lambda: x.device, AttributeError, "on no device while Python runs. Use it outside the traced function"),
            (lambda: f"{x:.2f}", TypeError, "'.2f' needs a value"),
            (lambda: bool(x), ValueError, r"shape \(3,\) is ambiguous. Use x.any\(\)"),
            (lambda: x.flat, NotImplementedError, r"x.ravel\(\)"),
            (lambda: pickle.dumps(x), ConcretizationTypeError, "which pickle calls"),
        ):
            with pytest.raises(error, match=words):
                use()
        assert not hasattr(x, "block_until_ready") and not hasattr(x, "sharding")
        return x

    xtrace.jit(function)(jnp.ones(3))


# What is jax's own business: how its tracers are made, and names that only raise that they are gone.
INTERNAL = {
    "aval_mutable_qdd", "cur_qdd", "dimension_as_value", "full_lower", "get_const", "get_referent", "mutable_qdd",
    "parent", "to_concrete_value", "val", "device_buffer", "device_buffers",
}
# Layouts on devices and the place where an array was made are not kept; the last two are newer than jax 0.10.
NOT_KEPT = {"format", "traceback", "memory_space", "unsafe_raw_buffer"}


def test_every_public_name_is_there():
    found = {}
    for package in (jax, xtrace):
        inside = []
        package.jit(lambda x, inside=inside: inside.append(dir(x)) or x)(np.float32(1))
        names = [{n for n in listed if not n.startswith("_")} for listed in (dir(package.numpy.ones(3)), inside[0])]
        found[package] = names
    for mine, reference in zip(found[xtrace], found[jax], strict=True):
        assert reference - mine - INTERNAL - NOT_KEPT == set()


def test_copies_have_memory_of_their_own():
    x = jnp.arange(3.0)
    copied = x.clone()
    assert copied.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    x.delete()
    assert copied.tolist() == [0, 1, 2] and x.platform() == "cpu"
    for use in (x.clone, x.unsafe_buffer_pointer):
        with pytest.raises(RuntimeError, match="has been deleted"):
            use()


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "complex64", "bool"])
def test_the_buffer_protocol_shows_the_memory(dtype):
    x = jnp.arange(6).reshape(2, 3).astype(dtype)
    if sys.version_info >= (3, 12):
        view = memoryview(x)
    else:
        with pytest.raises(TypeError, match="bytes-like object"):
            memoryview(x)
        view = memoryview(np.asarray(x))
    assert view.shape == (2, 3) and view.readonly and view.nbytes == x.nbytes
    np.testing.assert_array_equal(np.asarray(view), np.asarray(x))
