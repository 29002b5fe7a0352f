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
    assert {"jit(f)/jvp(outer)/block/sin", "jit(f)/transpose(jvp(outer))/inner/mul"} <= set(found)
    found = names(xtrace.lower(xtrace.vmap(f), np.ones(3, np.float32)))
    assert "jit(f)/vmap(outer)/block/cos" in found


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

    assert {"jit(g)/while/cond/lt", "jit(g)/while/body/exp"} <= set(names(xtrace.lower(g, 1.0)))


def loss(package):
    def layer(w, x):
        with package.named_scope("layer"), package.named_scope("inner"):
            return package.numpy.sin(x) * w

    return lambda w, x: package.numpy.sum(layer(w, x) ** 2)


def scopes_and_maps(package):
    def f(x):
        with package.named_scope("a"):
            y = package.numpy.cos(x)
            return package.vmap(lambda x: package.named_scope("c")(package.numpy.sin)(x))(x) * y

    return f


def made_and_used(package):
    def f(w, x):
        with package.named_scope("made"):
            _, pullback = package.vjp(loss(package), w, x)
        with package.named_scope("used"):
            return pullback(np.float32(1))

    return f


def custom(package):
    f = package.custom_vjp(lambda x: package.numpy.sin(x) * 2)
    f.defvjp(lambda x: (package.numpy.sin(x) * 2, x), lambda x, t: (package.numpy.cos(x) * t * 2,))
    return package.grad(lambda x: package.numpy.sum(f(x)))


def called(package):
    inner = package.jit(lambda x: package.numpy.sin(x) * 3)
    return package.grad(lambda x: package.numpy.sum(package.named_scope("outer")(inner)(x) + 1))


def scanned(p):
    return lambda x: p.lax.scan(lambda c, y: (p.numpy.sin(c) * y, c), x, p.numpy.stack([x, 2 * x]))[0]


def with_rules(p):
    """A function with a derivative of its own in each of the two ways; scopes in rules and around calls."""
    sin, cos = p.numpy.sin, p.numpy.cos
    forward = p.custom_jvp(lambda x: p.named_scope("primal")(sin)(x) * 2)
    forward.defjvp(p.named_scope("rule")(lambda x, t: (forward(*x), p.lax.mul(cos(x[0]) * 2, t[0]))))
    reverse = p.custom_vjp(lambda x: sin(x) * 2)
    reverse.defvjp(
        p.named_scope("fwd")(lambda x: (sin(x) * 2, cos(x))), p.named_scope("bwd")(lambda r, t: (r * t * 2,))
    )
    return lambda x: p.named_scope("first")(forward)(x) * p.named_scope("second")(reverse)(x)


def chosen(p):
    on_true, on_false = p.named_scope("yes")(lambda x: p.numpy.sin(x) * x), p.named_scope("no")(p.numpy.cos)
    return lambda x: p.lax.cond(x.sum() > 3, on_true, on_false, x)


def recomputed(p, **keywords):
    def inner(x):
        with p.named_scope("inner"):
            return p.numpy.sin(p.numpy.exp(x)) * x

    return lambda x: p.named_scope("outer")(p.checkpoint(inner, **keywords))(p.numpy.cos(x)) * x


def mapped(p, **keywords):
    def row(x):
        with p.named_scope("row"):
            return p.numpy.sin(x) * x

    return lambda x: p.lax.map(row, p.numpy.stack([x, x * 2, x * 3, x * 4]), **keywords)


def root(p):
    def equation(x):
        return p.named_scope("equation")(lambda y: y * y * y - p.numpy.sin(x))

    def solve(f, y):
        return p.named_scope("solve")(lambda y: y - f(y) / 8)(y)

    return lambda x: p.lax.custom_root(equation(x), x, solve, lambda g, y: y / g(p.numpy.ones_like(y)))


def solved(p):
    def product(x):
        return p.named_scope("product")(lambda v: v * p.numpy.cos(x))

    def solve(f, y):
        return p.named_scope("solve")(lambda y: f(y) / 8)(y)

    return lambda x: p.lax.custom_linear_solve(product(x), p.numpy.sin(x), solve, solve)


def grad(p, f):
    return p.grad(lambda x: (f(x) ** 2).sum())


V, M = np.ones(4, np.float32), np.ones((3, 4), np.float32)
# Programs whose operations have the names that they have with jax, but for moves and spreads of values, which differ.
PROGRAMS = {
    "gradient": (lambda p: p.grad(loss(p)), (V, V)),
    "value and gradient": (lambda p: p.value_and_grad(loss(p)), (V, V)),
    "jvp": (lambda p: lambda w, x: p.jvp(lambda w: loss(p)(w, x), (w,), (x,)), (V, V)),
    "map": (lambda p: p.vmap(loss(p), (None, 0)), (V, M)),
    "map of a gradient": (lambda p: p.vmap(p.grad(loss(p)), (None, 0)), (V, M)),
    "gradient of a map": (lambda p: p.grad(lambda w, x: p.vmap(loss(p), (None, 0))(w, x).sum()), (V, M)),
    "second derivative": (lambda p: p.jacfwd(p.grad(lambda x: p.named_scope("s")(p.numpy.sin)(x))), (np.float32(1),)),
    "scope around": (lambda p: lambda w, x: p.named_scope("opt")(p.grad(loss(p)))(w, x), (V, V)),
    "pullback in another scope": (made_and_used, (V, V)),
    "scopes and maps": (lambda p: lambda x: p.jvp(scopes_and_maps(p), (x,), (x,)), (V,)),
    "custom derivative": (custom, (V,)),
    "layer": (lambda p: p.grad(lambda w, x: p.numpy.sum(p.numpy.tanh(w @ x))), (M, V)),
    "loop": (lambda p: lambda x: p.lax.while_loop(lambda c: c.sum() < 9, lambda c: p.numpy.sin(c) + 2, x), (V,)),
    "map of a loop": (
        lambda p: p.vmap(lambda x: p.lax.while_loop(lambda c: p.numpy.cos(c[0]) < 1, lambda c: p.numpy.sin(c) + 2, x)),
        (M,),
    ),
    "choice": (
        lambda p: lambda i, x: p.lax.cond(i > 0, lambda x: p.numpy.sin(x) * 2, lambda x: p.numpy.cos(x) * 3, x),
        (np.int32(1), V),
    ),
    "gradient of a choice": (
        lambda p: p.grad(lambda x: p.lax.switch(1, [p.numpy.sin, lambda x: p.numpy.cos(x) * 3], x).sum()), (V,)
    ),
    "inner call": (called, (V,)),
    "loop over rows": (scanned, (V,)),
    "loop over rows in a scope": (lambda p: lambda x: p.named_scope("opt")(scanned(p))(x), (V,)),
    "map of a loop over rows": (lambda p: p.vmap(scanned(p)), (M,)),
    "tangents of a loop over rows": (lambda p: lambda x: p.jvp(scanned(p), (x,), (x,)), (V,)),
    "loop with known bounds": (lambda p: lambda x: p.lax.fori_loop(0, 3, lambda i, c: p.numpy.sin(c), x), (V,)),
    "gradient of a loop with known bounds": (
        lambda p: p.grad(lambda x: p.lax.fori_loop(0, 3, lambda i, c: p.numpy.sin(c), x).sum()), (V,)
    ),
    "loop without a carry": (lambda p: lambda x: p.lax.map(p.numpy.sin, x), (V,)),
    "map of an inner call": (lambda p: p.vmap(p.jit(lambda x: p.numpy.sin(x) * x)), (V,)),
    "tangents of an inner call": (lambda p: lambda x: p.jvp(p.jit(lambda x: p.numpy.sin(x) * x), (x,), (x,)), (V,)),
    "sums and differences": (
        lambda p: lambda x: p.jvp(lambda x: p.lax.sub(x + p.numpy.sin(x), x * x), (x,), (x,)), (V,)
    ),
}
# The same of these functions, by the transformations.
FUNCTIONS = {
    "rules of users": with_rules, "choice": chosen, "checkpoint": recomputed,
    "checkpoint with a policy": lambda p: recomputed(p, policy=p.checkpoint_policies.everything_saveable),
    "loop over rows": mapped, "loop over batches of rows": lambda p: mapped(p, batch_size=2),
    "root": root, "linear system": solved,
    "loop with a constant": lambda p: lambda x: p.lax.fori_loop(
        0, 3, lambda i, c: p.named_scope("body")(lambda c: p.numpy.sin(c) * x)(c), x
    ),
}
TRANSFORMATIONS = {
    "gradient": (grad, V),
    "map of the gradient": (lambda p, f: p.vmap(grad(p, f)), M),
    "gradient of the map": (lambda p, f: grad(p, p.vmap(f)), M),
    "gradient in a scope": (lambda p, f: p.named_scope("around")(grad(p, f)), V),
    "gradient of an inner call": (lambda p, f: grad(p, p.jit(f)), V),
}
for _function in FUNCTIONS:
    for _transformation, (_apply, _x) in TRANSFORMATIONS.items():
        PROGRAMS[f"{_function}: {_transformation}"] = (
            lambda p, f=FUNCTIONS[_function], apply=_apply: lambda x: apply(p, f(p))(x), (_x,)
        )
_MOVES = re.compile(
    "/(broadcast_in_dim|reshape|reduce_sum|convert_element_type|transpose|split|iota|squeeze|reduce_precision)$"
)


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", PROGRAMS)
def test_operations_of_transformed_programs_have_jaxs_names(name):
    make, args = PROGRAMS[name]
    found = []
    for package in (xtrace, jax):
        text = package.jit(make(package)).lower(*args).compile().as_text()
        ops = re.findall(r'op_name="(jit[^"]*)"', text)
        # jax names the loop itself twice over.
        every = {n.replace("/while/while", "/while") for op in ops for n in op.split(";")}
        # Nor is it compared which calls, and operations of none of the user's, have a name of their own.
        found.append({n for n in every if not _MOVES.search(n) and not n.endswith(("/while", ")"))})
    assert found[0] == found[1] and len(found[0]) > 1


def test_loops_over_rows_and_checkpoints_are_named():
    def scanned(x):
        return xtrace.lax.scan(lambda c, y: (jnp.sin(c) + y, c * 2), x, M)[0].sum()

    found = set(names(xtrace.lower(xtrace.grad(scanned), V)))
    assert {
        "jit(scanned)/jvp()/while/body/closed_call/cos", "jit(scanned)/transpose(jvp())/while/body/closed_call/mul"
    } <= found

    # Operations are also named in text that is not compiled, apart from what is computed again and what is not.
    found = set(names(xtrace.lower(grad(xtrace, recomputed(xtrace)), V)))
    again = "transpose(jvp(outer))/jvp(outer)/checkpoint"
    assert {f"jit(<lambda>)/{again}/inner/mul", f"jit(<lambda>)/{again}/rematted_computation/inner/cos"} <= found


def test_scopes_of_equations():
    for package in (xtrace, jax):

        def scoped(x, package=package):
            with package.named_scope("a"):
                return package.lax.sin(x)

        equation = package.make_jaxpr(lambda x: package.jvp(scoped, (x,), (x,)))(1.0).eqns[0]  # noqa: B023
        assert str(equation.source_info.name_stack) == "jvp(a)" and len(equation.source_info.name_stack.stack) == 2
        assert "test_scopes.py" in str(equation.source_info.traceback)
    assert str(xtrace.make_jaxpr(lambda x: x * 2)(1.0).eqns[0].source_info.name_stack) == ""


def test_results_and_arguments_are_named_in_the_text():
    for package in (xtrace, jax):
        f = package.jit(lambda x, y: {"a": x * 2, "b": (y["q"], x)})
        text = f.lower(V, {"q": V}).as_text()
        assert re.findall(r'jax.result_info = "([^"]*)"', text) == ["result['a']", "result['b'][0]", "result['b'][1]"]
        assert 'jax.result_info = "result"' in package.jit(lambda x: x * 2).lower(V).as_text()
        hlo = f.lower(V, {"q": V}).as_text("hlo", debug_info=True)
        assert 'metadata={op_name="x"}' in hlo


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
