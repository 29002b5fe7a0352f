"""Callbacks of compiled programs: what is called, how often, in which order and with which values, as in jax."""

import contextlib
import io
import types
from functools import partial

import jax
import jax.experimental
import numpy as np
import pytest

import xtrace
import xtrace.experimental
import xtrace.numpy
from xtrace import lax

OURS = types.SimpleNamespace(root=xtrace, np=xtrace.numpy, lax=lax, io_callback=xtrace.experimental.io_callback)
THEIRS = types.SimpleNamespace(root=jax, np=jax.numpy, lax=jax.lax, io_callback=jax.experimental.io_callback)


class Calls:
    """What callbacks were called with, by two libraries in turn."""

    def __init__(self, library):
        self.library, self.seen = library, []
        self.debug = library.root.debug

    def show(self, tag, x, **options):
        """Call back for the effect; returns the double."""
        self.debug.callback(partial(self._note, tag), x, **options)
        return x * 2

    def print(self, tag, x, **options):
        """Print; returns the double."""
        self.debug.print(tag + " {}", x, **options)
        return x * 2

    def read(self, tag, x, **options):
        """Call back for a result, with effects."""
        return self.library.io_callback(partial(self._sine, tag), self._like(x), x, **options)

    def pure(self, tag, x, **options):
        """Call back for a result, without effects."""
        return self.library.root.pure_callback(partial(self._sine, tag), self._like(x), x, **options)

    def _like(self, x):
        return self.library.root.ShapeDtypeStruct(np.shape(x), np.float32)

    def _note(self, tag, x):
        self.seen.append((tag, np.shape(x), np.asarray(x).tolist()))

    def _sine(self, tag, x):
        self._note(tag, x)
        return np.sin(np.asarray(x))


def run(library, program, *arguments):
    """Return what the program gives, what its callbacks saw and what it printed."""
    calls, printed = Calls(library), io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = program(library, calls, *[library.np.asarray(x) for x in arguments])
        leaves = [np.asarray(x) for x in library.root.tree.leaves(result)]
        library.root.effects_barrier()
    return leaves, calls.seen, printed.getvalue().splitlines()


X, XS = np.float32(1.5), np.arange(3, dtype=np.float32)


def in_scan(m, c, use, x):
    def step(carry, y):
        return use(carry) * 0.5 + y, carry

    return m.lax.scan(step, x, m.np.arange(3.0, dtype="float32"))


def in_while(m, c, use, x):
    return m.lax.while_loop(lambda v: v < 3, lambda v: use(v) * 0 + v + 1, x)


def in_predicate(m, c, use, x):
    return m.lax.while_loop(lambda v: use(v) * 0 + v < 3, lambda v: v + 1, x)


def in_fori(m, c, use, x):
    return m.lax.fori_loop(0, 3, lambda i, v: use(v) * 0 + v + 1, x)


def in_branch(m, c, use, x):
    taken = m.lax.cond(x > 0, use, lambda v: v, x)
    return taken + m.lax.switch(m.np.int32(2), [use, lambda v: v, lambda v: use(v + 1)], x)


def in_calls(m, c, use, x):
    inner = m.root.jit(lambda v: use(v) + 1)
    return inner(x) + inner(x) + m.root.jit(inner)(x)


def twice(m, c, use, x):
    return use(x) + use(x) + use(x + 1)


def unused(m, c, use, x):
    use(x)
    return x


PLACES = [in_scan, in_while, in_predicate, in_fori, in_branch, in_calls, twice, unused]
KINDS = {
    "print": lambda c, x: c.print("p", x),
    "print ordered": lambda c, x: c.print("p", x, ordered=True),
    "callback": lambda c, x: c.show("c", x),
    "callback ordered": lambda c, x: c.show("c", x, ordered=True),
    "io": lambda c, x: c.read("io", x),
    "io ordered": lambda c, x: c.read("io", x, ordered=True),
}


def check(program, *arguments, in_order=True):
    """Compare a program of both libraries; calls that are not ordered may come in any order."""
    (ours, seen, printed), (theirs, seen_there, printed_there) = (run(m, program, *arguments) for m in (OURS, THEIRS))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    order = list if in_order else sorted
    assert order(seen) == order(seen_there)
    assert order(printed) == order(printed_there)
    assert seen or printed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["jit", "eager", "disable_jit"])
def test_calls_are_those_of_jax(kind, how):
    def program(m, c, x):
        use = partial(KINDS[kind], c)

        def all_places(x):
            return [place(m, c, use, x) for place in PLACES]

        if how == "disable_jit":
            with m.root.disable_jit():
                return all_places(x)
        return m.root.jit(all_places)(x) if how == "jit" else all_places(x)

    check(program, X, in_order="ordered" in kind or how != "jit")


def _of_lanes(m, c, use, x):
    return m.root.vmap(use)(x), m.root.vmap(m.root.vmap(use))(m.np.stack([x, x + 3])), m.root.vmap(use, 1)(x[None])


def _in_lanes_of_loops(m, c, use, x):
    return (
        m.root.vmap(lambda v: m.lax.scan(lambda k, y: (use(k) * 0 + y, k), v, m.np.arange(2.0, dtype="float32")))(x),
        m.root.vmap(lambda v: v + use(m.np.float32(7)))(x),
        m.root.vmap(lambda v: use(m.lax.psum(v, "i")), axis_name="i")(x),
    )


def _derivatives(m, c, use, x):
    grad, jvp = m.root.grad, m.root.jvp
    checkpointed = m.root.checkpoint(lambda v: use(m.np.sin(v)) * m.np.sin(v))
    return (
        grad(use)(x[1]), jvp(use, (x[1],), (x[2],)), m.root.linearize(use, x[1])[1](x[2]), grad(grad(use))(x[2]),
        grad(lambda v: m.lax.scan(lambda k, y: (use(k) + y, None), v, x)[0])(x[1]), grad(checkpointed)(x[1]),
        grad(lambda v: m.lax.cond(v > 0, use, lambda v: v, v))(x[1]),
        m.root.vmap(grad(use))(x), grad(lambda v: m.root.vmap(use)(v).sum())(x),
    )  # fmt: skip


def _forward_in_while(m, c, use, x):
    def loop(v):
        return m.lax.while_loop(lambda k: k[0] < 2, lambda k: (use(k[0]) * 0 + k[0] + 1, k[1] * 2), (x[0], v))[1]

    return m.root.jvp(loop, (x[1],), (x[1],)), m.root.linearize(loop, x[1])[1](x[1])


def _custom(m, c, use, x):
    one, two = m.root.custom_jvp(use), m.root.custom_vjp(use)
    one.defjvp(lambda primals, tangents: (one(*primals), tangents[0] * 3))
    two.defvjp(lambda v: (two(v), v), lambda kept, cotangent: (use(cotangent + 4) + kept,))
    return m.root.grad(one)(x[1]), m.root.grad(two)(x[1]), one(x[2]), two(x[2]), m.root.vmap(m.root.grad(one))(x)


DEBUG = [kind for kind in KINDS if "io" not in kind]


@pytest.mark.parametrize("kind", DEBUG)
@pytest.mark.parametrize("program", [_of_lanes, _in_lanes_of_loops, _derivatives, _forward_in_while, _custom])
def test_transformed_calls_are_those_of_jax(kind, program):
    def all_of_it(m, c, x):
        return m.root.jit(lambda x: program(m, c, partial(KINDS[kind], c), x))(x)

    check(all_of_it, XS, in_order="ordered" in kind)


@pytest.mark.parametrize("program", [_derivatives, _of_lanes, _in_lanes_of_loops])
def test_eager_transformed_calls_are_those_of_jax(program):
    check(lambda m, c, x: program(m, c, partial(KINDS["callback"], c), x), XS)
