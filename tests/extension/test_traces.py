"""Traces that users write: `Trace.process_primitive`, tracers with a class of their own, and closed jaxprs' fields."""

import functools
import importlib
import itertools

import jax
import jax.extend
import numpy as np
import pytest

import xtrace
import xtrace.extend

X = np.arange(3, dtype=np.float32) + 1


def make_recorder(module):
    """Return a function that gives the results of a function, and the names of the operations that it uses."""

    class Recorded(module.core.Tracer):
        def __init__(self, trace, value):
            super().__init__(trace, module.typeof(value))
            self.value = value

        def full_lower(self):
            return self

    class Recorder(module.core.Trace):
        def __init__(self, below):
            super().__init__()
            self.below, self.names = below, []

        def unwrap(self, x):
            return x.value if isinstance(x, Recorded) and x._trace is self else x

        def process_primitive(self, primitive, tracers, params):
            self.names.append(primitive.name)
            values = [self.unwrap(x) for x in tracers]
            out = primitive.bind_with_trace(self.below, values, [module.typeof(v) for v in values], params)
            return [Recorded(self, x) for x in out] if primitive.multiple_results else Recorded(self, out)

    def record(function, *values):
        core = module.extend.core
        with core.take_current_trace() as below:
            recorder = Recorder(below)
            with core.set_current_trace(recorder):
                out = function(*[Recorded(recorder, x) for x in values])
            return module.tree.map(recorder.unwrap, out), recorder.names

    return record


OURS, THEIRS = make_recorder(xtrace), make_recorder(jax)

FUNCTIONS = {
    "operators": lambda m: lambda x: m.lax.sin(x) * 2 + x,
    "product": lambda m: lambda x: x @ x,
    "jit": lambda m: m.jit(lambda x: x * 2),
    "scan": lambda m: lambda x: m.lax.scan(lambda c, y: (c + y, c), 0.0, x),
    "while": lambda m: lambda x: m.lax.while_loop(lambda y: y[0] < 9, lambda y: y + y, x),
    "cond": lambda m: lambda x: m.lax.cond(x[0] > 0, lambda y: y, lambda y: -y, x),
    "vmap": lambda m: m.vmap(lambda x: m.lax.mul(x, x)),
    "sort": lambda m: lambda x: m.lax.sort((-x, x), num_keys=1),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_users_traces_get_operations(name, compiled):
    results = []
    for module, record in ((xtrace, OURS), (jax, THEIRS)):
        function = FUNCTIONS[name](module)
        if compiled:
            results.append(module.jit(lambda x, f=function, r=record: r(f, x)[0])(X))
        else:
            value, names = record(function, module.numpy.asarray(X))
            assert names
            results.append(value)
    for ours, theirs in zip(*map(xtrace.tree.leaves, map(list_of, results)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def list_of(result):
    return jax.tree.map(np.asarray, result)


def test_names_of_operations():
    assert OURS(lambda x: xtrace.lax.neg(xtrace.lax.sin(x)), xtrace.numpy.asarray(X))[1] == ["sin", "neg"]
    assert OURS(xtrace.nn.relu, xtrace.numpy.asarray(X))[1] == ["custom_jvp_call"]


def test_gradients_inside_of_a_users_trace():
    value, names = OURS(xtrace.grad(lambda x: (x**3).sum()), xtrace.numpy.asarray(X))
    np.testing.assert_allclose(value, 3 * X**2, rtol=1e-6)
    assert "integer_pow" in names


def test_gradients_of_custom_functions_below_a_users_trace():
    @xtrace.custom_vjp
    def triple(x):
        return x * 3

    triple.defvjp(lambda x: (x * 3, None), lambda _, g: (g * 7,))
    gradient = xtrace.grad(lambda x: OURS(triple, x)[0].sum())(xtrace.numpy.asarray(X))
    np.testing.assert_array_equal(gradient, np.full(3, 7, np.float32))


def test_a_transformation_whose_function_raises_leaves_no_trace():
    @xtrace.extend.linear_util.transformation
    def traced(x):
        with xtrace.extend.core.set_current_trace(xtrace.core.Trace()):
            yield (yield (x,), {})

    # The traceback of the error holds the frames of the transformation.
    with pytest.raises(ZeroDivisionError) as raised:
        traced(xtrace.extend.linear_util.wrap_init(lambda x: 1 / x)).call_wrapped(0)
    assert float(xtrace.lax.sin(0.0)) == 0.0
    del raised


def test_a_trace_without_process_primitive_says_so():
    class Empty(xtrace.core.Trace):
        pass

    with (
        pytest.raises(NotImplementedError, match=r"Empty must define process_primitive\(primitive, tracers, params\)"),
        xtrace.extend.core.set_current_trace(Empty()),
    ):
        xtrace.lax.sin(xtrace.numpy.asarray(X))
    assert float(xtrace.lax.sin(0.0)) == 0.0


SHAPES = {
    "broadcast_to": lambda m, x: m.numpy.broadcast_to(x[None], (2, 3)),
    "one_to_many": lambda m, x: m.numpy.broadcast_to(x[:1], (3,)),
    "promoted": lambda m, x: x + m.numpy.ones((2, 1)),
    "atleast_2d": lambda m, x: m.numpy.atleast_2d(x),
    "atleast_3d": lambda m, x: m.numpy.atleast_3d(x),
    "array": lambda m, x: m.numpy.array([x, x]),
    "ndmin": lambda m, x: m.numpy.array(x, ndmin=3),
    "vstack": lambda m, x: m.numpy.vstack([x, x]),
    "dstack": lambda m, x: m.numpy.dstack([x, x]),
    "hstack": lambda m, x: m.numpy.hstack([x[0], x[1]]),
    "tile": lambda m, x: m.numpy.tile(x, (2, 1)),
    "ix_": lambda m, x: m.numpy.ix_(x, x),
    "kron": lambda m, x: m.numpy.kron(x, x),
    "argmax": lambda m, x: m.numpy.argmax(x, keepdims=True),
    "lexsort": lambda m, x: m.numpy.lexsort(x[None]),
    "vmap": lambda m, x: m.vmap(lambda y: y + x)(m.numpy.ones((2, 3))),
    "squeeze_gradient": lambda m, x: m.grad(lambda y: y[0])(x),
}


def use_names(jaxpr, names):
    """Collect the names of primitives, without the jits around them."""
    for equation in jaxpr.eqns:
        inner = equation.params.get("jaxpr")
        if equation.primitive.name == "jit":
            use_names(inner.jaxpr, names)
        else:
            names.append(equation.primitive.name)
    return names


@pytest.mark.parametrize("name", SHAPES)
def test_axes_are_added_by_the_operation_that_users_rules_are_for(name):
    ours, theirs = [
        use_names(m.make_jaxpr(lambda x, m=m: SHAPES[name](m, x))(X).jaxpr, []) for m in (xtrace, jax)
    ]
    assert sorted(ours) == sorted(theirs)


def make_boxed(module):
    """Return a function that calls another one on boxed values, under a trace with rules for a few operations."""
    core, linear_util = module.extend.core, module.extend.linear_util
    flatten, unflatten = module.tree.flatten, module.tree.unflatten
    zero_class = module.custom_derivatives.SymbolicZero
    zero_classes = zero_class, importlib.import_module(f"{module.__name__}.interpreters.ad").Zero
    rules = {"mul": module.lax.mul, "sin": module.lax.sin, "neg": module.lax.neg}

    class Boxed(module.core.Tracer):
        def __init__(self, trace, value):
            super().__init__(trace, module.typeof(value))
            self.value = value

    class Boxing(module.core.Trace):
        def __init__(self, below):
            super().__init__()
            self.below = below

        def box(self, values):
            return [x if type(x) in (*zero_classes, bool) else Boxed(self, x) for x in values]

        def unbox(self, values):
            return [x.value if isinstance(x, Boxed) else x for x in values]

        def process_primitive(self, primitive, tracers, params):
            with core.set_current_trace(self.below):
                return Boxed(self, rules[primitive.name](*self.unbox(tracers)))

        def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
            fun, tree = around(fun, self)
            jvp, jvp_tree = around(jvp, self)
            values = self.unbox(tracers)
            types = tuple(map(module.typeof, values))
            params = {"subfuns": (fun, jvp), "symbolic_zeros": symbolic_zeros}
            out = primitive.bind_with_trace(self.below, tuple(values), types, params)
            return self.box(unflatten(linear_util.merge_linear_aux(tree, jvp_tree)[1], out))

        def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers, *, out_trees, symbolic_zeros):
            values = self.unbox(tracers)
            types = tuple(map(module.typeof, values))
            subfuns = tuple([around(each, self)[0] for each in (fun, fwd, bwd)])
            params = {"subfuns": subfuns, "out_trees": out_trees, "symbolic_zeros": symbolic_zeros}
            return self.box(primitive.bind_with_trace(self.below, tuple(values), types, params))

    @linear_util.transformation_with_aux
    def around(outer, *values):
        with core.take_current_trace() as below:
            trace = Boxing(below)
            with core.set_current_trace(trace):
                results = yield trace.box(values), {}
                results = trace.unbox(results)
        results = [module.numpy.zeros(x.shape, x.dtype) if type(x) is zero_class else x for x in results]
        _, tree = flatten(results[: len(results) // 2] if len(results) > 1 else results)
        yield results, tree

    def call(function, *values):
        with core.take_current_trace() as below:
            trace = Boxing(below)
            with core.set_current_trace(trace):
                out = function(*trace.box(values))
            return trace.unbox([out])[0]

    return call


def make_product(module, symbolic_zeros):
    """Return ``sin(x) * y`` with a rule for the first operand only, which is wrong, so that its use shows."""
    lax = module.lax

    @module.custom_jvp
    def product(x, y):
        return lax.mul(lax.sin(x), y)

    def rule(primals, tangents):
        (x, y), (t, _) = primals, tangents
        return lax.mul(lax.sin(x), y), lax.mul(lax.neg(t), y)

    product.defjvp(rule, symbolic_zeros=symbolic_zeros)
    return product


def make_reversed_product(module, symbolic_zeros):
    """Return ``sin(x) * y`` with a rule for reverse mode, which is wrong, so that its use shows."""
    lax = module.lax

    @module.custom_vjp
    def product(x, y):
        return lax.mul(lax.sin(x), y)

    def fwd(x, y):
        x, y = (x.value, y.value) if symbolic_zeros else (x, y)
        return lax.mul(lax.sin(x), y), (y, {"x": x})

    product.defvjp(fwd, lambda saved, ct: (lax.mul(lax.neg(ct), saved[0]), None), symbolic_zeros=symbolic_zeros)
    return product


CALLS = {
    "value": lambda m, f, x, y: f(x, y),
    "jvp": lambda m, f, x, y: m.jvp(lambda x: f(x, y), (x,), (y,)),
    "grad": lambda m, f, x, y: m.grad(lambda x: f(x, y).sum())(x),
    "vmap": lambda m, f, x, y: m.vmap(f)(x, y),
    "jit": lambda m, f, x, y: m.jit(f)(x, y),
    "jit_of_grad": lambda m, f, x, y: m.jit(m.grad(lambda x: f(x, y).sum()))(x),
    "jit_of_vmap": lambda m, f, x, y: m.jit(m.vmap(m.grad(f)))(x, y),
    "grad_of_jit": lambda m, f, x, y: m.grad(lambda x: m.jit(f)(x, y).sum())(x),
}


@pytest.mark.parametrize("symbolic_zeros", [False, True])
@pytest.mark.parametrize(("make", "name"), [
    *itertools.product([make_product], CALLS),
    *[(make_reversed_product, name) for name in CALLS if name != "jvp"],
])
def test_users_traces_get_the_functions_of_custom_rules(make, name, symbolic_zeros):
    results = []
    for m in (xtrace, jax):
        function = functools.partial(make_boxed(m), make(m, symbolic_zeros))
        results.append(CALLS[name](m, function, m.numpy.asarray(X), m.numpy.asarray(X + 1)))
    for ours, theirs in zip(*map(xtrace.tree.leaves, map(list_of, results)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_fields_of_closed_jaxprs():
    ours, theirs = (m.make_jaxpr(lambda x, m=m: m.lax.sin(x) + m.lax.dot(X, X))(1.0) for m in (xtrace, jax))
    for name in ("constvars", "invars", "outvars", "eqns"):
        assert getattr(ours, name) is getattr(ours.jaxpr, name)
        assert len(getattr(ours, name)) == len(getattr(theirs, name)), name
    assert ours.debug_info is ours.jaxpr.debug_info
    again = ours.map_jaxpr(lambda jaxpr: jaxpr.replace(outvars=[jaxpr.eqns[0].outvars[0]]))
    assert [a.shape for a in again.out_avals] == [()] and again.consts == ours.consts
    assert ours.replace(jaxpr=again.jaxpr).jaxpr is again.jaxpr and ours.replace().consts == ours.consts


def test_the_true_function_of_a_cond_is_traced_first():
    for module in (xtrace, jax):
        traced = []
        branches = (lambda out=traced: out.append("t") or 1, lambda out=traced: out.append("f") or 2)
        module.make_jaxpr(lambda p, m=module, b=branches: m.lax.cond(p, *b))(True)
        assert traced == ["t", "f"]


def test_types_along_an_axis():
    for module in (jax, xtrace):
        core, matrix = module.extend.core, module.typeof(np.ones((2, 3), np.float32))
        assert core.mapped_aval(3, 1, matrix).shape == (2,) and core.unmapped_aval(4, 2, matrix).shape == (2, 3, 4)
    for function, axis in ((core.mapped_aval, -1), (core.mapped_aval, 2), (core.unmapped_aval, -1)):
        with pytest.raises(ValueError, match=f"{function.__name__}: axis {axis} must be from 0 to"):
            function(3, axis, matrix)
    with pytest.raises(NotImplementedError, match="unmapped_aval: explicit_mesh_axis is not supported"):
        core.unmapped_aval(3, 0, matrix, "x")


@pytest.mark.parametrize("module", [xtrace, jax])
def test_tracers_that_set_their_trace_and_name_their_type(module):
    """As in quax: `aval` is a property, numbers arrive as array-likes, and `full_raise` changes nothing."""
    core, seen = module.extend.core, []

    class Wrapped(module.core.Tracer):
        def __init__(self, trace, value):
            self._trace, self.value = trace, value

        @property
        def aval(self):
            return module.typeof(self.value)

        def full_lower(self):
            return self

    class Wrapping(module.core.Trace):
        def __init__(self, below):
            super().__init__()
            self.below = below

        def process_primitive(self, primitive, tracers, params):
            values = [x.value if isinstance(x, Wrapped) else x for x in tracers]
            seen.extend(isinstance(x, (module.Array, np.ndarray, np.generic, int, float)) for x in values)
            with core.set_current_trace(self.below):
                out = primitive.bind(*values, **params)
            return [Wrapped(self, x) for x in out] if primitive.multiple_results else Wrapped(self, out)

    with core.take_current_trace() as below:
        trace = Wrapping(below)
        with core.set_current_trace(trace):
            x = Wrapped(trace, X)
            out = module.numpy.where(x > 1.5, module.lax.sin(x) * 2 + 1.5, module.numpy.ones(3))
    assert trace.full_raise(out) is out and trace.full_raise(1.0) == 1.0 and out._trace is trace
    assert all(seen) and isinstance(out, Wrapped)
    np.testing.assert_allclose(out.value, np.where(X > 1.5, np.sin(X) * 2 + 1.5, 1), rtol=1e-6)
