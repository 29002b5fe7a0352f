"""Taylor series: those of jax where it has rules, nested jvp everywhere, and what rules and arguments may be."""

import gc
import math

import jax
import jax.extend.core
import numpy as np
import pytest
from jax.experimental import jet as jax_jet

import xtrace
import xtrace.lax
import xtrace.nn
import xtrace.numpy as jnp
import xtrace.scipy.linalg
import xtrace.scipy.special
from tests.support.rules import Library
from xtrace import lax
from xtrace._src.jet.series import Series
from xtrace._src.jet.trace import JetTrace
from xtrace.experimental import jet as module
from xtrace.experimental.jet import jet, jet_rules, zero_series, zero_term

pytestmark = pytest.mark.thorough

OURS = Library(xtrace, xtrace.lax, xtrace.numpy, np.asarray)
THEIRS = Library(jax, jax.lax, jax.numpy, np.asarray)

POINT = np.array([0.3, 0.7, 1.2])
CURVE = np.array([[1.0, -0.5, 2.0], [0.3, 0.2, -0.4], [0.1, -0.7, 0.6]])
MATRIX = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.1]])


@pytest.fixture(autouse=True)
def _double_precision():
    with xtrace.enable_x64(True), jax.enable_x64(True):
        yield


def assert_close(found, wanted):
    """Assert that trees agree to 1e4 roundings in double precision, relative to the largest element."""
    mine, other = xtrace.tree.flatten(found), xtrace.tree.flatten(wanted)
    assert mine[1] == other[1]
    for x, y in zip(mine[0], other[0], strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape and x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=0, atol=1e4 * np.finfo(float).eps * (1 + np.abs(y).max(initial=0)))


def along(curve, t):
    """The point of the curve whose derivatives are given at time t."""
    return POINT + sum(c * t**k / math.factorial(k) for k, c in enumerate(curve, 1))


def nested(function, order=3):
    """The derivatives of the function along the curve, by jvp of jvp."""
    derivative, found = lambda t: function(along(CURVE[:order], t)), []
    for _ in range(order):
        derivative = (lambda f: lambda t: xtrace.jvp(f, (t,), (1.0,))[1])(derivative)
        found.append(derivative(0.0))
    leaves = [xtrace.tree.leaves(terms) for terms in found]
    tree = xtrace.tree.structure(found[0])
    return tree.unflatten([list(terms) for terms in zip(*leaves, strict=True)])


# Operations that jax has rules for: functions of a library and an array. jax writes the others in terms of these.
WITH_JAX = {
    "abs": lambda m, x: m.lax.abs(x - 0.5),
    "acosh": lambda m, x: m.lax.acosh(x + 2),
    "add": lambda m, x: x + m.lax.neg(x * x) - 3.0,
    "asinh": lambda m, x: m.lax.asinh(x),
    "atan2": lambda m, x: m.lax.atan2(x, 1 + x * x),
    "atanh": lambda m, x: m.lax.atanh(x / 4),
    "clamp": lambda m, x: m.lax.clamp(np.full(3, 0.5), x, np.ones(3)) * x,
    "complex": lambda m, x: m.lax.conj(m.lax.complex(x, x * x)) * m.lax.imag(m.lax.complex(x, x)),
    "concatenate": lambda m, x: m.lax.concatenate([x, x * x, np.ones(2)], 0),
    "conv": lambda m, x: m.np.convolve(x * x, m.np.sin(x)),
    "convert": lambda m, x: m.lax.convert_element_type(x * x, np.complex128) * 2,
    "cos": lambda m, x: m.lax.cos(x),
    "cosh": lambda m, x: m.lax.cosh(x),
    "cummax": lambda m, x: m.lax.cummax(m.lax.sin(3 * x)),
    "cumprod": lambda m, x: m.lax.cumprod(x),
    "cumsum": lambda m, x: m.lax.cumsum(x * x, reverse=True),
    "div": lambda m, x: 2 * x / (1 + x * x),
    "div by a constant": lambda m, x: x * x / np.arange(1.0, 4),
    "dot_general": lambda m, x: m.np.einsum("i,ij,j->", m.np.sin(x), MATRIX, x),
    "dynamic_slice": lambda m, x: m.lax.dynamic_slice(x * x, (1,), (2,)),
    "dynamic_update_slice": lambda m, x: m.lax.dynamic_update_slice(np.ones(5), x * x, (1,)),
    "erf": lambda m, x: m.lax.erf(x) * m.lax.erfc(x),
    "erf_inv": lambda m, x: m.lax.erf_inv(x / 4),
    "exp": lambda m, x: m.lax.exp(x),
    "expm1": lambda m, x: m.lax.expm1(x),
    "fft": lambda m, x: m.np.fft.fft(x * x),
    "gather": lambda m, x: x[np.array([0, 2, 2])] * x[1],
    "integer_pow": lambda m, x: x**3 + x**-2 + x**0,
    "jit": lambda m, x: m.api.jit(lambda x: m.lax.sin(x) * x)(x) * x,
    "log": lambda m, x: m.lax.log(x),
    "log1p": lambda m, x: m.lax.log1p(x),
    "logistic": lambda m, x: m.lax.logistic(x),
    "max": lambda m, x: m.lax.max(x * x, x) + m.lax.min(x, np.full(3, 0.5)),
    "pad": lambda m, x: m.lax.pad(x * x, 1.0, [(1, 0, 1)]),
    "pow": lambda m, x: m.lax.pow(x, 2.5),
    "pow of two": lambda m, x: m.lax.pow(x, m.lax.sin(x)),
    "reduce_max": lambda m, x: m.np.max(m.lax.sin(x) * x) + m.np.min(x * x),
    "reduce_sum": lambda m, x: m.np.sum(x * x),
    "reduce_window_sum": lambda m, x: m.lax.reduce_window(x * x, 0.0, m.lax.add, (2,), (1,), "VALID"),
    "rem": lambda m, x: m.lax.rem(x * x, 0.4),
    "reshape": lambda m, x: m.lax.transpose(m.lax.reshape(x * x, (3, 1)), (1, 0))[0],
    "rev": lambda m, x: m.lax.rev(x * x, (0,)),
    "rounding": lambda m, x: m.lax.floor(x) + m.lax.round(x) * x + m.lax.sign(x) * m.lax.ceil(x),
    "rsqrt": lambda m, x: m.lax.rsqrt(x),
    "scatter_add": lambda m, x: m.np.ones(5).at[np.array([1, 1, 3])].add(x * x),
    "select_n": lambda m, x: m.np.where(x > 0.5, x * x, 1.0),
    "sin": lambda m, x: m.lax.sin(x),
    "sinh": lambda m, x: m.lax.sinh(x),
    "split": lambda m, x: m.lax.split(x * x, (1, 2))[1] * 2,
    "sqrt": lambda m, x: m.lax.sqrt(x),
    "square": lambda m, x: m.lax.square(m.lax.sin(x)),
    "squeeze": lambda m, x: m.lax.squeeze(m.lax.broadcast_in_dim(x * x, (1, 3), (1,)), (0,)),
    "stop_gradient": lambda m, x: m.lax.stop_gradient(x) * x,
    "tanh": lambda m, x: m.lax.tanh(x),
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", WITH_JAX)
def test_series_are_those_of_jax(name):
    found, wanted = [], []
    for package, function, values in ((OURS, jet, found), (THEIRS, jax_jet.jet, wanted)):
        for scaled in (True, False):
            given = tuple([package.np.asarray(x) for x in CURVE])
            values.append(
                function(
                    lambda x, m=package: WITH_JAX[name](m, x), (package.np.asarray(POINT),), (given,),
                    factorial_scaled=scaled,
                )
            )
    assert_close(found, wanted)


def _with_rule(x):
    function = xtrace.custom_jvp(lambda x: x * jnp.sin(x))

    @function.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        y = function(x)
        return y, t * (y / x + lax.cond(x[0] > 0, jnp.sqrt, jnp.cos, y))

    return function(x)


def _loop(x):
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * jnp.sin(s[2]), s[1]), (0, x, POINT))[1:]


def _scan(x):
    def step(carry, element):
        one, _, count = carry
        return (one * jnp.sin(element) + x, one, count + 1), (one[0] * element, count)

    carry, (ys, _) = lax.scan(step, (x, POINT, 0), x[:2], reverse=True)
    return carry[:2], ys


def _root(x):
    def solve(f, start):
        return lax.fori_loop(0, 9, lambda _, y: y - f(y) / (3 * y * y), start + 1)

    return lax.custom_root(lambda y: y**3 - x, x, solve, lambda g, y: y / g(jnp.ones_like(y)))


def _batched(x):
    function = xtrace.custom_batching.custom_vmap(lambda x: jnp.sin(x) * x)
    function.def_vmap(lambda size, mapped, x: (jnp.sin(x) * x, True))
    return function(x), xtrace.vmap(function)(x)


# Operations whose series follows from the jvp rule, and those that hold jaxprs.
BY_JVP = {
    "acos": lambda x: jnp.arccos(x / 4) * jnp.arcsin(x / 4),
    "atan": jnp.arctan,
    "bessel": lambda x: lax.bessel_i0e(x) * lax.bessel_i1e(x),
    "cbrt": jnp.cbrt,
    "cholesky": lambda x: jnp.linalg.cholesky(MATRIX + jnp.diag(x)),
    "complex_abs": lambda x: jnp.abs(x * (1 + 2j)) * jnp.angle(x * x + 1j),
    "cond": lambda x: lax.cond(x[0] > 0, lambda x: (jnp.sin(x), 1.0), lambda x: (POINT, x[0]), x),
    "cumlogsumexp": lax.cumlogsumexp,
    "custom_jvp": _with_rule,
    "custom_root": _root,
    "custom_vmap": _batched,
    "digamma": lambda x: lax.digamma(x) * lax.lgamma(x),
    "eig": lambda x: jnp.linalg.eigvals(MATRIX + jnp.outer(x, POINT)),
    "eigh": lambda x: jnp.linalg.eigh(MATRIX + jnp.outer(x, x) / 10),
    "exp2": jnp.exp2,
    "expm": lambda x: xtrace.scipy.linalg.expm(jnp.diag(x) + MATRIX),
    "fill": lambda x: x.at[np.array([0, 5])].get(mode="fill", fill_value=2.0) * 3,
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, a: a @ a / 10, jnp.outer(x, x)),
    "gelu": xtrace.nn.gelu,
    "grad": xtrace.grad(lambda x: jnp.sin(x).sum() * x[0]),
    "igammac": lambda x: lax.igammac(POINT, x),
    "jvp": lambda x: xtrace.jvp(jnp.tan, (x,), (x * x,)),
    "logsumexp": xtrace.nn.logsumexp,
    "lu": lambda x: xtrace.scipy.linalg.lu(MATRIX + jnp.diag(x))[1:],
    "matrix product": lambda x: jnp.outer(x, x) @ (MATRIX * x),
    "norm": jnp.linalg.norm,
    "optimization_barrier": lambda x: lax.optimization_barrier((x * x, x)),
    "polygamma": lambda x: lax.polygamma(1.0, x),
    "product": lambda x: jnp.prod(x) * jnp.cumprod(x),
    "psum": lambda x: xtrace.vmap(lambda a: lax.psum(a * jnp.sin(a), "i") * a, axis_name="i")(x),
    "qr": lambda x: jnp.linalg.qr(MATRIX + jnp.diag(x)),
    "reduce": lambda x: lax.reduce(x, 1.0, lambda a, b: a * b + a, (0,)),
    "reduce_window": lambda x: lax.reduce_window(jnp.sin(2 * x), -np.inf, lax.max, (2,), (1,), "SAME"),
    "remat": xtrace.checkpoint(lambda x: jnp.sin(x) * x),
    "scan": _scan,
    "scatter": lambda x: jnp.ones(5).at[np.array([1, 2, 4])].set(x * x),
    "scatter_mul": lambda x: jnp.full(5, 2.0).at[np.array([0, 1, 4])].multiply(x, unique_indices=True),
    "softmax": xtrace.nn.softmax,
    "solve": lambda x: jnp.linalg.solve(MATRIX + jnp.diag(x), x),
    "sort": lambda x: lax.sort((jnp.sin(3 * x), x * x), num_keys=1),
    "svd": lambda x: jnp.linalg.svd(MATRIX + jnp.outer(x, x), compute_uv=False),
    "switch": lambda x: lax.switch(1, [jnp.cos, lambda x: x * jnp.tan(x / 2)], x),
    "tan": jnp.tan,
    "top_k": lambda x: lax.top_k(jnp.sin(2 * x), 2)[0],
    "triangular_solve": lambda x: lax.linalg.triangular_solve(MATRIX * x, x[:, None], left_side=True, lower=True),
    "vmap": xtrace.vmap(lambda a: jnp.sin(a) * POINT),
    "while_loop": _loop,
    "zeta": lambda x: lax.zeta(3.0, x),
}


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("name", BY_JVP)
def test_series_are_nested_derivatives(name):
    function = BY_JVP[name]
    value, series = jet(function, (POINT,), (list(CURVE),))
    assert_close(value, function(jnp.asarray(POINT)))
    assert_close(series, nested(function))


def test_high_orders_are_exact():
    # The derivatives of 1 / (1 - x) at 0 are n!, those of exp(x) sin(x) the imaginary parts of (1 + i)^n.
    line = (1.0, *[zero_term] * 11)
    _, found = jet(lambda x: 1 / (1 - x), (0.0,), (line,))
    assert_close(found, [float(math.factorial(n)) for n in range(1, 13)])
    _, found = jet(lambda x: jnp.exp(x) * jnp.sin(x), (0.0,), (line,))
    assert_close(found, [((1 + 1j) ** n).imag for n in range(1, 13)])
    # Where the recurrences that are usual for powers divide by zero.
    _, found = jet(lambda x: lax.pow(x, 3.0) + x**2, (0.0,), (line[:3],))
    assert_close(found, [0.0, 2.0, 6.0])


def test_work_grows_with_the_square_of_the_order():
    def operations(order):
        jaxpr = xtrace.make_jaxpr(lambda x: jet(lambda x: lax.erf_inv(lax.sin(lax.tan(x))), (x,), ([x] * order,)))(1.0)
        return len(jaxpr.eqns)

    # Twice the order is four times the work, and of the cube of the order it would be eight times.
    assert operations(16) < 6 * operations(8)


def test_series_are_freed_without_the_collector():
    def function(x):
        # In the rule of erf_inv the exponential function waits for the result, and its own rule for itself.
        return lax.erf_inv(lax.tan(x / 4)) * lax.bessel_i1e(x)

    gc.collect()
    gc.disable()
    try:
        jet(function, (POINT,), (list(CURVE),))
        kept = [x for x in gc.get_objects() if isinstance(x, (Series, JetTrace))]
    finally:
        gc.enable()
    assert not kept


def test_long_rules():
    # The operations of the rule depend on the result, one on the other.
    function = xtrace.custom_jvp(jnp.sin)

    @function.defjvp
    def rule(primals, tangents):
        y = function(*primals)
        slope = y
        for _ in range(60):
            slope = lax.cos(slope) * 1.01
        return y, slope * tangents[0]

    assert_close(jet(function, (POINT,), (list(CURVE),))[1], nested(function))


# Transformations of series


def _second_derivative(x):
    return jet(lambda x: jnp.sin(x) * xtrace.nn.silu(x) / xtrace.nn.logsumexp(x), (x,), ((CURVE[0], CURVE[1]),))[1][1]


def test_transformations_of_series():
    expected = nested(lambda x: jnp.sin(x) * xtrace.nn.silu(x) / xtrace.nn.logsumexp(x), 2)[1]
    assert_close(xtrace.jit(_second_derivative)(POINT), expected)
    mapped = xtrace.vmap(_second_derivative)(np.stack([POINT, POINT + 1]))
    assert_close(mapped[0], expected)
    slope = xtrace.grad(lambda x: _second_derivative(x).sum())(POINT)
    for i, step in enumerate(np.eye(3) * 1e-6):
        change = _second_derivative(POINT + step).sum() - _second_derivative(POINT - step).sum()
        # The error of the difference is that of second derivatives, 1e-16 of 10, divided by the step.
        np.testing.assert_allclose(slope[i], change / 2e-6, rtol=0, atol=1e-7)


def test_series_of_series():
    def directional(x):
        return jet(lambda y: jnp.sin(y * x), (x,), ((x, zero_term),))[1][1]

    def by_jvp(x):
        return xtrace.jvp(lambda y: xtrace.jvp(lambda z: jnp.sin(z * x), (y,), (x,))[1], (x,), (x,))[1]

    assert_close(jet(directional, (POINT,), (list(CURVE),)), jet(by_jvp, (POINT,), (list(CURVE),)))
    assert_close(jet(directional, (POINT,), (list(CURVE),))[1], nested(by_jvp))


def test_series_under_shard_map():
    mesh = xtrace.make_mesh((1,), ("i",), axis_types=xtrace.sharding.AxisType.Auto)
    spec = xtrace.sharding.PartitionSpec("i")
    function = xtrace.shard_map(lambda x: lax.psum(jnp.sin(x) * x, "i"), mesh=mesh, in_specs=spec, out_specs=spec)
    plain = jet(lambda x: jnp.sin(x) * x, (POINT,), (list(CURVE),))
    assert_close(xtrace.jit(lambda x: jet(function, (x,), (list(CURVE),)))(POINT), plain)


def test_an_equation_is_solved_by_its_taylor_series():
    # y' = y (1 - y) has the solution 1 / (1 + e^-t). Each call of jet gives one more derivative of it.
    def solution(y, order):
        terms = [y * (1 - y)]
        while len(terms) < order:
            slope, series = jet(lambda y: y * (1 - y), (y,), (terms,))
            terms = [slope, *series]
        return terms

    wanted = xtrace.nn.sigmoid(0.0)
    terms = xtrace.jit(solution, static_argnums=1)(wanted, 14)
    reached = wanted + sum(t * 0.5**k / math.factorial(k) for k, t in enumerate(terms, 1))
    # The series converges within pi, so that the remainder is below (0.5 / pi)^15.
    np.testing.assert_allclose(reached, 1 / (1 + math.exp(-0.5)), rtol=0, atol=1e-12)


# Arguments and results


def test_arguments_and_results_are_trees():
    def function(d, c):
        return {"product": d["a"] * d["b"] * c, "known": (jnp.arange(2), 3.0, None), "bits": d["a"] > 0}

    given = {"a": [1.0, 0], "b": (np.float32(1), 2)}, zero_series
    value, series = jet(function, ({"a": 2.0, "b": 3}, 2.0), given)
    assert_close(value["product"], jnp.asarray(12.0))
    assert_close(series["product"], [jnp.asarray(10.0), jnp.asarray(12.0)])
    zeros = [jnp.zeros(2), jnp.zeros(2)]
    assert_close(series["known"], (zeros, [jnp.asarray(0.0)] * 2, None))
    assert [x.dtype for x in series["bits"]] == [np.float64] * 2


def test_terms_take_the_type_of_the_argument():
    value, series = jet(lambda x: x, (np.ones(3, np.float32),), (np.arange(2.0),))
    assert value.dtype == np.float32
    assert_close(series, [np.zeros(3, np.float32), np.ones(3, np.float32)])
    assert jet(lambda x: x, (1.0,), ((),)) == (1.0, [])
    assert jet(lambda: 2.0, (), ()) == (2.0, [])


def test_values_are_known():
    def function(x):
        assert repr(x).startswith("JetTracer(primal=3.0, order=1")
        return x * int(x) if x > 0 and x.item() == 3.0 else -x

    assert_close(jet(function, (3.0,), ((1.0,),)), (jnp.asarray(9.0), [jnp.asarray(3.0)]))


def test_effects_happen_once(capsys):
    def function(x):
        xtrace.debug.print("x = {}", x)
        return x * x

    jet(function, (3.0,), ((1.0, 0.0),))
    xtrace.effects_barrier()
    assert capsys.readouterr().out == "x = 3.0\n"


def test_zero_terms_cost_nothing():
    def count(*terms):
        return len(xtrace.make_jaxpr(lambda x: jet(lambda x: x**3, (x,), (terms,)))(1.0).eqns)

    assert count(1.0, zero_term, zero_term) < count(1.0, 0.0, 0.0)
    assert repr(zero_term) == "zero_term" and repr(zero_series) == "zero_series"


ERRORS = [
    ((3, (1.0,), ((1.0,),)), TypeError, "jet: Expected a callable value, got 3"),
    ((jnp.sin, 1.0, ((1.0,),)), TypeError, r"primals must be a tuple or a list .* write \(1.0,\)"),
    ((jnp.sin, (1.0,), 1.0), TypeError, "series must be a tuple or a list"),
    ((jnp.sin, (1.0,), (1.0,)), TypeError, r"series of x must be a list or a tuple of its derivatives.*\(1.0,\)"),
    ((jnp.sin, (1.0,), ((1.0,), (1.0,))), ValueError, "1 primals and 2 series"),
    ((lambda x, y: x, (1.0, 1.0), ((1.0,), (1.0, 2.0))), ValueError, "must have one length.*1 for x, 2 for y"),
    ((jnp.sin, (np.ones(2),), ((np.ones(3),),)), ValueError, r"index 0 .*has shape \(3,\); it must have .*\(2,\)"),
    ((jnp.sin, (1.0,), ((1.0, "a"),)), TypeError, "index 1 in the series of x must be an array or a number, got 'a'"),
    ((jnp.sin, (1.0,), ((1j,),)), TypeError, r"is complex.*and the argument real.*astype\(complex128\)"),
    ((jnp.sin, ("a",), ((1.0,),)), TypeError, "argument x of sin: 'a' of type"),
    ((lambda x: "a", (1.0,), ((1.0,),)), TypeError, "returned 'a' of type"),
    ((lambda d: d["a"], ({"a": 1.0},), ([1.0],)), TypeError, r"series\[0\] must have the structure of argument 0"),
]


@pytest.mark.parametrize(("arguments", "kind", "message"), ERRORS)
def test_errors(arguments, kind, message):
    with pytest.raises(kind, match=message):
        jet(*arguments)


def test_tracers_do_not_leak():
    kept = []
    jet(lambda x: kept.append(x) or x, (1.0,), ((1.0,),))
    with pytest.raises(xtrace.errors.UnexpectedTracerError, match="was used after"):
        jnp.sin(kept[0])
    with xtrace.checking_leaks(), pytest.raises(Exception, match=r"[Ll]eaked"):
        jet(lambda x: kept.append(x) or x, (1.0,), ((1.0,),))
    with pytest.raises(xtrace.errors.TracerArrayConversionError, match="has a Taylor series"):
        jet(np.sin, (1.0,), ((1.0,),))


# Rules of users


def _double(name):
    primitive = xtrace.extend.core.Primitive(name)
    primitive.def_impl(lambda x, y: 2 * x * y)
    primitive.def_abstract_eval(lambda x, y: x)
    return primitive


def test_rules_of_users_are_jaxs():
    found = []
    for package, table in ((xtrace, jet_rules), (jax, jax_jet.jet_rules)):
        primitive = package.extend.core.Primitive(f"scaled_{package.__name__}")
        primitive.def_impl(lambda x, y: 2 * x)
        primitive.def_abstract_eval(lambda x, y: x)
        calls = []

        def rule(primals, series, primitive=primitive, calls=calls, **parameters):
            calls.append((primals, series, parameters))
            return primitive.bind(*primals, **parameters), [2 * x for x in series[0]]

        table[primitive] = rule
        assert primitive in table and table[primitive] is rule
        expand = jet if package is xtrace else jax_jet.jet
        array = package.numpy.asarray
        result = expand(lambda x, p=primitive: p.bind(x, x * x), (array(POINT),), ([array(x) for x in CURVE],))
        found.append((result, [x.tolist() for x in calls[0][0]], np.array(calls[0][1]), calls[0][2]))
    assert_close(found[0][:3], found[1][:3])
    assert found[0][3] == found[1][3] == {}


def test_tables_of_rules():
    primitive = _double("double_for_tables")
    assert primitive not in jet_rules and lax.sin_p in jet_rules and lax.scan_p in list(jet_rules)
    with pytest.raises(KeyError):
        jet_rules[primitive]
    message = r"double_for_tables has neither a rule for Taylor series.*jet_rules\[double_for_tables\]"
    with pytest.raises(NotImplementedError, match=message):
        jet(lambda x: primitive.bind(x, x), (1.0,), ((1.0,),))
    jet_rules[primitive] = lambda primals, series: (2 * primals[0], zero_series)
    assert_close(jet(lambda x: primitive.bind(x, x), (1.0,), ((1.0, 2.0),))[1], [jnp.asarray(0.0)] * 2)
    jet_rules[primitive] = lambda primals, series: (2 * primals[0], [zero_term, *series[0][1:]])
    assert_close(jet(lambda x: primitive.bind(x, x), (1.0,), ((1.0, 2.0),))[1], [jnp.asarray(0.0), jnp.asarray(2.0)])
    jet_rules[primitive] = lambda primals, series: (primals[0], [])
    with pytest.raises(ValueError, match="returned 0 coefficients of a result, for operands with 1"):
        jet(lambda x: primitive.bind(x, x), (1.0,), ((1.0,),))
    del jet_rules[primitive]
    assert primitive not in jet_rules
    # A rule of a built-in primitive is one of Taylor coefficients, as users' are.
    value, series = jet_rules[lax.exp_p]((0.0,), ([1.0, 0.0],), accuracy=None)
    assert_close((value, series), (jnp.asarray(1.0), [jnp.asarray(1.0), jnp.asarray(0.5)]))
    assert module.__all__ == ["jet", "jet_rules", "zero_series", "zero_term"]


def test_custom_rules():
    # A jvp rule is followed, also where it states another derivative; a vjp rule has no forward mode.
    straight = xtrace.custom_jvp(jnp.round)
    straight.defjvp(lambda primals, tangents: (straight(*primals), tangents[0] * primals[0]))
    assert_close(jet(straight, (1.4,), ((1.0, 0.0),)), (jnp.asarray(1.0), [jnp.asarray(1.4), jnp.asarray(1.0)]))
    reverse = xtrace.custom_vjp(lambda x: x**3)
    reverse.defvjp(lambda x: (x**3, None), lambda _, t: (t,))
    wanted = jnp.asarray(8.0), [jnp.asarray(12.0), jnp.asarray(12.0)]
    assert_close(jet(reverse, (2.0,), ((1.0, 0.0),)), wanted)
    assert_close(xtrace.jit(lambda x: jet(xtrace.jit(reverse), (x,), ((1.0, 0.0),)))(2.0), wanted)
    mapped = jet(xtrace.vmap(reverse), (np.full(2, 2.0),), ((np.ones(2), np.zeros(2)),))
    assert_close(mapped, xtrace.tree.map(lambda x: jnp.full(2, x), wanted))
    assert_close(xtrace.grad(lambda x: jet(reverse, (x,), ((1.0, 0.0),))[1][1])(2.0), jnp.asarray(6.0))
