"""Transformations of functions given odd and wrong input: what comes out is jax's, or an error that says what to do."""

import threading

import numpy as np
import pytest

import xtrace as xt
import xtrace.numpy as xnp
from xtrace import lax
from xtrace._src.core.trace import base_trace, current_trace

F32 = np.float32


def test_auxiliary_data_of_every_transformation_are_values():
    def f(x):
        return x * x, {"twice": 2 * x, "word": "kept"}

    for found in (
        xt.grad(f, has_aux=True)(3.0)[1],
        xt.value_and_grad(f, has_aux=True)(3.0)[0][1],
        xt.jvp(f, (3.0,), (1.0,), has_aux=True)[2],
        xt.vjp(f, 3.0, has_aux=True)[2],
        xt.linearize(f, 3.0, has_aux=True)[2],
        xt.jacfwd(f, has_aux=True)(3.0)[1],
        xt.jacrev(f, has_aux=True)(3.0)[1],
    ):
        assert float(found["twice"]) == 6.0 and found["word"] == "kept"
    assert float(xt.jit(xt.grad(lambda x: (x * x, 2 * x), has_aux=True))(3.0)[1]) == 6.0


def test_auxiliary_data_carry_derivatives_of_an_outer_transformation():
    assert float(xt.grad(lambda x: xt.grad(lambda y: (y * y, x * y), has_aux=True)(x)[1])(3.0)) == 6.0
    assert float(xt.grad(lambda x: xt.jvp(lambda y: (y, x * y), (x,), (1.0,), has_aux=True)[2])(3.0)) == 6.0
    assert float(xt.grad(lambda x: xt.jacrev(lambda y: (y, x * y), has_aux=True)(x)[1])(3.0)) == 6.0


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "jacfwd", "jacrev", "hessian"])
def test_a_value_in_place_of_a_function_is_an_error_of_the_called_transformation(name):
    with pytest.raises(TypeError, match=f"^{name}: Expected a callable value, got 3.0"):
        getattr(xt, name)(3.0)


@pytest.mark.parametrize("convert", [float, complex], ids=["float", "complex"])
def test_a_conversion_that_would_lose_the_derivative_is_an_error(convert):
    with pytest.raises(xt.errors.ConcretizationTypeError, match="stop_gradient"):
        xt.grad(lambda x: abs(convert(x)) * x)(3.0)
    assert float(xt.grad(lambda x: abs(convert(lax.stop_gradient(x))) * x)(3.0)) == 3.0
    assert float(xt.grad(lambda x: x.item() * x)(3.0)) == 3.0


def test_numbers_of_arguments():
    def f(x, y):
        return x * y * y

    for numbers in (range(2), {0, 1}, np.array([0, 1]), [0, 1]):
        assert [float(g) for g in xt.grad(f, argnums=numbers)(2.0, 3.0)] == [9.0, 12.0]
    for numbers, error, message in (
        ((0, -2), ValueError, "argument of f twice"),
        ((), ValueError, "names no argument"),
        (2, TypeError, "at least 3 positional arguments to be passed to f"),
        (-3, ValueError, "at least 3 positional arguments to be passed to f"),
        ("x", TypeError, "argnums must be"),
    ):
        with pytest.raises(error, match=message):
            xt.grad(f, argnums=numbers)(2.0, 3.0)
    for transform in (xt.vjp, xt.linear_transpose):
        with pytest.raises(NotImplementedError, match="reduce_axes"):
            transform(lambda x: x, 1.0, reduce_axes=("i",))


def test_the_argument_that_argnums_chose_is_named():
    with pytest.raises(TypeError, match=r"argument p\['n'\] of f"):

        def f(x, p):
            return x

        xt.grad(f, argnums=(1, 0))(1.0, {"a": 1.0, "n": 2})
    with pytest.raises(TypeError, match="argument p of f"):
        xt.grad(f, argnums=1)(1.0, "word")
    for jacobian in (xt.jacfwd, xt.jacrev):
        with pytest.raises(TypeError, match="argument p of f"):
            jacobian(f, argnums=1)(1.0, "word")


def test_jacobians_of_nothing():
    with pytest.raises(ValueError, match="no arrays"):
        xt.jacfwd(lambda x: 1.0)({})
    with pytest.raises(ValueError, match="no arrays"):
        xt.jacrev(lambda x: None)(1.0)


def test_gradients_of_weakly_typed_arguments_are_weakly_typed():
    assert xt.grad(lambda x: x * F32(2))(3.0).weak_type
    assert not xt.grad(lambda x: x * 2.0)(F32(3)).weak_type
    assert xt.jacfwd(lambda x: x * x)(3.0).weak_type and not xt.jacfwd(lambda x: x * x)(F32(3)).weak_type


def test_tangents_and_cotangents_of_the_wrong_type():
    x = np.ones(3, F32)
    with pytest.raises(ValueError, match=r"argument x of f.*f32\[3\]; got f32\[2\]"):

        def f(x):
            return x

        xt.jvp(f, (x,), (x[:2],))
    with pytest.raises(TypeError, match="got 'a'"):
        xt.jvp(xnp.sin, (1.0,), ("a",))
    with pytest.raises(TypeError, match="one structure"):
        xt.jvp(xnp.sin, (1.0,), [1.0])
    with pytest.raises(ValueError, match="the structure of the result of sin"):
        xt.vjp(xnp.sin, x)[1]((x,))
    with pytest.raises(TypeError, match=r"cotangent at \[1\].*got 'a'"):
        xt.vjp(lambda x: (x, 3), 1.0)[1]((1.0, "a"))
    for primal, tangent in ((1.0, 2), (3, 4), (1.0, x)):
        with pytest.raises(ValueError, match="argument x"):
            xt.linearize(lambda x: x * x, primal)[1](tangent)


@pytest.mark.parametrize("f", [lambda x: x * x, lambda x: x @ x, lambda x: x / x, lambda x: 1 / x])
def test_a_function_that_is_not_linear_cannot_be_transposed(f):
    x = np.ones(2, F32)
    with pytest.raises(NotImplementedError, match="linear"):
        xt.linear_transpose(f, x)(f(x))


@pytest.mark.parametrize("transpose", [
    lambda scale: xt.linear_transpose(lambda x: scale * x, 1.0),
    lambda scale: xt.vjp(lambda x: scale * x, 1.0)[1],
    lambda scale: xt.linearize(lambda x: scale * x, 1.0)[1],
])
def test_linear_functions_are_results_and_arguments_of_jitted_ones(transpose):
    linear = xt.jit(transpose)(2.0)
    assert xt.tree.leaves(xt.jit(lambda f, x: f(x))(linear, 3.0)) == [6.0]
    assert xt.tree.leaves(xt.vmap(transpose)(np.arange(3, dtype=F32)))[0].shape == (3,)


def test_integers_have_empty_tangents_under_vmap_and_zeros_in_jacobians():
    gradient = xt.vmap(xt.grad(lambda n, x: n * x, argnums=(0, 1), allow_int=True))(np.arange(3), np.ones(3, F32))
    assert gradient[0].dtype == xt.dtypes.float0 and gradient[0].shape == (3,)
    assert gradient[1].tolist() == [0.0, 1.0, 2.0]
    for found in (xt.jacfwd(lambda x: x.astype(int))(F32(3)), xt.jacrev(lambda n: n * 1.0, allow_int=True)(3)):
        assert found.dtype == np.int32 and int(found) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"axis_size": -1, "in_axes": None}, "axis_size"),
        ({"axis_size": 3.0, "in_axes": None}, "axis_size"),
        ({"in_axes": {"a": 0}}, "in_axes"),
        ({"in_axes": False}, "in_axes"),
        ({"axis_name": ["i"]}, "hashable"),
    ],
)
def test_wrong_options_of_vmap(options, message):
    with pytest.raises(TypeError, match=message):
        xt.vmap(lambda x: x, **options)(np.ones(3, F32))


def test_leaked_tracers_are_named():
    kept = []

    def leaky(x):
        kept.append(x * 2)
        return x * x

    for call in (lambda: xt.grad(leaky)(1.0), lambda: xt.vjp(leaky, 1.0)):
        kept.clear()
        call()
        with pytest.raises(xt.errors.UnexpectedTracerError, match=r"made on line .*(?s:.*)function leaky"):
            kept[0] + 1
    kept.clear()
    xt.vmap(leaky)(np.ones(2, F32))
    with pytest.raises(xt.errors.UnexpectedTracerError, match=r"function leaky at .* for vmap had ended"):
        kept[0] + 1


def test_the_leak_check_finds_leaks_and_nothing_else():
    kept = []
    step = lambda c, _: (c * xnp.sin(c), c)  # noqa: E731
    with xt.checking_leaks():
        with pytest.raises(xt.errors.UnexpectedTracerError):
            xt.vmap(lambda x: kept.append(x * 2) or x)(np.ones(2, F32))
        xt.grad(lambda x: lax.scan(step, x, None, length=3)[0])(1.0)
        xt.grad(xt.jit(lambda x: lax.cond(x > 1, xnp.sin, xnp.cos, x)))(1.0)
        xt.hessian(lambda x: xnp.sum(x * x * x))(np.ones(2, F32))
        xt.vmap(xt.value_and_grad(lambda x: (x * x, 2 * x), has_aux=True))(np.ones(2, F32))
        xt.vmap(lambda x: lax.scan(step, x, None, length=3))(np.ones(2, F32))


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
def test_an_exception_leaves_no_trace(error):
    def f(x):
        raise error("inside")

    x = np.ones(2, F32)
    for call in (
        lambda: xt.grad(f)(1.0),
        lambda: xt.vmap(f)(x),
        lambda: xt.jvp(f, (x,), (x,)),
        lambda: xt.linearize(f, x),
        lambda: xt.hessian(f)(x),
        lambda: xt.vmap(xt.grad(xt.jit(f)))(x),
        lambda: xt.grad(xt.checkpoint(f))(1.0),
        lambda: xt.linear_transpose(f, x),
    ):
        with pytest.raises(error):
            call()
        assert current_trace.get() is base_trace


def test_threads_transform_at_once():
    found = []

    def work(n):
        f = xt.vmap(xt.grad(xt.jit(lambda x: xnp.sin(x * n))))
        found.append(all(np.allclose(f(np.zeros(3, F32)), n) for _ in range(20)))

    threads = [threading.Thread(target=work, args=(float(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4
