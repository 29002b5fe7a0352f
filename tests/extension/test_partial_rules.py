"""Rules of users for dead code and partial evaluation, and derivatives of trees; the same programs run on jax."""

import importlib
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from jax._src import tree_util as jax_tree_util

import xtrace
from tests.support.jax_modules import import_jax_module
from tests.support.operations import plain_text
from xtrace.interpreters import ad
from xtrace.interpreters import partial_eval as pe

V = np.ones(3, np.float32)
# What jax 0.10's derivatives take in the place of trees.
FlatTree = getattr(jax_tree_util, "FlatTree", type(None))


def library(package):
    name = package.__name__
    load = import_jax_module if package is jax else importlib.import_module
    return SimpleNamespace(
        package=package, np=package.numpy, lax=package.lax, pe=load(f"{name}.interpreters.partial_eval"),
        ad=load(f"{name}.interpreters.ad"), mlir=load(f"{name}.interpreters.mlir"), core=load(f"{name}.extend.core"),
        linear_util=load(f"{name}.extend.linear_util"), api_util=load(f"{name}.api_util"),
    )


OURS, THEIRS = library(xtrace), library(jax)


# Dead code


def called(lib, closed, *operands):
    """Bind a call of a jaxpr as interpreters of jaxprs do."""
    p = lib.core.primitives.closed_call_p
    return p.bind(*operands, **p.get_bind_params({"call_jaxpr": closed}))


PROGRAMS = {
    "jit": lambda lib: lambda x, y: lib.package.jit(lambda a, b: (a + 1.0, b * 2.0))(x, y),
    "nested": lambda lib: lambda x, y: lib.package.jit(
        lambda a, b: lib.package.jit(lambda c, d: (c * d, d + 1.0))(a, b))(x, y),
    "checkpoint": lambda lib: lambda x, y: lib.package.checkpoint(lambda a, b: (lib.lax.sin(a), b * 2.0))(x, y),
    "cond": lambda lib: lambda x, y: lib.lax.cond(x > 0, lambda a, b: (a, b), lambda a, b: (-a, b * 2.0), x, y),
    "closed_call": lambda lib: lambda x, y: called(
        lib, lib.package.make_jaxpr(lambda a, b: (a + 1.0, b * 2.0))(1.0, 2.0), x, y),
}


@pytest.mark.parametrize("used", [[True, False], [False, True], [True, True], [False, False]], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_dead_code_goes_out_of_calls(name, used):
    found = []
    for lib in (OURS, THEIRS):
        jaxpr = lib.package.make_jaxpr(PROGRAMS[name](lib))(1.5, 2.5).jaxpr
        smaller, reads = lib.pe.dce_jaxpr(jaxpr, used)
        given = [x for x, read in zip((1.5, 2.5), reads, strict=True) if read]
        values = lib.package.core.eval_jaxpr(smaller, (), *[np.float32(x) for x in given])
        inner = [e.params.get("jaxpr", e.params.get("call_jaxpr")) for e in smaller.eqns]
        sizes = [(len(j.eqns), len(j.in_avals) if hasattr(j, "in_avals") else len(j.invars)) for j in inner if j]
        found.append((reads, [float(v) for v in values], [e.primitive.name for e in smaller.eqns], sizes))
    assert found[0] == found[1]


def test_constants_that_are_dead():
    for lib in (OURS, THEIRS):
        jaxpr = lib.package.make_jaxpr(lambda x, y: (x + V, x * 2.0, y * (V + 1)))(V, V).jaxpr
        smaller, consts, reads = lib.pe.dce_jaxpr_consts(jaxpr, [True, False, False])
        assert (consts, reads) == ([True, False], [True, False]) and len(smaller.constvars) == 1
        whole, consts, reads = lib.pe.dce_jaxpr_consts(jaxpr, [True, False, False], True)
        assert (consts, reads) == ([True, True], [True, True]) and len(whole.constvars) == 2
    for flags in ([True], [True] * 4):
        with pytest.raises(ValueError, match="the jaxpr has 3 results and 2 inputs"):
            pe.dce_jaxpr(jaxpr if lib is OURS else xtrace.make_jaxpr(lambda x, y: (x, y, x))(1.0, 1.0).jaxpr, flags)


def test_a_users_rule_for_dead_code():
    found = []
    for lib in (OURS, THEIRS):
        p = lib.core.Primitive("twin")
        p.multiple_results = True
        p.def_abstract_eval(lambda x, y: [x, y])
        asked = []

        def rule(used, equation, asked=asked, p=p):
            asked.append((list(used), equation.primitive is p))
            return list(used), equation if all(used) else None

        lib.pe.dce_rules[p] = rule
        jaxpr = lib.package.make_jaxpr(lambda x, y, p=p: p.bind(x, y))(1.0, 2.0).jaxpr
        lengths = [len(lib.pe.dce_jaxpr(jaxpr, used)[0].eqns) for used in ([True, True], [False, False])]
        found.append((asked, lengths))
    assert found[0] == found[1] == ([([True, True], True), ([False, False], True)], [1, 0])
    p = xtrace.extend.core.Primitive("wrong_twin")
    p.def_abstract_eval(lambda x: x)
    pe.dce_rules[p] = lambda used, equation: ([True, True], equation)
    with pytest.raises(ValueError, match="the rule of wrong_twin returned 2 flags for 1 operands"):
        pe.dce_jaxpr(xtrace.make_jaxpr(p.bind)(1.0).jaxpr, [True])


@pytest.mark.parametrize("rule", ["dce_jaxpr_call_rule", "dce_jaxpr_closed_call_rule"])
def test_rules_of_calls(rule):
    for lib in (OURS, THEIRS):
        jaxpr = lib.package.make_jaxpr(PROGRAMS["closed_call"](lib))(1.0, 2.0)
        if rule == "dce_jaxpr_call_rule" and lib is THEIRS:
            continue
        reads, rest = getattr(lib.pe, rule)([False, True], jaxpr.eqns[0])
        assert reads == [False, True] and len(rest.invars) == len(rest.outvars) == 1
        assert getattr(lib.pe, rule)([False, False], jaxpr.eqns[0]) == ([False, False], None)


# Partial evaluation


def test_a_users_rule_for_values_that_are_partly_known():
    for lib in (OURS, THEIRS):
        p = lib.core.Primitive("first")
        p.def_abstract_eval(lambda x, y: x)
        p.def_impl(lambda x, y: x)
        asked = []

        def rule(trace, *operands, asked=asked, **parameters):
            asked.append(parameters)
            return operands[0]

        lib.pe.custom_partial_eval_rules[p] = rule

        def function(x, y, p=p):
            return [p.bind(x, y, by=2), p.bind(y, x, by=3), y * 2]

        names = lib.api_util.debug_info("test", function, (1.0, 2.0), {})
        given = [lib.pe.PartialVal.known(np.float32(5)),
                 lib.pe.PartialVal.unknown(lib.package.core.ShapedArray((), np.dtype("float32")))]
        jaxpr, results, _ = lib.pe.trace_to_jaxpr_nounits(lib.linear_util.wrap_init(function, debug_info=names), given)
        assert [r.is_known() for r in results] == [True, False, False] and float(results[0].get_known()) == 5
        assert asked == [{"by": 2}, {"by": 3}] and len(jaxpr.eqns) == 1


def test_a_rule_may_leave_the_rest_to_the_trace():
    p = xtrace.extend.core.Primitive("left")
    p.def_abstract_eval(lambda x, y: x)
    p.def_impl(lambda x, y: x + y)
    known = []

    def rule(trace, *operands, **parameters):
        known.append([trace.is_known(x) for x in operands])
        return trace.default_process_primitive(p, operands, parameters)

    pe.custom_partial_eval_rules[p] = rule
    wrapped = xtrace.extend.linear_util.wrap_init(lambda x, y: [p.bind(x, x), p.bind(x, y)])
    given = [pe.PartialVal.known(2.0), pe.PartialVal.unknown(xtrace.typeof(1.0))]
    jaxpr, results, _ = pe.trace_to_jaxpr_nounits(wrapped, given)
    assert known == [[True, True], [True, False]] and results[0].get_known() == 4.0
    assert [e.primitive for e in jaxpr.eqns] == [p] and not results[1].is_known()


def product(lib, calls):
    """A product with a rule that computes what it needs of the known operand in the known part."""
    p = lib.core.Primitive("my_product")
    p.def_abstract_eval(lambda x, y: x)
    p.def_impl(lambda x, y: x * y)
    lib.mlir.register_lowering(p, lib.mlir.lower_fun(lambda x, y: x * y, False))
    lib.ad.defbilinear(p, lambda ct, x, y: p.bind(ct, y), lambda ct, x, y: p.bind(x, ct))

    def rule(saveable, unks_in, inst_in, eqn):
        calls.append((list(unks_in), eqn.primitive is p))
        if not any(unks_in):
            return eqn, None, [False], [False], []
        held = [v for v, there in zip(eqn.invars, inst_in, strict=True) if not there]
        return None, eqn, [True], [True], held

    lib.pe.partial_eval_jaxpr_custom_rules[p] = rule
    return p


@pytest.mark.parametrize("wrap", ["jit", "checkpoint"])
def test_a_users_rule_that_splits_an_equation(wrap):
    found, calls = [], []
    for lib in (OURS, THEIRS):
        p = product(lib, calls if lib is OURS else [])

        def function(x, lib=lib, p=p):
            return getattr(lib.package, wrap)(lambda x: lib.np.sin(p.bind(lib.np.cos(x), lib.np.exp(x))))(x)

        gradient = lib.package.jit(lib.package.grad(function))
        found.append([float(function(1.0)), float(gradient(1.0)), float(lib.package.grad(function)(0.5))])
    np.testing.assert_allclose(*found, rtol=1e-6)
    assert p in THEIRS.pe.partial_eval_jaxpr_custom_rules
    assert all(flag for _, flag in calls) and any(any(unknown) for unknown, _ in calls)


def test_rules_that_split_return_five_values():
    p = xtrace.extend.core.Primitive("badly_split")
    p.def_abstract_eval(lambda x, y: x)
    p.def_impl(lambda x, y: x * y)
    ad.defbilinear(p, lambda ct, x, y: p.bind(ct, y), lambda ct, x, y: p.bind(x, ct))
    pe.partial_eval_jaxpr_custom_rules[p] = lambda *_: None
    with pytest.raises(TypeError, match="the rule of badly_split in partial_eval_jaxpr_custom_rules must return five"):
        xtrace.linearize(lambda x: p.bind(x, 2.0), 1.0)
    for given in (("sin", len), (p, 3)):
        with pytest.raises(TypeError, match="partial_eval_jaxpr_custom_rules"):
            pe.partial_eval_jaxpr_custom_rules.__setitem__(*given)


def test_rules_of_built_in_operations_split_equations():
    for lib in (OURS, THEIRS):
        function = lib.package.jit(lambda x, y, lib=lib: (lib.np.sin(x), lib.np.sin(x) * y))
        jaxpr = lib.package.make_jaxpr(function)(1.5, 2.5)
        (equation,) = jaxpr.eqns
        rule = lib.pe.partial_eval_jaxpr_custom_rules[equation.primitive]
        known, staged, unknown, there, residuals = rule(lambda *_, **__: True, [False, True], [False, True], equation)
        assert list(unknown) == [False, True] and list(there)[1]
        environment = dict(zip(equation.invars, (np.float32(1.5), np.float32(2.5)), strict=True))
        for part in (known, staged):
            assert part is not known or set(part.invars) == {equation.invars[0]}
            bound = part.primitive.get_bind_params(part.params)
            results = part.primitive.bind(*[environment[v] for v in part.invars], **bound)
            environment.update(zip(part.outvars, results, strict=True))
        assert set(residuals) <= set(environment)
        values = [float(environment[v]) for v in equation.outvars]
        np.testing.assert_allclose(values, [np.sin(1.5), np.sin(1.5) * 2.5], rtol=1e-6)
    rule = pe.partial_eval_jaxpr_custom_rules[xtrace.extend.core.primitives.jit_p]
    (whole,) = xtrace.make_jaxpr(xtrace.jit(lambda x: x * 2.0))(1.0).eqns
    assert rule(None, [True], [False], whole) == (None, whole, [True], [True], whole.invars)
    assert rule(None, [False], [False], whole) == (whole, None, [False], [False], [])


# Derivatives of trees


def outputs(x, y, n, lib):
    return {"a": lib.np.sin(x) * y, "c": lib.np.float32(3.0), "n": n, "x": x * n}


def plain(value):
    """Return a result as trees of numbers, and "zero" for a `Zero`."""
    tree = value.unflatten() if isinstance(value, FlatTree) else value
    mapped = jax.tree.map if isinstance(value, FlatTree) else xtrace.tree.map

    def plain_leaf(x):
        return "zero" if is_zero(x) else np.asarray(x, np.float64).round(5).tolist()

    return mapped(plain_leaf, tree, is_leaf=is_zero)


def is_zero(x):
    return type(x).__name__ == "Zero"


@pytest.mark.parametrize("instantiate", [True, False, [True, False]], ids=str)
@pytest.mark.parametrize("has_aux", [False, True])
def test_jvp_of_trees(has_aux, instantiate):
    found = []
    for lib in (OURS, THEIRS):
        def function(x, y, lib=lib):
            result = {"a": lib.np.sin(x) * y, "c": lib.np.float32(3.0)}
            return (result, {"aux": x * 2}) if has_aux else result

        primals, tangents = (1.0, 2.0), (0.5, lib.ad.Zero(lib.package.typeof(2.0)))
        if lib is THEIRS:
            primals, tangents = FlatTree.flatten(primals), FlatTree.flatten((0.5, 0.0))
            tangents = tangents.update([0.5, lib.ad.Zero(lib.package.typeof(2.0))])
        results = lib.ad.jvp(function, primals, tangents, has_aux, instantiate)
        found.append([plain(r) for r in results])
    assert found[0] == found[1]


@pytest.mark.parametrize("has_aux", [False, True])
def test_linear_maps_of_trees(has_aux):
    found = []
    for lib in (OURS, THEIRS):
        def function(x, y, n, lib=lib):
            result = outputs(x, y, n, lib)
            return (result, {"aux": x * 2}) if has_aux else result

        given = (1.0, 2.0, 3)
        results, zero, jaxpr, consts, *aux = lib.ad.linearize(
            function, FlatTree.flatten(given) if lib is THEIRS else given, has_aux
        )
        moved = lib.package.core.eval_jaxpr(
            jaxpr, consts, np.float32(0.5), np.float32(0.25), np.zeros((), lib.package.dtypes.float0)
        )
        types = [str(v.aval.dtype) for v in jaxpr.invars]
        found.append((plain(results), zero, plain(list(moved)), types, [plain(a) for a in aux]))
    assert found[0] == found[1] and found[0][1] == [False, True, True, False]


def test_names_of_operations_in_jvp():
    for lib in (OURS, THEIRS):
        names = []

        def function(x, lib=lib, names=names):
            places = importlib.import_module(f"{lib.package.__name__}.extend.source_info_util")
            names.append(str(places.current_name_stack()))
            return x

        given = FlatTree.flatten((1.0,)) if lib is THEIRS else (1.0,)
        lib.ad.jvp(function, given, given)
        lib.ad.jvp(function, given, given, transform_stack=False)
        lib.ad.linearize(function, given)
        assert names == ["jvp()", "", "jvp()"]


def test_derivatives_inside_of_programs():
    def function(x):
        (y,), (t,) = ad.jvp(lambda x: (xtrace.numpy.sin(x),), (x,), (xtrace.numpy.ones_like(x),))
        value, _, jaxpr, consts = ad.linearize(xtrace.numpy.cos, (x,))
        return y, t, value, xtrace.core.eval_jaxpr(jaxpr, consts, xtrace.numpy.ones_like(x))[0]

    expected = [np.sin(V), np.cos(V), np.cos(V), -np.sin(V)]
    for run in (function, xtrace.jit(function), xtrace.vmap(function)):
        np.testing.assert_allclose(run(V), expected, rtol=1e-6)
    assert "sin" in plain_text(str(xtrace.make_jaxpr(function)(V)))


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: ad.jvp(3, (1.0,), (1.0,)), TypeError, "jvp takes a function, got 3"),
    (lambda: ad.linearize(3, (1.0,)), TypeError, "linearize takes a function, got 3"),
    (lambda: ad.jvp(lambda x: x, (1.0,), (1.0, 2.0)), TypeError, "must have one structure"),
    (lambda: ad.jvp(lambda x: x, (1.0,), (1.0,), instantiate=[True, True]), ValueError, "2 flags, .* 1 results"),
    (lambda: ad.jvp(lambda x: x, (1.0,), (1.0,), True), TypeError, "with has_aux the function returns a pair"),
])
def test_wrong_derivatives(call, error, message):
    with pytest.raises(error, match=message):
        call()
