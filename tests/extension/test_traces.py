"""Traces that users write: `Trace.process_primitive`, tracers with a class of their own, and closed jaxprs' fields."""

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


def test_a_trace_without_process_primitive_says_so():
    class Empty(xtrace.core.Trace):
        pass

    with (
        pytest.raises(NotImplementedError, match=r"Empty must define process_primitive\(primitive, tracers, params\)"),
        xtrace.extend.core.set_current_trace(Empty()),
    ):
        xtrace.lax.sin(xtrace.numpy.asarray(X))
    assert float(xtrace.lax.sin(0.0)) == 0.0


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
