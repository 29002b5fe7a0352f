"""What is copied under stacked traces is what the rules bind there."""

import re
from collections import Counter

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import lax
from xtrace._src.core.diagnostics.source import resolve
from xtrace._src.transforms.linearize import Tape
from xtrace._src.transforms.stage import StagingTrace

X = np.linspace(0.1, 1, 6, dtype=np.float32).reshape(2, 3)
W = jnp.asarray(np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3))


def smooth(x):
    """Elementwise operations, a contraction, reductions, units, slices and literals."""
    y = jnp.tanh(x @ W) * 2 + x
    return (jnp.where(y > 0.3, y, -y)[..., 1:] ** 2).sum(-1) / (1 + jnp.var(y)) + jnp.concatenate([x, y], -1).max()


STACKS = {
    "jvp": lambda x: xtrace.jvp(smooth, (x,), (2 * x,)),
    "vmap": xtrace.vmap(smooth),
    "vmap of vmap": lambda x: xtrace.vmap(xtrace.vmap(smooth), in_axes=1)(jnp.stack([x, x])),
    "vmap of jvp": xtrace.vmap(lambda x: xtrace.jvp(smooth, (x,), (jnp.cos(x),))),
    "jvp of vmap": lambda x: xtrace.jvp(xtrace.vmap(smooth), (x,), (x,)),
    "vmap of grad": xtrace.vmap(xtrace.grad(smooth)),
    "grad of vmap": xtrace.grad(lambda x: xtrace.vmap(smooth)(x).sum()),
    "vmap of the Hessian": xtrace.vmap(xtrace.hessian(smooth)),
    "jvp of vmap of grad": lambda x: xtrace.jvp(xtrace.vmap(xtrace.grad(smooth)), (x,), (x,)),
    "grad of grad of vmap": xtrace.grad(lambda x: (xtrace.grad(lambda y: xtrace.vmap(smooth)(y).sum())(x) ** 2).sum()),
    "vmap of linearize": xtrace.vmap(lambda x: xtrace.linearize(smooth, x)[1](x)),
    "jacrev of jacfwd": lambda x: xtrace.jacrev(xtrace.jacfwd(smooth))(x[0]),
    "vmap over a closed-over tracer": lambda x: xtrace.vmap(lambda i: xtrace.grad(smooth)(x[i]) * smooth(x[0]))(
        np.arange(2)
    ),
    "vmap in grad in vmap": xtrace.vmap(
        lambda x: xtrace.grad(lambda y: xtrace.vmap(lambda a: smooth(a * y))(jnp.arange(2.0)).sum())(x)
    ),
}


def traced_twice(f):
    return [str(xtrace.make_jaxpr(lambda x: f(x))(X)) for _ in range(2)]


@pytest.mark.parametrize("name", STACKS)
def test_copies_are_what_rules_bind(name, monkeypatch):
    f = STACKS[name]
    with xtrace.checking_leaks():  # every tracer is watched, so nothing is copied
        bound = str(xtrace.make_jaxpr(lambda x: f(x))(X))
    together, again = traced_twice(f)
    # A group adds up its own cotangents first.
    monkeypatch.setattr(Tape, "append", StagingTrace.append)
    assert traced_twice(f) == [bound, bound]
    assert together == again and Counter(operations(together)) == Counter(operations(bound))


def operations(text):
    """The names of the operations in a jaxpr's text."""
    return re.findall(r"= (\w+)", text)


def test_a_rule_runs_once_for_operands_of_given_types(new_primitive):
    asked = []

    def jvp(primals, tangents):
        asked.append("jvp")
        return primitive.bind(*primals), primitive.bind(tangents[0])

    def batch(mapped, operands, axes):
        asked.append("batch")
        return primitive.bind(*operands), axes[0]

    primitive = new_primitive("same", abstract=lambda aval: aval, emit=lambda builder, x: x, jvp=jvp, batch=batch)
    f = xtrace.vmap(lambda x: xtrace.jvp(primitive.bind, (x,), (x,)))
    closed = xtrace.make_jaxpr(f)(X)
    assert [e.primitive for e in closed.eqns] == [primitive, primitive]
    assert asked == ["jvp", "batch", "batch"]
    xtrace.make_jaxpr(lambda x: f(x))(X)
    assert asked == ["jvp", "batch", "batch"]
    xtrace.make_jaxpr(lambda x: f(x))(X.T.copy())
    assert asked == ["jvp", "batch", "batch"] * 2


def test_copies_have_the_position_of_their_own_line():
    def f(x):
        a = lax.sin(x)
        return lax.sin(a)

    xtrace.make_jaxpr(xtrace.vmap(lambda x: xtrace.jvp(f, (x,), (x,))))(X)
    closed = xtrace.make_jaxpr(xtrace.vmap(lambda x: xtrace.jvp(f, (x,), (x,))))(X)
    lines = [resolve(e.source).line - f.__code__.co_firstlineno for e in closed.eqns]
    assert sorted(set(lines)) == [1, 2] and lines.count(1) == lines.count(2)


def test_what_reads_a_tracer_from_outside_is_not_copied(new_primitive):
    outside = []
    primitive = new_primitive(
        "reads", abstract=lambda aval: aval, emit=lambda builder, x: x,
        batch=lambda mapped, operands, axes: (operands[0] * outside[-1], axes[0]),
    )

    def f(x, scale):
        outside.append(scale)
        return xtrace.vmap(xtrace.vmap(primitive.bind))(x)

    for scale in (2.0, 3.0):
        np.testing.assert_array_equal(xtrace.jit(lambda x, s: f(x, s))(X, scale), X * np.float32(scale))


def test_a_custom_rule_is_batched_under_the_trace_it_is_called_in():
    f = xtrace.custom_jvp(lambda x: jnp.sin(x) * x)
    f.defjvp(lambda primals, tangents: xtrace.jvp(lambda x: jnp.sin(x) * x, primals, tangents))
    found = xtrace.jit(lambda x: xtrace.linearize(xtrace.vmap(lambda y: f(y)), x)[1](x))(X)
    np.testing.assert_allclose(found, (np.cos(X) * X + np.sin(X)) * X, rtol=16 * np.finfo(np.float32).eps)
