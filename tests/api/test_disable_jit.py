"""disable_jit: everything runs in Python, operation by operation, with values that Python can look at, as in jax."""

import functools

import jax
import jax.numpy
import numpy as np
import pytest

import xtrace
import xtrace.numpy


def kind(x):
    """What a function in Python was given: a tracer, a number or an array."""
    name = type(x).__name__
    if "Tracer" in name:
        return "tracer"
    return "number" if isinstance(x, (int, float, np.generic)) else "array"


class Model:
    """A class with a jitted method, which notes what it is given."""

    def __init__(self, jit, note):
        self.apply = functools.partial(jit(lambda model, x: note(x) + 1, static_argnums=0), self)


def squared(lib, note, how):
    """A function with a derivative of its own."""
    f = getattr(lib, how)(lambda x: note(x) ** 2)
    if how == "custom_jvp":
        f.defjvp(lambda p, t: (f(*p), 10 * p[0] * t[0]))
    else:
        f.defvjp(lambda x: (note(x) ** 2, x), lambda x, ct: (10 * x * ct,))
    return f


# Each is called with the library, its lax and numpy, and a function that notes what it is given and returns it.
CASES = {
    "an array": lambda lib, lax, np_, note: lib.jit(lambda x: note(x) * 2)(np_.ones(2)),
    "a number": lambda lib, lax, np_, note: lib.jit(lambda x: note(x) * 2)(3.0),
    "an array of NumPy": lambda lib, lax, np_, note: lib.jit(lambda x: note(x) * 2)(np.ones(2, np.float32)),
    "a branch": lambda lib, lax, np_, note: lib.jit(lambda x: x if note(x) > 0 else -x)(np_.float32(-1)),
    "jit in jit": lambda lib, lax, np_, note: lib.jit(lambda x: lib.jit(lambda y: note(y) + 1)(x) * 2)(1.0),
    "static": lambda lib, lax, np_, note: lib.jit(lambda x, n: note(x) * n[0], static_argnums=1)(1.0, [3]),
    "no array": lambda lib, lax, np_, note: lib.jit(lambda x: 5)("text"),
    "a method": lambda lib, lax, np_, note: Model(lib.jit, note).apply(1.0),
    "grad of jit": lambda lib, lax, np_, note: lib.grad(lib.jit(lambda x: note(x) ** 2))(3.0),
    "jit of grad": lambda lib, lax, np_, note: lib.jit(lib.grad(lambda x: note(x) ** 2 if x > 0 else x))(3.0),
    "hessian": lambda lib, lax, np_, note: lib.hessian(lib.jit(lambda x: note(x) ** 3))(2.0),
    "vmap": lambda lib, lax, np_, note: lib.vmap(lib.jit(lambda x: note(x) ** 2))(np_.ones(3)),
    "checkpoint": lambda lib, lax, np_, note: lib.grad(lib.checkpoint(lambda x: note(x) ** 2))(2.0),
    "custom_jvp": lambda lib, lax, np_, note: lib.jit(squared(lib, note, "custom_jvp"))(2.0),
    "grad of custom_jvp": lambda lib, lax, np_, note: lib.grad(lib.jit(squared(lib, lambda x: x, "custom_jvp")))(2.0),
    "grad of custom_vjp": lambda lib, lax, np_, note: lib.grad(lib.jit(squared(lib, lambda x: x, "custom_vjp")))(2.0),
    "make_jaxpr": lambda lib, lax, np_, note: len(lib.make_jaxpr(lib.jit(lambda x: note(x) + 1))(1.0).jaxpr.eqns),
    "eval_shape": lambda lib, lax, np_, note: lib.eval_shape(lib.jit(lambda x: note(x) + 1), 1.0).shape,
    "vectorize": lambda lib, lax, np_, note: np_.vectorize(lambda x: note(x) + 1)(np_.ones(2)),
    "reduction of nothing": lambda lib, lax, np_, note: np_.subtract.reduce(np_.ones((0, 2)), initial=1.0),
    "reduction of one": lambda lib, lax, np_, note: np_.frompyfunc(lambda x, y: x + y, 2, 1).reduce(np_.ones((1, 2))),
    "reduction of booleans": lambda lib, lax, np_, note: (
        np_.frompyfunc(lambda x, y: x + y, 2, 1).reduce(np_.zeros(0, bool), initial=0)
    ),
    "accumulation of one": lambda lib, lax, np_, note: np_.subtract.accumulate(np_.ones((1, 2))),
    "cond": lambda lib, lax, np_, note: lax.cond(
        np_.bool_(True), lambda x: note(x) + 1, lambda x: note(x, x) - 1, 1.0),
    "cond with branches of different types": lambda lib, lax, np_, note: lax.cond(
        2, lambda x: note(x) + 1, lambda x: (1, 2), 1.0),
    "cond in jit": lambda lib, lax, np_, note: lib.jit(
        lambda p, x: lax.cond(p, lambda x: note(x) + 1, lambda x: note(x) - 1, x))(True, 1.0),
    "vmap of cond": lambda lib, lax, np_, note: lib.vmap(
        lambda p, x: lax.cond(p, lambda x: note(x) + 1, lambda x: note(x) - 1, x))(np_.arange(2) > 0, np_.ones(2)),
    "grad of cond": lambda lib, lax, np_, note: lib.grad(
        lambda x: lax.cond(x > 0, lambda x: note(x) ** 2, lambda x: x, x))(3.0),
    "switch": lambda lib, lax, np_, note: lax.switch(np_.int32(1), [lambda x: x, lambda x: note(x) + 1], 1.0),
    "switch beyond its branches": lambda lib, lax, np_, note: lax.switch(7, [lambda x: x, lambda x: note(x) + 1], 1.0),
    "vmap of switch": lambda lib, lax, np_, note: lib.vmap(
        lambda i: lax.switch(i, [lambda: 1.0, lambda: 2.0]))(np_.arange(2)),
    "while_loop": lambda lib, lax, np_, note: lax.while_loop(
        lambda v: note(v[0]) < 3, lambda v: (note(v[0]) + 1, v[1] * 2), (0, 1.0)),
    "while_loop that changes its type": lambda lib, lax, np_, note: lax.while_loop(
        lambda v: v < 3, lambda v: note(v) + 1.5, 0),
    "grad of while_loop": lambda lib, lax, np_, note: lib.grad(
        lambda x: lax.while_loop(lambda v: v < 30, lambda v: note(v) * 2, x))(3.0),
    "vmap of while_loop": lambda lib, lax, np_, note: lib.vmap(
        lambda x: lax.while_loop(lambda v: v < 30, lambda v: note(v) * 2, x))(np_.arange(1.0, 3.0)),
    "fori_loop": lambda lib, lax, np_, note: lax.fori_loop(0, 3, lambda i, v: note(v, i) + i, 0.0),
    "fori_loop with arrays as bounds": lambda lib, lax, np_, note: lax.fori_loop(
        np_.int32(0), np_.int32(2), lambda i, v: note(v, i) + i, 0.0),
    "fori_loop without steps": lambda lib, lax, np_, note: lax.fori_loop(3, 0, lambda i, v: note(v, i) + i, 0.0),
    "grad of fori_loop": lambda lib, lax, np_, note: lib.grad(
        lambda x: lax.fori_loop(0, 2, lambda i, v: note(v, i) * x, x))(3.0),
    "vmap of fori_loop": lambda lib, lax, np_, note: lib.vmap(
        lambda n: lax.fori_loop(0, n, lambda i, v: note(v, i) + i, 0))(np_.arange(3)),
    "scan": lambda lib, lax, np_, note: lax.scan(lambda c, x: (c + note(x), (c, x)), 0.0, np_.arange(3.0)),
    "scan of an array of NumPy": lambda lib, lax, np_, note: lax.scan(
        lambda c, x: (c + note(x), c), 0.0, np.arange(3).astype(np.float32)),
    "scan without elements": lambda lib, lax, np_, note: lax.scan(lambda c, x: (note(c) + 1, 1), 0.0, None, length=2),
    "scan in reverse": lambda lib, lax, np_, note: lax.scan(
        lambda c, x: (c + note(x), c * x), 1.0, np_.arange(3.0), reverse=True),
    "scan of nothing": lambda lib, lax, np_, note: lax.scan(lambda c, x: (c + x, c), 0.0, np_.zeros(0)),
    "grad of scan": lambda lib, lax, np_, note: lib.grad(
        lambda y: lax.scan(lambda c, x: (c * note(x) * y, None), 1.0, np_.arange(1.0, 4.0))[0])(2.0),
    "vmap of scan": lambda lib, lax, np_, note: lib.vmap(
        lambda y: lax.scan(lambda c, x: (c + x * y, note(c)), 1.0, np_.arange(1.0, 4.0)))(np_.arange(2.0)),
    "map": lambda lib, lax, np_, note: lax.map(lambda x: note(x) * 2, np_.arange(3.0)),
    "map of batches": lambda lib, lax, np_, note: lax.map(lambda x: note(x) * 2, np_.arange(4.0), batch_size=2),
    "associative_scan": lambda lib, lax, np_, note: lax.associative_scan(lambda a, b: note(a) + b, np_.arange(4.0)),
    "custom_linear_solve": lambda lib, lax, np_, note: lax.custom_linear_solve(
        lambda x: note(x) * 2, np_.ones(2), lambda mv, b: note(b) / 2),
    "functions of numpy": lambda lib, lax, np_, note: (
        np_.std(np_.arange(3.0)), np_.cumsum(np_.arange(3)), np_.sort(np_.arange(3.0)[::-1])),
    "random numbers": lambda lib, lax, np_, note: lib.random.permutation(lib.random.key(0), 4),
}


def outcome(lib, np_, case):
    """What a case notes, and its results with their types, or the class of its error."""
    noted = []

    def note(*values):
        noted.append(tuple(map(kind, values)))
        return values[0]

    with lib.disable_jit():
        try:
            results = case(lib, lib.lax, np_, note)
        except (TypeError, ValueError) as error:
            return noted, type(error)
    return noted, lib.tree_util.tree_map(
        lambda x: (np.asarray(x).tolist(), str(getattr(x, "dtype", type(x))), getattr(x, "weak_type", None)), results
    )


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", CASES)
def test_what_python_sees_is_what_it_sees_in_jax(name):
    assert outcome(xtrace, xtrace.numpy, CASES[name]) == outcome(jax, jax.numpy, CASES[name])


def test_bodies_print_values(capsys):
    with xtrace.disable_jit():
        xtrace.lax.fori_loop(0, 3, lambda i, v: print(v) or v * 2, np.float32(1))
        xtrace.jit(lambda x: xtrace.lax.scan(lambda c, x: (print(x) or c, x), 0, x))(xtrace.numpy.arange(2))
    assert capsys.readouterr().out.split() == ["1.0", "2.0", "4.0", "0", "1"]


def test_it_can_be_turned_off_inside():
    noted = []
    with xtrace.disable_jit(), xtrace.disable_jit(False):
        assert xtrace.jit(lambda x: noted.append(kind(x)) or x + 1)(1.0) == 2
    assert noted == ["tracer"]
