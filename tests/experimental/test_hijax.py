"""Types and operations that users define above those of arrays: results and derivatives are jax's."""

import types
from dataclasses import dataclass
from typing import Any

import jax
import jax.experimental.hijax
import numpy as np
import pytest

import xtrace
import xtrace.experimental.hijax
import xtrace.numpy
from tests.support.reference import IS_REFERENCE
from xtrace import numpy as jnp

OURS = types.SimpleNamespace(root=xtrace, np=xtrace.numpy, hijax=xtrace.experimental.hijax, lax=xtrace.lax)
THEIRS = types.SimpleNamespace(root=jax, np=jax.numpy, hijax=jax.experimental.hijax, lax=jax.lax)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def quantized(library):
    """Matrices of 8-bit integers with a scale for each row, whose conversions have the identity as derivative."""
    jnp, hijax = library.np, library.hijax

    @dataclass(frozen=True)
    class Quantized:
        values: Any
        scales: Any

    @dataclass(frozen=True)
    class QuantizedType(hijax.HiType):
        shape: tuple

        def lo_ty(self):
            values = hijax.ShapedArray(self.shape, np.dtype(np.int8))
            return [values, hijax.ShapedArray(self.shape[:1], np.dtype(np.float32))]

        def lower_val(self, x):
            return [x.values, x.scales]

        def raise_val(self, values, scales):
            return Quantized(values, scales)

        def to_tangent_aval(self):
            return hijax.ShapedArray(self.shape, np.dtype(np.float32))

    hijax.register_hitype(Quantized, lambda x: QuantizedType(x.values.shape))

    class Quantize(hijax.HiPrimitive):
        def abstract_eval(self, x):
            return QuantizedType(x.shape), set()

        def to_lojax(self, x):
            scales = jnp.max(jnp.abs(x), axis=1) / 127
            return Quantized((x / scales[:, None]).astype(np.int8), scales)

        def jvp(self, primals, tangents):
            return self.bind(*primals), tangents[0]

        def transpose(self, cotangent, _):
            return [cotangent]

    class Restore(hijax.HiPrimitive):
        def abstract_eval(self, x):
            return hijax.ShapedArray(x.shape, np.dtype(np.float32)), set()

        def to_lojax(self, x):
            return x.values.astype(np.float32) * x.scales[:, None]

        def jvp(self, primals, tangents):
            return self.bind(*primals), tangents[0]

        def transpose(self, cotangent, _):
            return [cotangent]

    return types.SimpleNamespace(
        quantize=Quantize("quantize").bind, restore=Restore("restore").bind, **vars(library), Quantized=Quantized
    )


def eager(q, x):
    return q.restore(q.quantize(x))


def parts(q, x):
    result = q.root.jit(q.quantize)(x)
    assert type(result) is q.Quantized
    return result.values, result.scales


def argument(q, x):
    return q.root.jit(lambda y, z: q.restore(y) + z)(q.quantize(x), 1.0)


def static_argument(q, x):
    return q.root.jit(lambda y, n: q.restore(y) * n, static_argnames="n")(q.quantize(x), n=3)


def in_a_tree(q, x):
    result = q.root.jit(lambda tree: {"twice": [q.quantize(2 * q.restore(tree["q"]))]})({"q": q.quantize(x)})
    return q.restore(result["twice"][0])


def gradient(q, x):
    return q.root.grad(lambda y: (eager(q, y) ** 2).sum())(x)


def compiled_gradient(q, x):
    return q.root.jit(q.root.value_and_grad(lambda y: (eager(q, y) ** 2).sum()))(x)


def gradient_of_compiled(q, x):
    return q.root.grad(lambda y: (q.root.jit(lambda z: eager(q, z))(y) ** 2).sum())(x)


def gradient_by_quantized(q, x):
    return q.root.grad(lambda y: (q.restore(y) ** 2).sum())(q.quantize(x))


def forward_derivative(q, x):
    return q.root.jvp(lambda y: eager(q, y), (x,), (2 * x,))


def constants_of_scan(q, x):
    return q.lax.scan(lambda c, y: (c + y, q.restore(q.quantize(x)) * c), np.float32(0), np.ones(3, np.float32))


def carry_of_scan(q, x):
    last, ys = q.lax.scan(lambda c, y: (q.quantize(q.restore(c) * y), q.restore(c)), q.quantize(x), 2 * np.ones(3, "f"))
    return q.restore(last), ys


PROGRAMS = [
    eager, parts, argument, static_argument, in_a_tree, gradient, compiled_gradient, gradient_of_compiled,
    gradient_by_quantized, forward_derivative, constants_of_scan, carry_of_scan,
]


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_give_jaxs_results(program):
    ours, theirs = (
        library.root.tree.leaves(program(quantized(library), library.np.asarray(X))) for library in (OURS, THEIRS)
    )
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype
        # Some roundings of float32.
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_other_operators_take_values_of_high_types():
    q = quantized(OURS)
    x = q.quantize(xtrace.numpy.asarray(X))
    expected = np.asarray(q.restore(x))
    chosen = xtrace.lax.cond(True, lambda y: y, lambda y: q.quantize(2 * q.restore(y)), x)
    doubled = xtrace.lax.fori_loop(0, 2, lambda _, y: q.quantize(2 * q.restore(y)), x)
    kept = xtrace.lax.while_loop(lambda y: q.restore(y).max() < 30, lambda y: q.quantize(2 * q.restore(y)), x)
    np.testing.assert_allclose(q.restore(chosen), expected)
    # Each step rounds to 1/127 of the largest element.
    np.testing.assert_allclose(q.restore(doubled), 4 * expected, atol=4 * 5 / 127)
    np.testing.assert_allclose(q.restore(kept), 8 * expected, atol=8 * 5 / 127)


class Box:
    """A mutable value: a dictionary of arrays."""

    def __init__(self, entries):
        self.entries = entries

    def cur_qdd(self):
        """Its keys."""
        return tuple(sorted(self.entries))


@dataclass(frozen=True)
class BoxType(xtrace.experimental.hijax.MutableHiType):
    """The type of boxes."""

    def read_loval(self, state, value):
        """Return the arrays."""
        return [value.entries[key] for key in state]

    def new_from_loval(self, state, *lo_vals):
        """Return a new box."""
        return Box(dict(zip(state, lo_vals, strict=True)))

    def update_from_loval(self, state, value, *lo_vals):
        """Replace the entries."""
        value.entries = dict(zip(state, lo_vals, strict=True))


xtrace.experimental.hijax.register_hitype(Box, lambda box: BoxType())


def test_compiled_functions_change_mutable_arguments():
    traces = []

    @xtrace.jit
    def add(box, x):
        traces.append(xtrace.experimental.cur_qdd(box))
        box.entries["sum"] = box.entries.get("sum", 0.0) + x
        return box.entries["sum"]

    box = Box({})
    assert [float(add(box, 2.0)) for _ in range(4)] == [2, 4, 6, 8]
    assert list(box.entries) == ["sum"] and float(box.entries["sum"]) == 8
    assert traces == [(), ("sum",)]  # once for each state


def multiplier(library):
    """x times a factor, with a derivative that is wrong on purpose."""

    class Multiply(library.hijax.VJPHiPrimitive):
        def __init__(self, aval, factor):
            self.in_avals, self.out_aval, self.params = (aval,), aval, {"factor": factor}
            self.factor = factor
            super().__init__()

        def expand(self, x):
            return x * self.factor

        def vjp_fwd(self, nonzero, x):
            assert nonzero == (True,)
            return x * self.factor, x

        def vjp_bwd_retval(self, x, g):
            return (g * x * 100,)

        def jvp(self, primals, tangents):
            return primals[0] * self.factor, tangents[0] * 7

        def batch(self, axis_data, args, axes):
            return Multiply(library.root.typeof(args[0]), self.factor)(*args), axes[0]

    return lambda x, factor=3.0: Multiply(library.root.typeof(x), factor)(x)


DERIVED = [
    lambda f, lib: f(lib.np.ones(2)),
    lambda f, lib: lib.root.grad(f)(2.0),
    lambda f, lib: lib.root.jit(lib.root.grad(lambda x: f(x) * x))(2.0),
    lambda f, lib: lib.root.grad(lib.root.jit(f))(2.0),
    lambda f, lib: lib.root.jvp(f, (2.0,), (1.0,)),
    lambda f, lib: lib.root.vmap(f)(lib.np.arange(3.0)),
    lambda f, lib: lib.root.vmap(lib.root.grad(f))(lib.np.arange(3.0)),
    lambda f, lib: lib.lax.scan(lambda c, x: (f(c), f(x, 2.0)), 1.0, lib.np.arange(3.0)),
    lambda f, lib: lib.root.grad(lambda x: lib.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0])(2.0),
]


@pytest.mark.parametrize("program", DERIVED, ids=range(len(DERIVED)))
def test_operations_with_derivatives_of_their_own_give_jaxs_results(program):
    ours, theirs = (lib.root.tree.leaves(program(multiplier(lib), lib)) for lib in (OURS, THEIRS))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_jaxprs_name_the_operation():
    jaxpr = xtrace.make_jaxpr(multiplier(OURS))(1.0)
    assert str(jaxpr) == (
        "{ lambda ; a:f32[]. let\n    b:f32[] = call_hi_primitive[_prim=Multiply[{'factor': 3.0}]] a\n  in (b,) }"
    )


def operation(library, **rules):
    """A function of arrays that applies an operation with `expand` and other `rules`; the first one gives the type."""
    hijax, typeof = library.hijax, library.root.typeof

    def set_up(self, *avals):
        self.in_avals, self.out_aval, self.params = avals, avals[0], {"factor": 3.0}
        base.__init__(self)

    base = getattr(hijax, "HiPrim", None) or hijax.VJPHiPrimitive
    kind = type("Operation", (base,), {"__init__": set_up, **rules})
    return lambda *args: kind(*map(typeof, args))(*args)


def scale_rules(library):
    """The rules of ``factor * x * sin(y)``, with an axis that is mapped, and a derivative that is wrong on purpose."""
    jnp = library.np
    return {
        "expand": lambda self, x, y: self.factor * x * jnp.sin(y),
        "vjp_fwd": lambda self, nonzero, x, y: (self(x, y), (x if nonzero[1] else None, y)),
        "vjp_bwd_retval": lambda self, res, g: (
            g * res[1], None if res[0] is None else self.factor * g * res[0] * res[1]
        ),
        "jvp": lambda self, primals, tangents: (
            self(*primals), sum(7.0 * library.hijax.instantiate_zeros(t) for t in tangents)
        ),
        "batch_dim_rule": lambda self, axis_data, dims: dims[1] if dims[0] is None else dims[0],
    }


RULES = [
    lambda f, lib: lib.root.vmap(f)(lib.np.arange(3.0), lib.np.ones(3)),
    lambda f, lib: lib.root.vmap(f, (0, None))(lib.np.arange(3.0), 2.0),
    lambda f, lib: lib.root.vmap(lib.root.grad(f, (0, 1)))(lib.np.arange(3.0), lib.np.ones(3)),
    lambda f, lib: lib.root.grad(lambda x, y: lib.root.vmap(f)(x, y).sum(), (0, 1))(lib.np.arange(3.0), lib.np.ones(3)),
    lambda f, lib: lib.root.grad(lambda x, y: lib.root.vmap(f, (0, None))(x, y).sum(), (0, 1))(lib.np.arange(3.0), 2.0),
    lambda f, lib: lib.root.grad(lambda x, y: lib.root.vmap(f, 1)(x, x * y).sum(), 1)(lib.np.ones((2, 3)), 2.0),
    lambda f, lib: lib.root.jvp(lambda x: lib.root.vmap(f)(x, x), (lib.np.ones(2),), (lib.np.ones(2),)),
    lambda f, lib: lib.root.jvp(lambda x: f(x, 2.0), (1.0,), (1.0,)),
    lambda f, lib: (lib.root.grad(f)(1.0, 2.0), lib.root.grad(f, 1)(1.0, 2.0), lib.root.grad(f, (0, 1))(1.0, 2.0)),
    lambda f, lib: lib.root.jit(lib.root.vmap(lib.root.grad(f)))(lib.np.arange(3.0), lib.np.ones(3)),
]


@pytest.mark.skipif(not IS_REFERENCE, reason="newer jax has no mapped rules that follow from others")
@pytest.mark.parametrize("program", RULES, ids=range(len(RULES)))
def test_rules_of_operations_give_jaxs_results(program):
    ours, theirs = (lib.root.tree.leaves(program(operation(lib, **scale_rules(lib)), lib)) for lib in (OURS, THEIRS))
    for one, other in zip(ours, theirs, strict=True):
        # A few products and one sine.
        np.testing.assert_allclose(one, other, rtol=1e-6)


def concrete_rules(library):
    """Operations that branch on values outside of jit, and that add cotangents to accumulators."""
    jnp = library.np
    branch = operation(
        library, expand=lambda self, x: jnp.sin(x) if x > 0 else jnp.cos(x), vjp_fwd=lambda self, nonzero, x: (x, x),
        vjp_bwd_retval=lambda self, x, g: (2 * g if x > 0 else 3 * g,),
    )

    def add_cotangents(self, x, g, to_x, to_y):
        to_x.accum(g * x)
        to_x.accum(jnp.ones_like(x))
        assert to_y.aval.shape == (2,)

    accumulating = operation(
        library, expand=lambda self, x, y: x + y, vjp_bwd=add_cotangents,
        vjp_fwd=lambda self, nonzero, x, y: (x + y, x),
    )
    linear = operation(
        library, expand=lambda self, x: jnp.sin(x), lin=lambda self, nonzero, x: (self(x), jnp.cos(x)),
        linearized=lambda self, cosine, t: cosine * t * 5,
    )
    ones = jnp.ones(2)
    return [
        branch(1.0), branch(-1.0), library.root.grad(branch)(1.0), library.root.grad(branch)(-1.0),
        library.root.grad(lambda x, y: accumulating(x, y).sum(), (0, 1))(3 * ones, ones),
        library.root.linearize(linear, 2.0)[1](1.0),
    ]


def test_rules_see_values_and_accumulators_as_in_jax():
    ours, theirs = (lib.root.tree.leaves(concrete_rules(lib)) for lib in (OURS, THEIRS))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_rules_that_follow_from_other_rules():
    hijax, grad = xtrace.experimental.hijax, xtrace.grad
    by_jvp = {
        "expand": lambda self, x: jnp.sin(x),
        "jvp": lambda self, primals, tangents: (self(*primals), jnp.cos(primals[0]) * tangents[0]),
    }
    (lin, linearized), (forward, backward) = hijax.linearize_from_jvp, hijax.vjp_from_lin
    from_linear = by_jvp | {"lin": lin, "linearized": linearized, "vjp_fwd": forward, "vjp_bwd_retval": backward}
    forward, backward = hijax.vjp_from_jvp
    from_jvp = by_jvp | {"vjp_fwd": forward, "vjp_bwd_retval": backward}
    from_lin = {
        "expand": by_jvp["expand"], "lin": lambda self, nonzero, x: (self(x), jnp.cos(x)),
        "linearized": lambda self, cosine, t: cosine * t, "jvp": hijax.jvp_from_lin,
    }
    for rules in (from_linear, from_jvp, from_lin):
        f = operation(OURS, **rules)
        for found in (grad(f)(3.0), xtrace.jit(grad(f))(3.0), xtrace.jvp(f, (3.0,), (1.0,))[1]):
            np.testing.assert_allclose(found, np.cos(np.float32(3)), rtol=1e-6)
    f = operation(OURS, **from_linear)
    np.testing.assert_allclose(grad(grad(f))(3.0), -np.sin(np.float32(3)), rtol=1e-6)
    np.testing.assert_allclose(xtrace.linearize(f, 3.0)[1](2.0), 2 * np.cos(np.float32(3)), rtol=1e-6)
    with xtrace.jax_version("0.12"):
        text = str(xtrace.make_jaxpr(lambda x: f(x))(1.0))
    assert text == "{ lambda ; a:f32[]. let b:f32[] = Operation[factor=3.0] a in (b,) }"


def test_accumulators():
    hijax, aval = xtrace.experimental.hijax, xtrace.typeof(jnp.zeros(2))
    ref = xtrace.new_ref(jnp.ones(2))
    kinds = [hijax.ValAccum(aval), hijax.ValAccum(aval, jnp.ones(2)), hijax.RefAccum(aval, ref), hijax.RefAccum(aval)]
    for total, start in zip(kinds, (0, 1, 1, 0), strict=True):
        total.accum(None)
        total.accum(hijax.Zero(aval))
        assert isinstance(total.freeze(), hijax.Zero) == (start == 0)
        total.accum(jnp.ones(2))
        total.accum(jnp.ones(2))
        np.testing.assert_array_equal(total.freeze(), [start + 2.0] * 2)
    nothing = hijax.NullAccum(aval)
    nothing.accum(jnp.ones(2))
    assert isinstance(nothing.freeze(), hijax.Zero) and isinstance(nothing, hijax.GradAccum)
    np.testing.assert_array_equal(ref[...], [3, 3])


def test_sets_of_classes_of_effects():
    class Effect(xtrace.extend.core.Effect):
        pass

    allowed = xtrace.experimental.hijax.control_flow_allowed_effects
    before = Effect()
    assert before not in allowed
    allowed.add_type(Effect)
    assert before in allowed and allowed.filter_not_in([before, 1]) == [1]


class Incomplete(xtrace.experimental.hijax.HiType):
    """A type without methods."""


class Empty(xtrace.experimental.hijax.VJPHiPrimitive):
    """An operation without methods."""

    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()


class Forward(Empty):
    """An operation without a derivative."""

    def expand(self, x):
        """Return the double."""
        return 2 * x


class Unset(xtrace.experimental.hijax.VJPHiPrimitive):
    """An operation without types."""


ONE = xtrace.typeof(xtrace.numpy.float32(1))
ERRORS = [
    (lambda: Incomplete().lo_ty(), NotImplementedError, "define Incomplete.lo_ty"),
    (lambda: BoxType().lo_ty_qdd(()), NotImplementedError, "define BoxType.lo_ty_qdd"),
    (lambda: xtrace.experimental.hijax.HiPrimitive("nothing").bind(1.0), NotImplementedError, "HiPrimitive.to_lojax"),
    (lambda: Empty(ONE)(1.0), NotImplementedError, "define Empty.expand"),
    (lambda: xtrace.grad(Forward(ONE))(1.0), NotImplementedError, "define Forward.vjp_fwd"),
    (lambda: xtrace.jvp(Empty(ONE), (1.0,), (1.0,)), NotImplementedError, "define Empty.jvp"),
    (lambda: xtrace.vmap(Empty(ONE))(xtrace.numpy.ones(2)), NotImplementedError, "define Empty.batch"),
    (lambda: Empty(ONE)(xtrace.numpy.ones(2)), TypeError, r"of the types f32\[\], got one of type f32\[2\]"),
    (lambda: Empty(ONE)(1.0, 2.0), TypeError, "takes arguments of the structure"),
    (Unset, AttributeError, "in_avals is missing"),
    (lambda: xtrace.experimental.hijax.register_hitype(3, len), TypeError, "takes a class and a function"),
    (lambda: xtrace.grad(lambda b: b.entries["x"])(Box({"x": 1.0})), NotImplementedError, "BoxType.to_tangent_aval"),
]


@pytest.mark.parametrize("call, kind, message", ERRORS, ids=range(len(ERRORS)))
def test_errors_name_the_method_to_define(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


class Entry(xtrace.experimental.hijax.VJPHiPrimitive):
    """An entry of a box, or a box with one entry."""

    def __init__(self, takes, gives):
        self.in_avals, self.out_aval, self.params = (takes,), gives, {}
        super().__init__()

    def expand(self, x):
        """Return the entry of a box, and a box of another value."""
        return x.entries["it"] if isinstance(x, Box) else Box({"it": x})


def test_operations_with_derivatives_of_their_own_take_and_give_values_of_high_types():
    aval = xtrace.typeof(np.float32(0))

    def double(x):
        box = Entry(aval, BoxType())(x)
        return 2 * Entry(BoxType(), aval)(box)

    assert float(double(3.0)) == float(xtrace.jit(double)(3.0)) == 6.0
    reference = xtrace.new_ref(3.0)
    assert Entry(xtrace.typeof(reference), BoxType())(reference).entries["it"] is reference
