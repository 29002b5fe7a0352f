"""Methods and attributes of arrays: those of jax, on concrete arrays and on tracers, installed at first use."""

import subprocess
import sys

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from xtrace._src.api.operators import late_methods
from xtrace._src.core.errors import TracerBoolConversionError
from xtrace.numpy.arrays import methods as array_methods

METHODS = [
    "x.all()", "x.any(0)", "x.argmax()", "x.argmin(1)", "v.argsort()", "x.astype(int)", "x.astype('float16')",
    "x.clip(0, 2)", "x.clip(min=0)", "c.conj()", "c.conjugate()", "x.conj()", "x.copy()", "x.cumprod(0)",
    "x.cumsum()", "y.diagonal()", "x.dot(v)", "x.flatten()", "x.flatten('F')", "c.imag", "x.imag", "c.real", "x.real",
    "x.max(0)", "x.mean()", "x.min(keepdims=True)", "b.nonzero(size=3)", "x.prod(1)", "x.ptp()", "x.ravel()",
    "x.repeat(2)", "x.reshape(2, 6)", "x.reshape((2, -1))", "(x / 3).round()", "(x / 3).round(1)", "round(x / 3)",
    "round(x / 3, 1)", "q.sort()", "x[None].squeeze()", "x.squeeze(())", "x.std(0)", "x.sum(axis=1)",
    "y.swapaxes(0, 2)", "v.take(n)", "x.transpose()", "y.transpose(1, 2, 0)", "x.var(ddof=1)", "x.T", "y.mT",
    "x.at[0].get()", "x @ v", "v @ v", "x.itemsize", "x.nbytes", "x.ndim", "x.size", "x.shape", "x.dtype",
    "h.itemsize", "len(x)", "[row for row in x]", "list(v)", "x[1].view(jnp.int32)", "i.view(jnp.uint8)",
    "(x + 1j).view(jnp.int32)", "(x + 2j * x).view('float32')", "(v + 1j).view(jnp.int8)", "(v - 1j).view(bool)",
    "x.view('complex64')", "x.astype(int).view('complex64')", "(x > 1).view(jnp.uint8).repeat(2, 1).view('complex64')",
    "v.view(jnp.uint8)", "v.view(jnp.float16)", "u[:4].view(jnp.int16)", "b.view(jnp.uint8)", "v.view()",
    "jnp.arange(4, dtype=jnp.uint8).view(jnp.float32)", "h.view(jnp.uint16)", "y.sum((0, 1)).max()", "x.trace()",
    "x[1:].T.reshape(-1)[::2]", "x.compress(v[:3] > 1, 0, size=2)",
    "v.compress(v > 1, size=3, fill_value=7)",
    "n.choose([v[:3], v[1:], v[:3]], mode='clip')", "n.choose([v[:3], v[1:], v[1:]], None, 'wrap')",
]
EAGER_ONLY = [
    "x.compress(np.array([True, False, True]), 0)",
    "b.nonzero()", "x.item(3)", "s.item()", "x.tolist()", "2.0 in v", "9.0 in v",
    "np.asarray(x).sum() == x.sum()", "np.ones(4, 'f') + v", "np.ones((3, 4), 'f') * x", "np.float32(2) - v",
    "np.ones((2, 3), 'f') @ x", "int(n[0])", "float(s)", "bool(s)", "complex(s)", "range(4)[n[0]]",
    "x.__array_namespace__() is jnp", "x.__array_priority__",
]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("text", METHODS + EAGER_ONLY)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, among=METHODS)


def test_jitted_values_are_those_of_jax():
    check_jitted(METHODS)


ERRORS = [
    ("x[:, :3].view('complex64')", ValueError, "view: the last axis"),
    ("jnp.complex64(1).view(jnp.float32)", ValueError, "same size"),
    ("jnp.float32(1).view(jnp.int8)", ValueError, "same size"),
    ("x.view(jnp.int32, list)", NotImplementedError, "type"),
    ("x.view('nothing')", TypeError, "view: 'nothing' is not a dtype"),
    ("x.to_device('nowhere')", ValueError, "device"),
    ("1.0 in x", ValueError, r"`in` searches 1-D arrays; this one has shape \(3, 3\)"),
    ("list(jnp.float32(1))", TypeError, "iteration over a 0-d array"),
    ("len(jnp.float32(1))", TypeError, "unsized"),
    ("x.__array_namespace__(api_version='1999')", ValueError, "1999"),
    ("x.nothing", AttributeError, "has no attribute 'nothing'"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "x": jnp.ones((3, 3))})


def test_arrays_cannot_be_assigned_to():
    x = jnp.zeros(3)

    def traced(x):
        x[0] = 10
        return x

    def eager(x):
        x[0] = 10

    for attempt in (lambda: eager(x), lambda: xtrace.jit(traced)(x)):
        with pytest.raises(TypeError) as caught:
            attempt()
        assert "object does not support item assignment" in str(caught.value)
        assert "Instead of ``x[idx] = y``, use ``x = x.at[idx].set(y)`` or another .at[] method" in str(caught.value)
    assert x.at[0].set(10).tolist() == [10, 0, 0] and x.tolist() == [0, 0, 0]


def test_searching_a_traced_array_is_an_error():
    with pytest.raises(TracerBoolConversionError):
        xtrace.jit(lambda x: 1.0 in x)(jnp.ones(3))


def test_a_tracer_is_iterated_over_row_by_row():
    assert xtrace.jit(lambda x: [row.sum() for row in x])(jnp.ones((2, 3))) == [3, 3]
    with pytest.raises(TypeError, match="0-d"):
        xtrace.jit(lambda x: list(x))(1.0)


def test_an_array_moves_to_a_device():
    device = xtrace.devices()[0]
    assert jnp.ones(3).to_device(device).device == device


def test_the_methods_that_are_waited_for_are_those_that_come():
    special = {name for name in array_methods.METHODS if name.startswith("__")}
    named = {name for name in array_methods.METHODS if not name.startswith("__")} | set(array_methods.PROPERTIES)
    assert set(late_methods.SPECIAL) == special
    assert set(late_methods.ATTRIBUTES) == named


def test_methods_load_numpy_at_first_use_only():
    program = """
import sys, numpy, xtrace
from xtrace._src.api.operators.late_methods import LateAttribute
from xtrace._src.core.arrays import Array
x = xtrace.device_put(numpy.arange(3.0, dtype="f"))
assert "xtrace.numpy" not in sys.modules
assert repr(x + x) == "Array([0., 2., 4.], dtype=float32)" and not hasattr(x, "nothing")
assert "xtrace.numpy" not in sys.modules and type(vars(Array)["sum"]) is LateAttribute
assert x[1] == 1 and x.sum() == 3
assert "xtrace.numpy" in sys.modules and type(vars(Array)["sum"]) is not LateAttribute
# With a __getattr__, Python would look up every attribute the slow way.
assert not hasattr(Array, "__getattr__")
assert xtrace.jit(lambda x: x.T @ x)(x) == 5
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("first", ["x.reshape(3)", "x @ x", "[*x]", "1.0 in x", "round(x)", "x.at", "x.T", "x[0]"])
def test_any_method_may_be_the_first(first):
    program = f"import numpy, xtrace; x = xtrace.device_put(numpy.arange(3.0, dtype='f')); {first}; x[0]; x.mean()"
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)


def test_numpy_leaves_operators_to_arrays():
    assert isinstance(np.ones(3, np.float32) + jnp.ones(3), xtrace.Array)
    assert isinstance(xtrace.make_jaxpr(lambda x: np.ones(3, np.float32) * x)(jnp.ones(3)).eqns, list)
