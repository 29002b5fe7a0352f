"""Messages name the public function that was called, and no function that it is made of."""

import numpy as np
import pytest

import xtrace
import xtrace.flatten_util
import xtrace.image
import xtrace.nn.initializers
import xtrace.scipy.special
import xtrace.scipy.stats

# Expressions and how their messages begin.
CALLS = [
    ("jnp.nansum([1])", "nansum requires ndarray"),
    ("jnp.abs(None)", "abs requires ndarray"),
    ("jnp.abs(x, 1)", "abs() takes 1 positional argument"),
    ("jnp.abs(y=1)", "abs() got an unexpected keyword"),
    ("jnp.add(x)", "add() missing 1 required positional argument: 'x2'"),
    ("jnp.power([1], 2)", "power requires ndarray"),
    ("jnp.pow(x)", "pow() missing 1 required positional argument"),
    ("jnp.arccos(key)", "arccos does not accept dtype key<fry>"),
    ("jnp.negative(x > 0)", "negative does not accept dtype bool"),
    ("jnp.zeros(2, device=3)", "zeros: device must be a device"),
    ("jnp.dot(x, x.T, precision={})", "dot: the argument precision"),
    ("jnp.concat([1.0])", "concat: Zero-dimensional"),
    ("jnp.trace(x, offset=None)", "trace: offset: None of type"),
    ("jnp.digitize(x, v, method=v)", "digitize: method must be one of"),
    ("jnp.unique_all(x, size={1})", "unique_all: size must be an integer"),
    ("jnp.logaddexp.reduce(x, keepdims=[])", "reduce: the argument keepdims"),
    ("jnp.multiply.reduce({})", "multiply.reduce requires ndarray"),
    ("x.conj(0)", "conj() takes 1 positional argument"),
    ("xtrace.scipy.stats.norm.pdf([1])", "norm.pdf requires ndarray"),
    ("xtrace.scipy.special.gammaln(x * 1j)", "gammaln does not accept dtype complex64"),
    ("xtrace.nn.initializers.normal(0.1)(key, (2, 2), 0, 0, 0)", "normal.<locals>.init() takes from 2 to 4 positional"),
    ("xtrace.flatten_util.ravel_pytree([1])[1](1, 2)", "unravel() takes 2 positional"),
    ("x.argsort(axis=7)", "argsort: axis 7 is out of bounds"),
    ("jnp.linalg.norm(x, axis=9)", "norm: axis 9 is out of bounds"),
    ("jnp.nanvar(x, axis=9)", "nanvar: axis 9 is out of bounds"),
    ("xtrace.image.resize(x, 'a', 'linear')", "resize: shape must be an integer or a sequence"),
    ("xtrace.random.normal(key, 'a')", "normal: shape must be an integer or a sequence"),
    ("xtrace.vmap(3)", "vmap: Expected a callable value"),
    ("lax.expand_dims(x, (9,))", "expand_dims: axis 9 is out of bounds"),
    ("lax.fori_loop(0, 3, 1, 2)", "lax.fori_loop: body_fun argument should be a callable"),
    ("lax.sin(1.0, None)", "operation() takes 2 positional"),
    ("lax.reduce_and(1, 2, 3, 4)", "reduction() takes 3 positional"),
    ("jnp.frompyfunc(f, 1, 1)(x, y=2)", "ufunc() got an unexpected keyword"),
    # What fails inside of the user's function is about the operation there.
    ("jnp.vectorize(f)(x)", "sum requires ndarray"),
    ("xtrace.tree.map(f, [1])", "sum requires ndarray"),
    ("jnp.apply_along_axis(f, 0, x)", "sum requires ndarray"),
]


@pytest.mark.parametrize(("text", "start"), CALLS, ids=lambda value: value)
@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
def test_messages_name_the_function_that_was_called(text, start, traced):
    jnp, key = xtrace.numpy, xtrace.random.key(0)

    def f(_):
        return jnp.sum(None)

    def call(x):
        names = {"xtrace": xtrace, "jnp": jnp, "lax": xtrace.lax, "x": x, "v": x[0], "key": key, "f": f}
        return eval(text, names)

    x = np.ones((3, 4), np.float32)
    with pytest.raises((TypeError, ValueError)) as caught:
        xtrace.eval_shape(call, x) if traced else call(jnp.asarray(x))
    assert str(caught.value).startswith(start), caught.value
