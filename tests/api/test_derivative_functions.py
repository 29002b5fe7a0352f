"""The functions that `vjp` and `linearize` return: pytrees of their residuals, which keep nothing else alive."""

import gc
import weakref

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp

X = np.arange(1, 4, dtype=np.float32)


def f(x):
    return jnp.sin(x) * x


def test_pullbacks_go_in_and_out_of_jitted_functions():
    value, pullback = xtrace.jit(lambda x: xtrace.vjp(f, x))(2.0)
    expected = jax.grad(lambda x: jax.numpy.sin(x) * x)(2.0)
    np.testing.assert_allclose(pullback(1.0)[0], expected, rtol=4 * 1.2e-7)
    np.testing.assert_allclose(xtrace.jit(lambda g, ct: g(ct))(pullback, 2.0)[0], 2 * expected, rtol=8 * 1.2e-7)
    _, linear = xtrace.jit(lambda x: xtrace.linearize(f, x))(2.0)
    np.testing.assert_allclose(linear(1.0), expected, rtol=4 * 1.2e-7)
    assert all(isinstance(x, xtrace.Array) for x in xtrace.tree.leaves(pullback)) and float(value) == float(f(2.0))


def test_only_what_the_backward_pass_reads_is_kept():
    x = jnp.arange(3.0)
    held = weakref.ref(x)
    result, pullback = xtrace.vjp(lambda x: (x + 1).sum(), x)
    del x
    gc.collect()
    assert held() is None and not xtrace.tree.leaves(pullback)
    assert pullback(1.0)[0].tolist() == [1, 1, 1] and float(result) == 6


# What a pullback keeps, and shows


def _product(m):
    return lambda x, y: {"a": m.numpy.sin(x) * y["b"]}


def _arguments(m):
    return m.numpy.asarray(X), {"b": 2 * m.numpy.asarray(X), "n": m.numpy.arange(2)}


def _kept(m, pullback):
    """The arguments that are kept, in their structure, and the other residuals."""
    shown = m.tree_util.tree_map(
        lambda x: repr(x) if "NotNeeded" in repr(x) else np.asarray(x).tolist(), pullback.args_res,
        is_leaf=lambda x: type(x).__name__ == "NotNeeded",
    )
    return shown, [np.asarray(x).tolist() for x in pullback.opaque_residuals]


@pytest.mark.parametrize("jitted", [False, True])
def test_residuals_of_pullbacks_are_jax_s(jitted):
    found = []
    for m in (xtrace, jax):
        functions = [
            (_product(m), _arguments(m)), (lambda x, m=m: x * m.numpy.sin(x), _arguments(m)[:1]),
            (lambda x: x + 1, _arguments(m)[:1]), (lambda x, y: x * y, (_arguments(m)[0],) * 2),
            (lambda x, y: x * y["b"], _arguments(m)),
            (lambda x, t: x * t["a"][0] * t["b"]["c"], (_arguments(m)[0], {"a": [3.0, None], "b": {"c": 2.0}})),
        ]
        rows = []
        for function, arguments in functions:
            of = lambda *args, m=m, function=function: m.vjp(function, *args)[1]  # noqa: E731
            pullback = (m.jit(of) if jitted else of)(*arguments)
            shown, others = _kept(m, pullback)
            rows.append((shown, sorted(others, key=str), str(pullback.in_tree), str(pullback.out_tree)))
        found.append(rows)
    assert found[0] == found[1]


def test_members_of_pullbacks_are_jax_s():
    ours, theirs = (m.vjp(_product(m), *_arguments(m))[1] for m in (xtrace, jax))
    # That of newer JAX.
    missing = {a for a in dir(theirs) if a[0] != "_"} ^ {a for a in dir(ours) if a[0] != "_"}
    assert missing <= {"replace", "structured_residuals", "out_nzs", "with_logs", "want_logs"}
    assert isinstance(ours.args_res, list) and isinstance(ours.opaque_residuals, list)
    assert [e.primitive.name for e in ours.jaxpr.eqns] == [e.primitive.name for e in theirs.jaxpr.eqns]
    assert len(ours.jaxpr.constvars) == len(xtrace.tree_util.tree_leaves(ours))


def test_arguments_that_pullbacks_do_not_keep():
    w, x, cotangent = np.full((3, 3), 0.5, np.float32), jnp.ones((2, 3)), jnp.ones((2, 3))
    layer = lambda p, x: jnp.tanh(x @ p["w"] + p["b"])  # noqa: E731
    params = {"b": jnp.zeros(3), "w": w}
    expected = xtrace.vjp(layer, params, x)[1](cotangent)
    for saveable in ((False, True), ((True, False), True), ((False, False), True)):
        _, pullback = xtrace.vjp(layer, params, x, saveable_args=saveable)
        assert str(pullback.args_res[0]) == "(NotNeeded(), NotSaveable())"
        assert len(xtrace.tree.leaves(pullback)) == len(xtrace.tree.leaves(xtrace.vjp(layer, params, x)[1])) - 1
        with pytest.raises(ValueError, match=r"into args_res\[0\]\['w'\] before the call"):
            pullback(cotangent)
        restored = pullback.replace(args_res=[params, pullback.args_res[1]])
        pullback.args_res[0] = params
        forward = xtrace.jit(lambda p, x, saveable=saveable: xtrace.vjp(layer, p, x, saveable_args=saveable)[1])
        backward = xtrace.jit(lambda pullback, p, c: pullback.replace(args_res=[p, pullback.args_res[1]])(c))
        for found in (pullback(cotangent), restored(cotangent), backward(forward(params, x), params, cotangent)):
            for one, other in zip(xtrace.tree.leaves(found), xtrace.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-6)  # sums of two or three products
    assert str(xtrace.vjp(layer, params, x, saveable_args=False)[1].args_res[1]) == "NotSaveable()"
    for wrong in ((True,), (True, (True,)), ((True, 1), True), "no"):
        with pytest.raises(ValueError, match="saveable_args must be a bool"):
            xtrace.vjp(layer, params, x, saveable_args=wrong)
    with pytest.raises(TypeError, match="args_res and opaque_residuals, got fun"):
        xtrace.vjp(layer, params, x)[1].replace(fun=None)


def test_tracers_print_values_as_arrays_do():
    shown = []
    for m in (xtrace, jax):
        def show(x, rows=shown):
            rows.append(repr(x))
            return x

        shown.append(m)
        for x in (m.numpy.float32(1.1), m.numpy.arange(3.0), m.numpy.bfloat16(1.3)):
            m.grad(lambda x, m=m: show(m.numpy.sin(x)).sum())(x)
            m.jvp(lambda x, m=m: show(m.numpy.sin(x)), (x,), (x,))
    middle = shown.index(jax)
    assert shown[1:middle] == shown[middle + 1 :]


def test_pullbacks_are_pytrees_and_their_residuals_are_replaced():
    results = []
    for m in (xtrace, jax):
        cotangent = {"a": m.numpy.ones_like(X)}
        pullback = m.vjp(_product(m), *_arguments(m))[1]
        doubled = m.tree_util.tree_map(lambda x: 2 * x, pullback)
        found = [pullback(cotangent), doubled(cotangent), m.jit(lambda p, ct: p(ct))(doubled, cotangent)]
        pullback.args_res[1] = (10 * pullback.args_res[1][0], pullback.args_res[1][1])
        pullback.opaque_residuals[:] = [x + 1 for x in pullback.opaque_residuals]
        found += [pullback(cotangent), m.tree_util.tree_map(lambda x: x, pullback)(cotangent)]
        results.append([np.asarray(x).tolist() for r in found for x in (r[0], r[1]["b"])])
    assert results[0] == results[1]
    pullback = xtrace.vjp(_product(xtrace), *_arguments(xtrace))[1]
    pullback.args_res = [pullback.args_res[0], (pullback.args_res[0], pullback.args_res[0])]
    with pytest.raises(ValueError, match=r"put them into args_res\[1\]"):
        pullback({"a": X})


def test_classes_that_check_their_children_are_arguments_of_pullbacks():
    class Checked:
        def __init__(self, x):
            assert x.shape == X.shape
            self.x = x

    xtrace.tree_util.register_pytree_node(Checked, lambda c: ((c.x,), None), lambda _, children: Checked(*children))
    value, pullback = xtrace.vjp(lambda c, s: jnp.sin(c.x) * s, Checked(jnp.asarray(X)), 2.0)
    (gradient, _) = xtrace.jit(lambda p, ct: p(ct))(pullback, value)
    np.testing.assert_allclose(gradient.x, 4 * np.sin(X) * np.cos(X), rtol=1e-6)


# Positions of arguments

@pytest.mark.parametrize("argnums", [1, np.int64(1), np.array(1), (1,), [0, 1], np.array([1]), range(2)], ids=repr)
def test_results_have_the_structure_of_jax(argnums):
    for name in ("grad", "jacfwd", "jacrev", "hessian"):
        found, expected = (
            getattr(package, name)(lambda x, y: x * y * y, argnums)(2.0, 3.0) for package in (xtrace, jax)
        )
        assert jax.tree.structure(found) == jax.tree.structure(expected), name
        np.testing.assert_allclose(jax.tree.leaves(found), jax.tree.leaves(expected))
