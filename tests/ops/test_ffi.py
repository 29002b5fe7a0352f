"""Foreign functions: the text of a call, calls of jaxlib's own handlers, batching, errors."""

import ctypes

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.operands import assert_same
from xtrace import ffi
from xtrace._src.core.primitive import Primitive, no_rule
from xtrace._src.xla.custom_calls import lapack

X = np.array([[4.0, 2.0], [2.0, 5.0]], np.float32)


def described(x):
    return xtrace.ShapeDtypeStruct(x.shape, x.dtype)


def factor(x, **keywords):
    """The Cholesky factor by LAPACK's own routine: the matrix in column order, and a status."""
    lapack.target("potrf", np.dtype(np.float32))
    status = xtrace.ShapeDtypeStruct(x.shape[:-2], np.int32)
    call = ffi.ffi_call("lapack_spotrf_ffi", (described(x), status), input_output_aliases={0: 0}, **keywords)
    return call(x, uplo=np.uint8(ord("U")))


def test_a_handler_is_called():
    # Read by columns, the upper factor of a symmetric matrix is the lower one.
    for function in (factor, xtrace.jit(factor)):
        found, status = function(jnp.asarray(X))
        np.testing.assert_allclose(np.tril(found), np.linalg.cholesky(X), rtol=4 * 1.2e-7)
        assert int(status) == 0


def text_of(module_text):
    return next(line.split("=", 1)[1] for line in module_text.splitlines() if "custom_call" in line)


def test_the_text_is_jaxs():
    attributes = {"a": 1, "b": 2.5, "c": "s", "d": np.int32(3), "e": np.float32(2), "f": True, "h": np.array([1, 2])}

    def ours(x):
        return ffi.ffi_call("foo", described(x), has_side_effect=True)(x, **attributes)

    def theirs(x):
        struct = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.ffi.ffi_call("foo", struct, has_side_effect=True)(x, **attributes)

    assert text_of(xtrace.lower(ours, X).as_text()) == text_of(jax.jit(theirs).lower(X).as_text())


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"])
def test_batching(method):
    batch = np.stack([X, 2 * X, X + np.eye(2, dtype=np.float32)])
    found, status = xtrace.vmap(lambda x: factor(x, vmap_method=method))(batch)
    np.testing.assert_allclose(np.tril(found), np.linalg.cholesky(batch), rtol=4 * 1.2e-7)
    assert_same(status, jax.numpy.zeros(3, np.int32))

    def two(library, package):
        call = package.ffi_call("foo", jax.ShapeDtypeStruct((3,), np.float32), vmap_method=method)
        mapped = library.make_jaxpr(library.vmap(lambda x, y: call(x, y), (0, None)))
        closed = mapped(np.ones((2, 3), np.float32), np.ones(3, np.float32))
        if method.startswith("sequential"):
            return [a.shape for a in closed.out_avals], [closed.jaxpr.eqns[-1].params["unroll"]]
        return [a.shape for a in closed.out_avals], [e.primitive.name for e in closed.jaxpr.eqns]

    shapes, names = two(xtrace, ffi)
    assert shapes == [(2, 3)] and names[-1:] == two(jax, jax.ffi)[1][-1:]


def test_a_function_pointer_becomes_a_capsule():
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    handler = prototype(lambda out, inputs: None)
    assert type(ffi.pycapsule(handler)).__name__ == "PyCapsule"
    ffi.register_ffi_target("xtrace_test_nothing", ffi.pycapsule(handler), api_version=0)
    assert ffi.include_dir().endswith("include")


def test_errors():
    call = ffi.ffi_call("foo", described(X))
    with pytest.raises(ValueError, match="a foreign function cannot be differentiated"):
        xtrace.grad(lambda x: call(x).sum())(jnp.asarray(X))
    with pytest.raises(NotImplementedError, match=r"vmap of the foreign function foo needs .* got None"):
        xtrace.vmap(call)(np.stack([X, X]))
    with pytest.raises(TypeError, match="attribute mode is"):
        xtrace.jit(lambda x: call(x, mode=object()))(X)
    with pytest.raises(ValueError, match="vmap_method must be one of"):
        ffi.ffi_call("foo", described(X), vmap_method="all")
    with pytest.raises(ValueError, match="result 0 is 'f32'"):
        ffi.ffi_call("foo", "f32")
    with pytest.raises(ValueError, match="share memory and must have one type"):
        ffi.ffi_call("foo", xtrace.ShapeDtypeStruct((3,), np.float32), input_output_aliases={0: 0})(X)
    with pytest.raises(ValueError, match="must be permutations"):
        ffi.ffi_call("foo", described(X), input_layouts=[(0, 0)])(X)
    with pytest.raises(Exception, match="foo"):
        xtrace.jit(call)(X)
    with pytest.raises(TypeError, match="fn must be a capsule"):
        ffi.register_ffi_target("foo", 4)


def own_primitive(**details):
    """A primitive of the user's own, emitted as a call of LAPACK's factorization."""
    lapack.target("potrf", np.dtype(np.float32))
    return Primitive(
        "own_factor", ("uplo",), multiple_results=True, memoised=False,
        abstract=lambda x, uplo: [x, xtrace.core.ShapedArray((), np.dtype(np.int32))],
        emit=ffi.ffi_lowering("lapack_spotrf_ffi", **details),
        jvp=no_rule("no derivative"), batch=no_rule("no batching"),
    )


def test_a_primitive_is_a_foreign_function():
    columns = [(0, 1)]
    own = own_primitive(operand_output_aliases={0: 0}, operand_layouts=columns, result_layouts=[*columns, None])
    found, status = xtrace.jit(lambda x: own.bind(x, uplo=np.uint8(ord("L"))))(jnp.asarray(X))
    np.testing.assert_allclose(np.tril(found), np.linalg.cholesky(X), rtol=4 * 1.2e-7)
    assert int(status) == 0
    with pytest.raises(TypeError, match=r"ffi_lowering takes api_version.*; got colour"):
        ffi.ffi_lowering("foo", colour=1)


def test_the_text_of_a_rule_is_that_of_a_call():
    rule = ffi.ffi_lowering("foo", backend_config={"a": 1}, has_side_effect=True)
    own = Primitive("own", ("b",), abstract=lambda x, b: x, emit=rule, jvp=no_rule("none"), batch=no_rule("none"))
    call = ffi.ffi_call("foo", described(X), has_side_effect=True)
    mine, other = (xtrace.lower(f, X).as_text() for f in (lambda x: own.bind(x, b=2.5), lambda x: call(x, a=1, b=2.5)))
    assert text_of(mine) == text_of(other)


def test_tokens_are_taken_and_returned():
    result = xtrace.ShapeDtypeStruct((), np.float32)
    call = xtrace.ffi.ffi_call("handler", (result, xtrace.ffi.abstract_token), has_side_effect=True)
    text = xtrace.jit(lambda x: call(x, xtrace.lax.create_token())[0]).lower(np.float32(1)).as_text()
    assert "(tensor<f32>, !stablehlo.token) -> (tensor<f32>, !stablehlo.token)" in text
    assert "b:Tok = ffi_call" in str(xtrace.make_jaxpr(lambda x: call(x)[1])(1.0))
