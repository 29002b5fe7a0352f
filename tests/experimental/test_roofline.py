"""Rooflines: the numbers of jax for programs of one operation and of several, and what only we count."""

import contextlib
import io

import jax
import jax.extend.core
import numpy as np
import pytest

import xtrace
import xtrace.lax
import xtrace.numpy as jnp
from tests.support.elementwise_operations import LAX, in_jax
from tests.support.jax_modules import import_jax_module
from tests.support.rules import Library
from xtrace.experimental import roofline as module
from xtrace.experimental.roofline import (
    RooflineResult,
    RooflineShape,
    register_roofline,
    register_standard_roofline,
    roofline,
    roofline_and_grad,
)

THEIR_MODULE = import_jax_module("jax.experimental.roofline")
OURS = Library(xtrace, xtrace.lax, xtrace.numpy, np.asarray)
THEIRS = Library(jax, jax.lax, jax.numpy, np.asarray)

X = np.ones((4, 6), np.float32)
Y = np.ones((6, 5), np.float32)
HALF = X.astype(np.float16)
INDICES = np.array([[0], [2], [9]], np.int32)
UPDATES = np.ones((3, 6), np.float32)
IMAGE, KERNEL = np.ones((2, 3, 8, 8), np.float32), np.ones((6, 3, 3, 3), np.float32)


def _gathered(mode):
    def function(m, x, i):
        numbers = m.lax.GatherDimensionNumbers((1,), (0,), (0,))
        return m.lax.gather(x, i, numbers, (1, 3), mode=mode)

    return function


def _scattered(name):
    def function(m, x, i, u):
        return getattr(m.lax, name)(x, i, u, m.lax.ScatterDimensionNumbers((1,), (0,), (0,)), mode="clip")

    return function


def _convolved(strides, padding, **details):
    return lambda m, x, k: m.lax.conv_general_dilated(x, k, strides, padding, **details)


PROGRAMS = {
    **{
        row.name: (
            lambda m, *xs, row=row: row.call(m.lax, *xs),
            *[x.astype(row.dtypes[0]) if X.dtype not in row.dtypes else x for x in (X, 2 * X)][: row.operands],
        )
        for row in in_jax(LAX) if not row.keywords and not row.name.endswith("_p") and row.operands < 3
    },
    "bitwise_not": (lambda m, x: m.lax.bitwise_not(x), X > 0),
    "nothing": (lambda m, x: x, X),
    "constant": (lambda m, x: 1.0, X),
    "unread": (lambda m, x: (m.lax.sin(x), x)[1], X),
    "chain": (lambda m, x: m.lax.sin(m.lax.cos(x)) * x, X),
    "scalar": (lambda m, x: x + 1, X),
    "half": (lambda m, x: x * x, HALF),
    "complex": (lambda m, x: m.lax.conj(x) * m.lax.complex(m.lax.real(x), m.lax.imag(x)), X.astype(np.complex64)),
    "integer_pow": (lambda m, x: x**5, X),
    "known": (lambda m, x: x * np.ones((4, 6), np.float32), X),
    "dot": (lambda m, x, y: m.lax.dot(x, y), X, Y),
    "dot of halves": (lambda m, x: m.lax.dot(x, x.T, preferred_element_type=np.float32), HALF),
    "dots": (lambda m, x, y: m.lax.dot(m.lax.dot(m.lax.sin(x), y), y.T), X, Y),
    "batched dot": (lambda m, x: m.lax.dot_general(x, x, (((1,), (1,)), ((0,), (0,)))), X),
    "conv": (_convolved((1, 1), "SAME"), IMAGE, KERNEL),
    "strided conv": (_convolved((2, 1), "SAME"), IMAGE, KERNEL),
    "dilated conv": (_convolved((1, 1), "VALID", rhs_dilation=(2, 3)), IMAGE, KERNEL),
    "transposed conv": (_convolved((1, 1), [(2, 1), (0, 2)], lhs_dilation=(2, 3)), IMAGE, KERNEL),
    "grouped conv": (_convolved((1, 1), "SAME", feature_group_count=3), IMAGE, KERNEL[:, :1]),
    "conv of groups of a batch": (_convolved((1, 1), "SAME", batch_group_count=2), IMAGE, KERNEL),
    "conv of channels last": (
        _convolved((1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), IMAGE.transpose(0, 2, 3, 1),
        KERNEL.transpose(2, 3, 1, 0),
    ),
    **{f"gather {mode}": (_gathered(mode), X, INDICES) for mode in ("fill", "clip", "promise_in_bounds")},
    **{
        name: (_scattered(name), X, INDICES, UPDATES)
        for name in ("scatter", "scatter_add", "scatter_max", "scatter_min", "scatter_mul", "scatter_sub")
    },
    **{
        f"{name} {axis}": (lambda m, x, name=name, axis=axis: getattr(m.lax, name)(x, axis), X)
        for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp") for axis in (0, 1)
    },
    "sum": (lambda m, x: m.lax.reduce_sum(x, (0,)), X),
    "largest": (lambda m, x: m.lax.reduce_max(x, (0,)), X),
    "select": (lambda m, x: m.lax.select_n(x > 0, x, m.lax.sin(x)), X),
    "shapes": (lambda m, x: m.lax.rev(m.lax.transpose(m.lax.reshape(x, (6, 4)), (1, 0)), (0,)), X),
    "broadcast": (lambda m, x: m.lax.broadcast(x, (3,)) + 1, X),
    "pad": (lambda m, x: m.lax.pad(x, np.float32(0), [(1, 1, 0), (0, 0, 1)]), X),
    "sort": (lambda m, x: m.lax.sort(x), X),
    "cond": (lambda m, x: m.lax.cond(x[0, 0] > 0, m.lax.sin, m.lax.cos, x), X),
    "while": (lambda m, x: m.lax.while_loop(lambda c: c[0, 0] < 3, m.lax.sin, x), X),
    "scan": (lambda m, x: m.lax.scan(lambda c, y: (m.lax.sin(c) + y, c), x[0], x), X),
    "jit": (lambda m, x: m.api.jit(lambda x: m.lax.sin(x) * 2)(x), X),
    "remat": (lambda m, x: m.api.checkpoint(lambda x: m.lax.sin(x) * 2)(x), X),
    "grad": (lambda m, x: m.api.grad(lambda x: m.lax.reduce_sum(m.lax.sin(x), (0, 1)))(x), X),
}


def counted(result):
    """The numbers of a result of either package."""
    fields = ["flops", "unfused_flops", "hbm_bytes", "unfused_hbm_bytes", "peak_hbm_bytes"]
    by_axis = [dict(sorted(getattr(result, name).items())) for name in ("ici_bytes", "ici_latency")]
    return [getattr(result, name) for name in fields] + by_axis


def theirs(function, *args, **details):
    """What jax counts; it prints the equations that it has no rule for."""
    with contextlib.redirect_stdout(io.StringIO()):
        shapes, result = THEIR_MODULE.roofline(function, **details)(*args)
    return shapes, result


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_count_as_in_jax(name):
    function, *operands = PROGRAMS[name]
    shapes, result = roofline(lambda *args: function(OURS, *args))(*operands)
    their_shapes, expected = theirs(lambda *args: function(THEIRS, *args), *operands)
    assert counted(result) == counted(expected)
    for mine, other in zip(xtrace.tree.leaves(shapes), jax.tree.leaves(their_shapes), strict=True):
        assert (mine.shape, mine.dtype) == (other.shape, other.dtype)


@pytest.mark.parametrize(("lhs", "rhs"), [(True, False), (False, True), (True, True)])
def test_operands_in_fast_memory(lhs, rhs):
    details = {"pin_lhs_in_vmem": lhs, "pin_rhs_in_vmem": rhs}
    found = roofline(xtrace.lax.dot, **details)(X, Y)[1]
    assert counted(found) == counted(theirs(jax.lax.dot, X, Y, **details)[1])


# Collectives: functions of shards, and the axes that the results are whole along.

COLLECTIVES = {
    "psum x": (lambda m, a: m.lax.psum(a, "x"), "x"),
    "psum y": (lambda m, a: m.lax.psum(a, "y"), "y"),
    "psum xy": (lambda m, a: m.lax.psum(a, ("x", "y")), "xy"),
    "pmax x": (lambda m, a: m.lax.pmax(a, "x"), "x"),
    "pmin xy": (lambda m, a: m.lax.pmin(a, ("x", "y")), "xy"),
    "all_gather x": (lambda m, a: m.lax.all_gather(a, "x", tiled=True), ""),
    "all_gather y": (lambda m, a: m.lax.all_gather(a, "y"), ""),
    "all_gather xy": (lambda m, a: m.lax.all_gather(a, ("x", "y"), tiled=True), ""),
    "psum_scatter x": (lambda m, a: m.lax.psum_scatter(a, "x", tiled=True), ""),
    "psum_scatter xy": (lambda m, a: m.lax.psum_scatter(a, ("x", "y"), tiled=True), ""),
    "all_to_all x": (lambda m, a: m.lax.all_to_all(a, "x", 1, 0, tiled=True), ""),
    "all_to_all xy": (lambda m, a: m.lax.all_to_all(a, ("x", "y"), 1, 0, tiled=True), ""),
    "sin": (lambda m, a: m.lax.sin(a), ""),
    "sin of a sum": (lambda m, a: m.api.jit(lambda a: m.lax.sin(m.lax.psum(a, "x")))(a), "x"),
}


def _mapped(package, mesh, whole):
    spec = package.sharding.PartitionSpec
    return {
        "mesh": package.sharding.AbstractMesh(mesh, ("x", "y")), "in_specs": spec("x", "y"),
        "out_specs": spec(*[None if axis in whole else axis for axis in ("x", "y")]),
    }


@pytest.mark.parametrize("mesh", [(2, 2), (3, 2), (8, 4), (4, 4)])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_count_as_in_jax(name, mesh):
    function, whole = COLLECTIVES[name]
    count = mesh[0] * mesh[1]
    found = roofline(lambda a: function(OURS, a), **_mapped(xtrace, mesh, whole))(
        xtrace.ShapeDtypeStruct((count * mesh[0], count * mesh[1]), np.float32)
    )[1]
    given = jax.ShapeDtypeStruct((count * mesh[0], count * mesh[1]), np.float32)
    expected = theirs(lambda a: function(THEIRS, a), given, **_mapped(jax, mesh, whole))[1]
    assert counted(found) == counted(expected)


PERMUTATIONS = [
    (8, [(i, (i + shift) % 8) for i in range(8)]) for shift in range(1, 8)
] + [
    (8, [(i, 7 - i) for i in range(8)]), (8, [(0, 4), (4, 0)]), (8, [(0, 4), (1, 3)]), (6, [(3, 0), (4, 5)]),
    (6, [(3, 0), (1, 2)]), (2, [(0, 1), (1, 0)]), (4, []), (4, [(0, 0)]),
]


def _count_permutation(axes, mesh, permutation):
    """What both packages count for a permutation of shards of 100 bytes."""
    counts = []
    for package in (xtrace, jax):
        def shift(a, package=package):
            return package.lax.ppermute(a, axes, permutation)

        given = package.ShapeDtypeStruct((mesh[0], 25 * mesh[1]), np.float32)
        details = _mapped(package, mesh, "")
        result = roofline(shift, **details)(given) if package is xtrace else theirs(shift, given, **details)
        counts.append(counted(result[1]))
    return counts


@pytest.mark.parametrize(("size", "permutation"), PERMUTATIONS)
def test_permutations_count_as_in_jax(size, permutation):
    found, expected = _count_permutation("x", (size, 2), permutation)
    assert found == expected


@pytest.mark.parametrize("permutation", [[(i, (i + 1) % 16) for i in range(16)], [(0, 5), (4, 6), (1, 9)]])
def test_permutations_of_two_axes(permutation):
    found, expected = _count_permutation(("x", "y"), (4, 4), permutation)
    assert found == expected


# Gradients


def test_gradients_count_as_in_jax():
    # jax takes a cotangent of dtype bfloat16 whatever the result is.
    x = jnp.ones((4, 6), jnp.bfloat16)
    given = jax.numpy.ones((4, 6), jax.numpy.bfloat16)
    for name, function in {"sin": lambda m, x: m.lax.sin(x) * 2, "dot": lambda m, x: m.lax.dot(x, x.T)}.items():
        found = roofline(lambda x, f=function: f(OURS, x), vjp=True)(x)
        expected = theirs(lambda x, f=function: f(THEIRS, x), given, vjp=True)
        assert (name, counted(found[1])[:4]) == (name, counted(expected[1])[:4])
        assert [s.shape for s in found[0]] == [(4, 6)]
    of_ours, of_theirs = _mapped(xtrace, (4, 2), "x"), _mapped(jax, (4, 2), "x")
    mine = roofline_and_grad(lambda a: xtrace.lax.psum(xtrace.lax.sin(a), "x"), *of_ours.values())(x)
    other = THEIR_MODULE.roofline_and_grad(lambda a: jax.lax.psum(jax.lax.sin(a), "x"), *of_theirs.values())(given)
    assert mine[0].shape == other[0].shape
    assert [counted(r) for r in mine[1:]] == [counted(r) for r in other[1:]]
    assert roofline(xtrace.lax.sin, vjp=True)(X)[1].unfused_flops == 3 * X.size


# What only we count


def test_values_around_a_call_are_in_use_too():
    # Three arrays of 96 bytes in the call, and x, which is read after it; jax counts those in the call.
    inner = xtrace.jit(lambda y: xtrace.lax.broadcast(y, (3,)).sum(0))
    assert roofline(lambda x: x + inner(x))(X)[1].peak_hbm_bytes == 4 * X.nbytes
    # jax frees an operand that is read twice twice.
    assert roofline(lambda x: xtrace.lax.concatenate([x, x], 0))(X)[1].peak_hbm_bytes == 2 * X.nbytes


def test_functions_of_shards_in_programs_count():
    mesh, spec = xtrace.make_mesh((1,), ("x",), axis_types=xtrace.sharding.AxisType.Auto), xtrace.P("x")
    out = xtrace.P()
    mapped = xtrace.shard_map(lambda a: xtrace.lax.psum(jnp.sin(a), "x"), mesh=mesh, in_specs=spec, out_specs=out)
    result = roofline(lambda x: mapped(x) + 1)(X)[1]
    assert result.unfused_flops == 2 * X.size and result.ici_bytes == {"x": 0}


def test_programs_are_printed(capsys):
    roofline(xtrace.lax.sin, print_jaxpr=True)(X)
    assert "sin a" in capsys.readouterr().out


def test_results_and_shapes():
    first = RooflineResult(flops=3, ici_bytes={"x": 3}, peak_hbm_bytes=5)
    other = RooflineResult(flops=4, ici_bytes={"x": 1, "y": 2}, ici_latency={"x": 1}, peak_hbm_bytes=7)
    total = first + other
    assert counted(total) == [7, 0, 0, 0, 7, {"x": 4, "y": 2}, {"x": 1}]
    assert first * 2 == 2 * first == RooflineResult(flops=6, ici_bytes={"x": 6}, peak_hbm_bytes=10)
    assert RooflineResult.zeros() == RooflineResult()
    with pytest.raises(TypeError):
        first + 1
    with pytest.raises(TypeError):
        first * "a"
    aval = xtrace.core.ShapedArray((2, 3), np.dtype(np.float32))
    shape = RooflineShape.from_aval(aval)
    assert (shape.size, shape.bytes, RooflineShape.total_bytes([aval, aval])) == (6, 24, 48)
    assert shape == RooflineShape(shape=(2, 3), dtype=np.dtype(np.float32))
    with pytest.raises(TypeError, match="expected the type of an array, got 3"):
        RooflineShape.from_aval(3)
    key = xtrace.typeof(xtrace.random.key(0))
    assert RooflineShape.from_aval(key).bytes == 8


def test_rules_of_users():
    primitive = xtrace.extend.core.Primitive("counted_by_a_user")
    primitive.def_abstract_eval(lambda x, **_: x)
    seen = []

    @register_roofline(primitive)
    def rule(context, *shapes, **parameters):
        seen.append((context, shapes, parameters))
        return RooflineResult(flops=7, hbm_bytes=shapes[0].bytes)

    with xtrace.named_scope("outer"):
        result = roofline(lambda x: primitive.bind(primitive.bind(x, n=3) + 1, n=2))(X)[1]
    assert (result.flops, result.hbm_bytes, result.unfused_flops) == (14, 2 * X.nbytes, X.size)
    context, shapes, parameters = seen[0]
    assert (shapes[0].shape, parameters, context.primitive) == (X.shape, {"n": 3}, primitive)
    assert context.avals_in[0] == context.avals_out[0] and context.mesh is None
    register_standard_roofline(primitive)
    assert roofline(lambda x: primitive.bind(x))(X)[1] == RooflineResult(peak_hbm_bytes=X.nbytes)
    register_roofline(primitive)(lambda context, *shapes: 3)
    with pytest.raises(TypeError, match="rule of counted_by_a_user must return a RooflineResult, got 3"):
        roofline(lambda x: primitive.bind(x))(X)
    for register in (register_roofline, register_standard_roofline):
        with pytest.raises(TypeError, match="prim must be a primitive"):
            register(3)


def test_errors():
    with pytest.raises(TypeError, match="roofline: Expected a callable value, got 3"):
        roofline(3)
    with pytest.raises(TypeError, match="'a'"):
        roofline(jnp.sin)("a")
    assert len(module.__all__) == 7
