"""Named scopes, named calls, and evaluation at compile time."""

import re

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp


@xtrace.named_call
def inner(x):
    return jnp.sin(x)


def f(x):
    with xtrace.named_scope("outer"):
        with xtrace.named_scope("block"):
            y = jnp.cos(x)
        return inner(y) * 2


def names(lowered):
    return [line.split('"')[1] for line in lowered.as_text(debug_info=True).splitlines() if line.startswith("#loc")]


def test_scopes_name_operations():
    found = names(xtrace.lower(f, 1.0))
    assert {"jit(f)/outer/block/cos", "jit(f)/outer/inner/sin", "jit(f)/outer/mul"} <= set(found)
    assert str(xtrace.make_jaxpr(f)(1.0)) == str(xtrace.make_jaxpr(lambda x: jnp.sin(jnp.cos(x)) * 2)(1.0))


def test_scopes_reach_hlo_and_derivatives():
    assert "outer/block/cos" in xtrace.jit(f).lower(1.0).compile().as_text()
    found = names(xtrace.lower(xtrace.grad(f), 1.0))
    assert any("outer/block/sin" in n for n in found) and any("outer/inner/cos" in n for n in found)
    found = names(xtrace.lower(xtrace.vmap(f), np.ones(3, np.float32)))
    assert "jit(f)/outer/block/cos" in found


def test_names_and_lines_in_optimised_hlo_are_those_of_jax():
    def metadata(library):
        def inner(x):
            return library.numpy.tanh(x) @ x

        def function(x):
            with library.named_scope("outer"):
                z = library.numpy.sin(x) * 3
                with library.named_scope("deep"):
                    z = library.jit(inner)(z)
            return z, library.numpy.sum(z)

        text = library.jit(function).lower(np.ones((3, 3), np.float32)).compile().as_text()
        names = set(re.findall(r'op_name="(jit[^"]*)"', text))
        return names, set(re.findall(r"\bline=(\d+)", text))

    (mine, lines), (theirs, lines_of_stack) = metadata(xtrace), metadata(jax)
    assert mine == theirs and len(mine) == 5
    assert "jit(function)/outer/deep/jit(inner)/tanh" in mine
    assert lines <= lines_of_stack and len(lines) == 4


def test_operations_in_loops_are_named_below_them():
    def g(x):
        return xtrace.lax.while_loop(lambda c: c < 9, lambda c: jnp.exp(c) + 1, x)

    assert {"jit(g)/while/lt", "jit(g)/while/exp"} <= set(names(xtrace.lower(g, 1.0)))


def test_scopes_are_decorators_and_leave_on_errors():
    @xtrace.named_scope("decorated")
    def g(x):
        return jnp.exp(x)

    def h(x):
        try:
            with xtrace.named_scope("failing"):
                jnp.sin(x)
                raise RuntimeError("out")
        except RuntimeError:
            return g(x)

    found = names(xtrace.lower(h, 1.0))
    assert "jit(h)/decorated/exp" in found and not any("failing" in n and "exp" in n for n in found)
    for bad in (3, None):
        with pytest.raises(TypeError, match="named_scope name argument must be a string"), xtrace.named_scope(bad):
            pass
    named = xtrace.named_call(lambda x: x + 1, name="plus")

    def k(x):
        return named(x)

    assert "jit(k)/plus/add" in names(xtrace.lower(k, 1.0))


def test_what_does_not_depend_on_tracers_is_evaluated_at_compile_time():
    seen = []

    @xtrace.jit
    def g(x):
        with xtrace.ensure_compile_time_eval():
            total = jnp.arange(4).sum()
            seen.append(int(total))
            if total > 3:
                y = x + total
        return y * 2

    assert int(g(1)) == 14 and seen == [6]
    assert "iota" not in str(xtrace.make_jaxpr(lambda x: g(x))(1))
