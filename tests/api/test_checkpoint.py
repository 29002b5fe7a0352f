"""`checkpoint`: the same derivatives, with values computed again where the policy does not keep them."""

import itertools
import re
import types

import jax
import jax.ad_checkpoint
import numpy as np
import pytest

import xtrace
import xtrace.ad_checkpoint
import xtrace.numpy as xnp
from tests.support.operands import assert_same
from tests.support.rules import check_rules
from xtrace import lax
from xtrace._src.ops.remat.rematerialization import remat_call

X = np.array([[0.5, -1.0, 2.0], [0.25, 1.5, -0.75], [1.0, 0.1, -0.3]], np.float32)
Y = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)


def _library(package):
    """Its operations, and `checkpoint` with what belongs to it."""
    return types.SimpleNamespace(api=package, lax=package.lax, np=package.numpy, names=package.ad_checkpoint)


OURS, JAX = _library(xtrace), _library(jax)
BOTH = {xtrace.lax: OURS, jax.lax: JAX}


def checkpointed(function, **options):
    """``function(library, *operands)`` as the rules' tests call it, under checkpoint; policies by their maker."""

    def call(lax, *operands):
        library = BOTH[lax]
        given = {k: v(library.api.checkpoint_policies) if k == "policy" else v for k, v in options.items()}
        return library.api.checkpoint(lambda *a: function(library, *a), **given)(*operands)

    return call


def layer(library, x, w):
    y = library.names.checkpoint_name(library.lax.dot(library.lax.sin(x), w), "product")
    z = library.names.checkpoint_name(library.lax.tanh(y), "activation")
    return library.lax.exp(z * x)


POLICIES = {
    "everything": lambda p: p.everything_saveable,
    "nothing": lambda p: p.nothing_saveable,
    "dots": lambda p: p.dots_saveable,
    "checkpoint_dots": lambda p: p.checkpoint_dots,
    "dots without batch": lambda p: p.dots_with_no_batch_dims_saveable,
    "checkpoint_dots without batch": lambda p: p.checkpoint_dots_with_no_batch_dims,
    "any names but": lambda p: p.save_any_names_but_these("activation"),
    "anything except": lambda p: p.save_anything_except_these_names("activation"),
    "only names": lambda p: p.save_only_these_names("activation", "none"),
    "both": lambda p: p.save_from_both_policies(p.dots_saveable, p.save_only_these_names("activation")),
}
CASES = {
    "default": checkpointed(layer),
    "without barrier": checkpointed(layer, prevent_cse=False),
    "barrier of one argument": checkpointed(layer, prevent_cse=(True, False)),
    "nested": checkpointed(lambda library, x, w: library.lax.sin(
        library.api.checkpoint(lambda y: layer(library, y, w))(library.lax.cos(x)))
    ),
    "of jit": checkpointed(lambda library, x, w: library.api.jit(lambda y: layer(library, y, w))(library.lax.cos(x))),
    "of cond": checkpointed(lambda library, x, w: library.lax.cond(
        library.np.sum(x) > 1, lambda y: layer(library, y, w), lambda y: y, library.lax.cos(x))
    ),
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", CASES)
def test_rules_agree(name):
    check_rules(CASES[name], X, Y, rounding=64)


def test_in_cond():
    def function(lax, x, w):
        library = BOTH[lax]
        branch = library.api.checkpoint(lambda y: layer(library, y, w))
        return lax.cond(library.np.sum(x) > 1, branch, lambda y: y, lax.cos(x))

    check_rules(function, X, Y, rounding=64, batching=False)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", POLICIES)
def test_policies_keep_what_those_of_jax_keep(name):
    def gradient(library):
        policy = POLICIES[name](library.api.checkpoint_policies)
        f = library.api.checkpoint(lambda x, w: layer(library, x, w), policy=policy)
        return library.api.grad(lambda x, w: library.np.sum(f(x, w)), (0, 1))

    assert_same(gradient(OURS)(X, Y), gradient(JAX)(X, Y), 64)
    assert_same(xtrace.jit(gradient(OURS))(X, Y), gradient(JAX)(X, Y), 64)

    def again(library):
        """The operations of the backward pass, and how many values it gets."""
        closed = library.api.make_jaxpr(gradient(library))(X, Y)
        (equation,) = [e for e in closed.eqns if e.primitive.name == "remat2"]
        names = [e.primitive.name for e in equation.params["jaxpr"].eqns]
        return sorted(n for n in names if n in ("sin", "cos", "tanh", "exp", "dot_general")), len(equation.invars)

    got, expected = again(OURS), again(JAX)
    assert got[0] == expected[0]
    # A value and the same under a name are two to jax, which rounds what it keeps.
    assert got[1] == expected[1] - (name == "anything except")


def text_of(maker, function, *args):
    text = str(maker(function)(*args))
    return re.sub(r"(-?[\d.]+):\w+\[\]", r"\1", text).replace(" out_sharding=None", "")


@pytest.mark.parametrize(
    "function",
    [
        lambda api, x: api.checkpoint(lambda x: api.lax.sin(api.lax.sin(x)))(x),
        lambda api, x: api.grad(api.checkpoint(lambda x: api.lax.sin(api.lax.sin(x)).sum()))(x),
        lambda api, x: api.grad(api.checkpoint(lambda x: api.lax.sin(api.lax.sin(x)).sum(), prevent_cse=False))(x),
        lambda api, x: api.grad(api.checkpoint(lambda x: api.lax.exp(x).sum()))(x),
        lambda api, x: api.vmap(api.checkpoint(lambda x: api.lax.sin(api.lax.sin(x))))(x),
        lambda api, x: api.jvp(api.checkpoint(lambda x: api.lax.sin(api.lax.sin(x))), (x,), (x,)),
        lambda api, x: api.grad(api.checkpoint(lambda x: api.checkpoint(
            lambda x: api.lax.sin(api.lax.sin(x)))(api.lax.sin(x)).sum()))(x),
    ],
)
def test_jaxprs_read_as_those_of_jax(function):
    got = text_of(xtrace.make_jaxpr, lambda x: function(xtrace, x), X)
    assert got == text_of(jax.make_jaxpr, lambda x: function(jax, x), X)


def test_the_backward_pass_computes_again_behind_a_barrier():
    def f(x):
        return lax.sin(lax.sin(x)).sum()

    def text(options):
        return xtrace.lower(xtrace.grad(xtrace.checkpoint(f, **options)), X).as_text()

    assert text({}).count("stablehlo.optimization_barrier") == 1
    assert text({"prevent_cse": False}).count("optimization_barrier") == 0
    compiled = xtrace.jit(xtrace.value_and_grad(xtrace.checkpoint(f))).lower(X).compile().as_text()
    # Twice for the value, once again for its derivative: the compiler could not merge them.
    assert len(re.findall(r" sine\(", compiled)) == 3


def test_second_derivatives():
    def hessian(api):
        return api.hessian(api.checkpoint(lambda x: api.lax.sin(api.lax.sin(x * x[::-1])).sum()))

    x = np.array([0.5, -1.0, 2.0], np.float32)
    assert_same(hessian(xtrace)(x), hessian(jax)(x), 64)
    assert_same(xtrace.jit(hessian(xtrace))(x), hessian(jax)(x), 64)

    def third(api):
        f = api.checkpoint(lambda x: api.lax.sin(api.lax.sin(x)))
        return api.grad(api.grad(api.grad(f)))

    assert_same(third(xtrace)(np.float32(0.5)), third(jax)(np.float32(0.5)), 64)


def test_integers_go_along():
    def f(api):
        g = api.checkpoint(lambda x, n: api.lax.sin(x) * n)
        return api.grad(lambda x, n: api.numpy.sum(g(x, n)))

    n = np.arange(9, dtype=np.int32).reshape(3, 3)
    assert_same(f(xtrace)(X, n), f(jax)(X, n), 16)


def test_the_function_is_traced_once_for_each_signature():
    calls = []

    @xtrace.checkpoint
    def f(x):
        calls.append(x.shape)
        return lax.sin(x)

    gradient = xtrace.grad(lambda x: f(x).sum())
    for _ in range(3):
        gradient(X)
        f(X)
    assert calls == [(3, 3)]
    before = len(remat_call.programs)
    gradient(X * 2)
    assert len(remat_call.programs) == before
    f(X[0])
    assert calls == [(3, 3), (3,)]


def test_what_the_function_closes_over_is_new_in_each_trace():
    def outer(x):
        return xtrace.checkpoint(inner)(x).sum()

    scale = None

    def inner(x):
        return lax.sin(x) * scale

    for value in (1.0, 2.0):

        def with_scale(x, s):
            nonlocal scale
            scale = s
            return outer(x)

        got = xtrace.jit(xtrace.grad(with_scale, 1))(X, value)
        np.testing.assert_allclose(got, np.sin(X).sum(), rtol=1e-5)


def test_static_arguments():
    def f(x, flag, *, name="plus"):
        assert isinstance(flag, (bool, list)) and isinstance(name, str)
        return lax.sin(x) if flag else -x

    for flag in (True, False, [1], []):
        got = xtrace.checkpoint(f, static_argnums=(1,), static_argnames="name")(2.0, flag, name="minus")
        assert float(got) == pytest.approx(np.sin(2.0) if flag else -2.0)
    assert float(xtrace.remat(f, static_argnums=-1)(2.0, False)) == -2
    assert float(xtrace.checkpoint(f, static_argnames=("name", "flag"))(2.0, False)) == -2


def test_keyword_arguments_and_trees():
    f = xtrace.checkpoint(lambda d, *, z: {"r": (lax.sin(d["a"]) * z, d["b"])})
    found = f({"a": X, "b": 1}, z=2.0)
    np.testing.assert_allclose(found["r"][0], 2 * np.sin(X), rtol=1e-6)
    assert found["r"][1] == 1


def test_names_of_values():
    found = xtrace.ad_checkpoint.checkpoint_name({"a": X, "b": 2.0}, "kept")
    np.testing.assert_array_equal(found["a"], X)
    with pytest.raises(TypeError, match="name must be a string, got 3"):
        xtrace.ad_checkpoint.checkpoint_name(X, 3)


def _offloading(lib):
    """Functions of two arrays, the second a stack, whose intermediate values are put in the host's memory."""
    names, p = lib.ad_checkpoint.checkpoint_name, lib.checkpoint_policies
    np_ = (OURS if lib is xtrace else JAX).np
    by_name = p.save_and_offload_only_these_names(
        names_which_can_be_saved=["kept"], names_which_can_be_offloaded=["moved"], offload_src="device",
        offload_dst="pinned_host",
    )

    def body(x, w):
        return np_.sin(names(np_.sin(names(np_.sin(x @ w), "moved") @ w), "kept") @ w), None

    products = p.offload_dot_with_no_batch_dims("device", "pinned_host")
    return {
        "names": lambda x, w: lib.checkpoint(lambda x, w: body(x, w[0])[0], policy=by_name)(x, w).sum(),
        "products": lambda x, w: lib.checkpoint(lambda x, w: body(x, w[0])[0], policy=products)(x, w).sum(),
        "in a loop": lambda x, w: lib.lax.scan(lib.checkpoint(body, policy=by_name), x, w)[0].sum(),
        "a loop": lambda x, w: lib.checkpoint(lambda x, w: lib.lax.scan(body, x, w)[0], policy=by_name)(x, w).sum(),
        "a choice": lambda x, w: lib.checkpoint(
            lambda x, w: lib.lax.cond(x[0, 0] > 0, lambda: body(x, w[0])[0], lambda: x), policy=by_name
        )(x, w).sum(),
    }


def _moves(jaxpr):
    """Return the types that `device_put` makes anywhere in `jaxpr`."""
    found = []
    for e in jaxpr.eqns:
        if e.primitive.name == "device_put":
            found += [v.aval.str_short(short_dtypes=True) for v in e.outvars]
        for value in e.params.values():
            for inner in value if isinstance(value, (tuple, list)) else [value]:
                if hasattr(getattr(inner, "jaxpr", inner), "eqns"):
                    found += _moves(getattr(inner, "jaxpr", inner))
    return sorted(found)


@pytest.mark.parametrize("name", _offloading(xtrace))
def test_policies_of_offloading_move_values_to_the_host_and_back(name):
    x, w = X[:2, :2], np.stack([X[:2, :2], Y[:2, :2]])
    ours, theirs = _offloading(xtrace)[name], _offloading(jax)[name]
    g, h = xtrace.grad(ours, argnums=(0, 1)), jax.grad(theirs, argnums=(0, 1))
    found = _moves(xtrace.make_jaxpr(g)(x, w))
    if name == "a choice":
        # A branch that saves nothing gives values of no content in jax, and zeros put in the host's memory in ours.
        found.remove("f32<host>[2,2]")
    assert found == _moves(jax.make_jaxpr(h)(x, w)) and "f32<host>[2,2]" in found
    assert_same(xtrace.jit(g)(x, w), jax.jit(h)(x, w), 64)
    text = xtrace.jit(g).trace(x, w).lower(lowering_platforms=("tpu",)).as_text()
    expected = jax.jit(h).trace(x, w).lower(lowering_platforms=("tpu",)).as_text()
    for kind in ('_xla_buffer_placement = "pinned_host"', '_xla_buffer_placement = "device"'):
        assert text.count(kind) == expected.count(kind) + (name == "a choice" and "host" in kind)


def test_offloaded_values_in_second_derivatives_and_maps():
    x, w = X[:2, :2], np.stack([X[:2, :2], Y[:2, :2]])
    f, theirs = _offloading(xtrace)["names"], _offloading(jax)["names"]
    assert_same(xtrace.jit(xtrace.vmap(xtrace.grad(f), (None, 0)))(x, w[:, None]),
                jax.jit(jax.vmap(jax.grad(theirs), (None, 0)))(x, w[:, None]), 64)
    assert_same(xtrace.jit(xtrace.hessian(f))(x, w), jax.jit(jax.hessian(theirs))(x, w), 256)


def test_a_name_is_saved_or_offloaded():
    with pytest.raises(ValueError, match=r"nothing in common.*'a'"):
        xtrace.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"], offload_src="a", offload_dst="b"
        )


def lines_of_kept_values(package, capsys):
    """Return what `print_saved_residuals` prints for some functions."""
    numpy, name = package.numpy, package.ad_checkpoint.checkpoint_name
    policies = package.checkpoint_policies

    def f(w, x, z=2.0):
        y = name(numpy.sin(numpy.sin(w["w"] @ x)), "y")
        return numpy.sum(numpy.exp(y * z) * numpy.arange(3.0))

    for function in (
        f, package.checkpoint(f), package.checkpoint(f, policy=policies.save_only_these_names("y")),
        package.checkpoint(f, policy=policies.dots_saveable),
        lambda w, x: numpy.sum(package.jit(numpy.cos)(x) * x),
    ):
        package.ad_checkpoint.print_saved_residuals(function, {"w": X}, X[0])
        print("-")
    return capsys.readouterr().out.split("-\n")


def test_values_that_are_kept_are_printed_as_jax_prints_them(capsys):
    mine, theirs = (lines_of_kept_values(package, capsys) for package in (xtrace, jax))
    # Which of the scalars are kept differs.
    mine, theirs = ([re.sub(r"f32\[\] .*\n", "", x) for x in lines] for lines in (mine, theirs))
    assert mine == theirs
    line = lines_of_kept_values.__code__.co_firstlineno + 6
    assert mine[3].splitlines() == [
        "f32[3,3] from the argument w['w']", "f32[3] from the argument x",
        f"f32[3] output of dot_general from {__file__}:{line}:37 (lines_of_kept_values.<locals>.f)",
    ]


def test_differentiating_logs_what_is_kept(caplog):
    f = xtrace.checkpoint(lambda w, x: lax.sin(lax.dot(w, x)), policy=xtrace.checkpoint_policies.dots_saveable)
    with caplog.at_level("DEBUG", "xtrace"):
        xtrace.grad(lambda w: xnp.sum(f(w, X)))(X)
    (message,) = [r.getMessage() for r in caplog.records if "checkpoint" in r.getMessage()]
    assert re.search(r"keeps the inputs\n  f32\[3,3\]\n.*\n  f32\[3,3\] output of dot_general from .*:\d+ ", message)


ERRORS = {
    "not callable": (lambda: xtrace.checkpoint(3), TypeError, "checkpoint: Expected a callable"),
    "policy": (lambda: xtrace.checkpoint(lax.sin, policy="dots"), TypeError, "policy must be a function.*'dots'"),
    "concrete": (lambda: xtrace.checkpoint(lax.sin, concrete=True), NotImplementedError, "static_argnums"),
    "numbers": (lambda: xtrace.checkpoint(lax.sin, static_argnums="x"), TypeError, "static_argnums takes integers"),
    "too large a number": (lambda: xtrace.checkpoint(lambda x: x, static_argnums=1)(X), ValueError, r"got \(1,\)"),
    "barriers": (lambda: xtrace.checkpoint(lambda x: x, prevent_cse=(True, False))(X), ValueError, "prevent_cse"),
    "argument": (lambda: xtrace.checkpoint(lambda x: x)("a"), TypeError, "argument x"),
    "result": (lambda: xtrace.checkpoint(lambda x: "a")(X), TypeError, "returned a value of type"),
    "branch on a tracer": (
        lambda: xtrace.checkpoint(lambda x: x if x > 0 else -x)(1.0), xtrace.errors.TracerBoolConversionError,
        "for checkpoint / remat[\\s\\S]*xnp.where",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    function, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        function()


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("policy", ["nothing", "dots", "everything"])
@pytest.mark.parametrize("inside", [True, False])
def test_with_scan(policy, inside):
    weights = np.stack([Y, Y[::-1], Y.T]) / 3

    def gradient(library):
        options = {"policy": POLICIES[policy](library.api.checkpoint_policies)}

        def body(carry, w):
            return layer(library, carry, w), library.np.sum(carry)

        def loss(ws, x):
            once = library.api.checkpoint(body, prevent_cse=False, **options) if inside else body

            def loop(x, ws):
                return library.lax.scan(once, x, ws)

            carry, sums = (loop if inside else library.api.checkpoint(loop, **options))(x, ws)
            return library.np.sum(carry) + library.np.sum(sums)

        return library.api.grad(loss, (0, 1))

    def scanned(library):
        """What the loops of the gradient stack up, and what the backward one computes."""
        equations = library.api.make_jaxpr(gradient(library))(weights, X / 3).eqns
        return [sorted(str(v.aval.shape) for v in e.outvars) for e in equations if e.primitive.name == "scan"]

    expected = gradient(JAX)(weights, X / 3)
    assert_same(gradient(OURS)(weights, X / 3), expected, 256)
    assert_same(xtrace.jit(gradient(OURS))(weights, X / 3), expected, 256)
    if inside:
        assert scanned(OURS) == scanned(JAX)
    batch = np.stack([X / 3, Y])
    got = xtrace.jit(xtrace.vmap(gradient(OURS), (None, 0)))(weights, batch)
    assert_same(got, jax.jit(jax.vmap(gradient(JAX), (None, 0)))(weights, batch), 256)


def _in_scan(library, x, ws):
    return library.lax.scan(lambda c, w: (layer(library, c, w), library.np.sum(c)), x, ws)[0]


def _in_cond(library, x, ws):
    return library.lax.cond(
        library.np.sum(x) > 0, lambda x: layer(library, x, ws[0]),
        lambda x: library.np.sin(layer(library, layer(library, x, ws[0]), ws[1])), x,
    )


def _in_cond_in_scan(library, x, ws):
    def body(c, w):
        return library.lax.cond(
            library.np.sum(c) > 0, library.api.jit(lambda c, w: layer(library, c, w)), lambda c, w: c, c, w
        ), None

    return library.lax.scan(body, x, ws)[0]


def _dots(jaxpr):
    """How many products there are, those inside of loops and branches included."""
    inner = [getattr(j, "jaxpr", j) for e in jaxpr.eqns for p in e.params.values()
             for j in (p if isinstance(p, (tuple, list)) else [p])]
    here = sum(e.primitive.name == "dot_general" for e in jaxpr.eqns)
    return here + sum(_dots(j) for j in inner if hasattr(j, "eqns"))


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize(
    "function, policy",
    [*itertools.product([_in_scan, _in_cond, _in_cond_in_scan], ["nothing", "dots", "only names"]),
     (_in_cond, "everything")],
)
def test_policies_look_inside_of_loops_and_branches(function, policy):
    weights = np.stack([Y, Y[::-1]])

    def gradient(library):
        chosen = POLICIES[policy](library.api.checkpoint_policies)
        f = library.api.checkpoint(lambda x, ws: function(library, x, ws), policy=chosen)
        return library.api.grad(lambda x, ws: library.np.sum(f(x, ws)), (0, 1))

    def backward_pass(library):
        """What it is given, and how many products it computes."""
        closed = library.api.make_jaxpr(gradient(library))(X / 3, weights)
        (equation,) = [e for e in closed.eqns if e.primitive.name == "remat2"]
        return sorted(v.aval.shape for v in equation.invars), _dots(equation.params["jaxpr"])

    assert backward_pass(OURS) == backward_pass(JAX)
    # Elements are sums whose terms cancel: each is as exact as the largest, after two hundred roundings or so.
    for got, expected in zip(
        xtrace.jit(gradient(OURS))(X / 3, weights), jax.jit(gradient(JAX))(X / 3, weights), strict=True
    ):
        np.testing.assert_allclose(got, expected, rtol=0, atol=256 * 2.0**-23 * np.abs(expected).max())


@pytest.mark.parametrize("in_a_loop", [False, True])
def test_a_gradient_with_a_custom_rule_is_differentiated_again(in_a_loop):
    def derivatives(api):
        @api.custom_vjp
        def clipped(x):
            return x

        clipped.defvjp(lambda x: (x, x), lambda x, g: (api.numpy.clip(g, -0.1, 0.1) * x,))

        def loss(x):
            step = api.checkpoint(lambda c, _: (api.numpy.sin(clipped(c) * x), None))
            return api.lax.scan(step, x, None, length=2)[0] if in_a_loop else step(x, None)[0]

        gradient = api.grad(loss)
        return [api.grad(gradient)(0.3), api.jacfwd(gradient)(0.3), api.jit(api.hessian(loss))(0.3)]

    np.testing.assert_allclose(derivatives(xtrace), derivatives(jax), rtol=1e-6)


def test_a_gradient_has_the_value_that_a_custom_jvp_rule_states():
    def derivatives(api):
        function = api.custom_jvp(lambda x: x)
        function.defjvp(lambda primals, tangents: (api.numpy.sin(primals[0]), 3.0 * tangents[0]))
        both = api.value_and_grad(api.checkpoint(lambda x: function(x) * x))
        return [*both(0.3), api.grad(lambda x: both(x)[0])(0.3)]

    np.testing.assert_allclose(derivatives(xtrace), derivatives(jax), rtol=1e-6)
