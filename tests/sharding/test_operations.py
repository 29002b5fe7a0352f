"""Operations on a mesh: values and derivatives are those of one device, and output shardings those of jax.

The rows are those of the tables of tests/rules, and below what these have not.
"""

import importlib
import pathlib
import zlib

import jax
import numpy as np
import pytest

import xtrace
from tests.differential.sharded_programs import spec_of
from tests.support.operands import assert_same, random_values
from tests.support.values import is_smooth

# Devices 1 to 6; small sizes divide.
AXES = (("x", 3), ("y", 2))
# Rows that are one program.
_TOGETHER = 6


def _of_numpy(row):
    return lambda lax, *operands: row[0](_library(lax).numpy, *operands), *row[1:]


def _rows_of_rules():
    """Return the rows of tests/rules by name: a function of lax and operands, and the operands."""
    found = {}
    for path in sorted((pathlib.Path(__file__).parent.parent / "rules").glob("test_*.py")):
        # Rows of collectives are mapped by their test.
        if path.stem == "test_collective_rules":
            continue
        module = importlib.import_module(f"tests.rules.{path.stem}")
        for table in [name for name, value in vars(module).items() if name.isupper() and isinstance(value, dict)]:
            for name, row in getattr(module, table).items():
                if isinstance(row, tuple) and callable(row[0]) and all(hasattr(x, "dtype") for x in row[1:]):
                    row = _of_numpy(row) if path.stem == "test_indexing_rules" else row
                    found[f"{path.stem}.{table}: {name}"] = row
    return found


X, Y = random_values(np.float32, (6, 4), 1, -2, 2), random_values(np.float32, (4, 6), 2, -2, 2)
V, W = random_values(np.float32, (12,), 3, -2, 2), random_values(np.float32, (7,), 4, -2, 2)
N = random_values(np.int32, (6, 4), 5, -9, 9)
Z = random_values(np.complex64, (6, 4), 6, -2, 2)
B = X.astype("bfloat16")
EMPTY = np.zeros((0, 6), np.float32)
IMAGES, KERNELS = random_values(np.float32, (2, 3, 6, 6), 7, -2, 2), random_values(np.float32, (4, 3, 3, 3), 8, -2, 2)
PLACES = np.array([[0], [5], [2], [5]], np.int32)


def _gather(lax, x, i):
    numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    return lax.gather(x, i, numbers, (1, 4))


def _scatter(name):
    def function(lax, x, i, u):
        numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
        return getattr(lax, name)(x, i, u, numbers)

    return function


def _dot(preferred):
    return lambda lax, x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=preferred)


def _library(lax):
    return xtrace if lax is xtrace.lax else jax


def _with_custom_jvp(lax, x):
    api = _library(lax)

    @api.custom_jvp
    def f(x):
        return lax.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 2))
    return f(x)


def _with_custom_vjp(lax, x):
    api = _library(lax)

    @api.custom_vjp
    def f(x):
        return lax.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, t: (t * x,))
    return f(x)


def _under_checkpoint(lax, x):
    return _library(lax).checkpoint(lambda x: lax.sin(lax.sin(x)))(x)


def _linear_solve(lax, x):
    return lax.custom_linear_solve(lambda v: v * 4, x, lambda matvec, b: b / 4, symmetric=True)


def _with_callback(lax, x):
    return _library(lax).pure_callback(lambda x: np.asarray(x) * 2, _library(lax).ShapeDtypeStruct(x.shape, x.dtype), x)


def _with_prints(lax, x):
    api = _library(lax)
    api.debug.print("", ordered=True)
    api.debug.callback(lambda x: None, x)
    return api.lax.cond(x[0, 0] > 9, lambda x: api.debug.callback(lambda x: None, x) or x, lambda x: x * 2, x)


def _inner_jit(lax, x):
    api = _library(lax)
    inner = api.jit(lambda x: lax.sin(x), inline=False)
    return lax.scan(lambda c, row: (inner(c) + row, inner(row)), x[0], x)


def _random(name, impl, *parameters):
    def function(lax, x):
        api = _library(lax)
        return getattr(api.random, name)(api.random.key(3, impl=impl), *parameters, x.shape) * x

    return function


def _keys(lax, x):
    api = _library(lax)
    keys = api.random.split(api.random.key(1), 6)
    drawn = api.vmap(lambda k: api.random.uniform(k, (4,)))(keys)
    return x * drawn, api.random.key_data(api.random.fold_in(keys[0], 3))


OTHERS = {
    "fft": (lambda lax, x: lax.fft(x, "FFT", (4,)), Z),
    "fft of two axes": (lambda lax, x: lax.fft(x, "FFT", (6, 4)), Z),
    "rfft": (lambda lax, x: lax.fft(x, "RFFT", (4,)), X), "irfft": (lambda lax, x: lax.fft(x, "IRFFT", (6,)), Z),
    "top_k": (lambda lax, x: lax.top_k(x, 2), X), "top_k of a row": (lambda lax, x: lax.top_k(x, 3), V),
    "approx_max_k": (lambda lax, x: lax.approx_max_k(x, 2), X), "sort": (lambda lax, x: lax.sort(x, dimension=0), X),
    "argmax": (lambda lax, x: lax.argmax(x, 0, "int32"), X), "cumsum": (lambda lax, x: lax.cumsum(x, 0), X),
    "cumlogsumexp": (lambda lax, x: lax.cumlogsumexp(x, 1, reverse=True), X),
    "gather": (_gather, X, PLACES), "rev": (lambda lax, x: lax.rev(x, (0, 1)), X),
    **{name: (_scatter(name), X, PLACES, X[:4]) for name in ("scatter", "scatter_add", "scatter_min", "scatter_max")},
    "convolution": (lambda lax, x, k: lax.conv(x, k, (1, 1), "SAME"), IMAGES, KERNELS),
    "strided convolution": (lambda lax, x, k: lax.conv(x, k, (2, 1), "VALID"), IMAGES, KERNELS),
    "convolution in groups": (
        lambda lax, x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", feature_group_count=3), IMAGES,
        KERNELS[:3, :1],
    ),
    "dot": (_dot(None), X, Y), "dot of halves": (_dot("float32"), B, Y.astype("bfloat16")),
    "dot of integers": (_dot("int32"), N.astype("int8"), N.T.astype("int8")), "dot of complex": (_dot(None), Z, Z.T),
    "int4": (lambda lax, x: lax.convert_element_type(lax.convert_element_type(x, "int4") * 2, "int8"), N % 4),
    "bitcast": (lambda lax, x: lax.bitcast_convert_type(x, "uint8"), X), "halves": (lambda lax, x: lax.exp(x) + x, B),
    "an empty array": (lambda lax, x: (lax.sin(x), x.sum(0), x.reshape(0, 3, 2)), EMPTY),
    "sizes that do not divide": (lambda lax, x, y: (lax.sin(x), x[:, None] * y[None], x[2:5]), W, V),
    "a prime reshaped": (lambda lax, x, y: (x[:, None] + y[:6]).reshape(42), W, V),
    "custom_jvp": (_with_custom_jvp, X), "custom_vjp": (_with_custom_vjp, X), "checkpoint": (_under_checkpoint, X),
    "custom_linear_solve": (_linear_solve, X), "inner jits in a scan": (_inner_jit, X),
    "while": (lambda lax, x: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * c + 1, x), X),
    "fori": (lambda lax, x: lax.fori_loop(0, 3, lambda i, c: c.at[i].multiply(2.0), x), X),
    "scan over rows": (lambda lax, x: lax.scan(lambda c, r: (c + r, c * r), x[0], x), X),
    "switch": (lambda lax, x, n: lax.switch(n[0, 0] % 3, [lax.sin, lax.cos, lambda x: x], x), X, N),
    "associative scan": (lambda lax, x: lax.associative_scan(lambda a, b: a * b, x), X),
    "pure_callback": (_with_callback, N), "prints and callbacks": (_with_prints, N), "keys": (_keys, X),
    "uniform, threefry": (_random("uniform", "threefry2x32"), X), "normal, rbg": (_random("normal", "rbg"), X),
    "bits, unsafe_rbg": (_random("bits", "unsafe_rbg"), N.astype("uint32")), "gamma": (_random("gamma", None, 2.0), X),
    "optimization_barrier": (lambda lax, x: lax.optimization_barrier(x), X),
    "mulhi": (lambda lax, x: lax.mulhi(x * 2**20, x * 2**19), N), "erf_inv": (lambda lax, x: lax.erf_inv(x / 4), X),
    "lgamma": (lambda lax, x: lax.lgamma(x), X), "digamma": (lambda lax, x: lax.digamma(x), X),
    "bessel": (lambda lax, x: lax.bessel_i1e(x), X), "igamma": (lambda lax, x: lax.igamma(x * x + 1, x * x), X),
    "nextafter": (lambda lax, x: lax.nextafter(x, x * 2), X), "top_k of integers": (lambda lax, x: lax.top_k(x, 2), N),
    "reduce_precision": (lambda lax, x: lax.reduce_precision(x, 5, 10), X),
    "split": (lambda lax, x: lax.split(x, (1, 5)), X), "tile": (lambda lax, x: lax.tile(x, (2, 1)), X),
    "clamp": (lambda lax, x: lax.clamp(-1.0, x, 1.0), X), "rng_uniform": (lambda lax, x: lax.select(x > 0, x, -x), X),
}
ROWS = {**_rows_of_rules(), **{f"others: {name}": row for name, row in OTHERS.items()}}
_NAMES = list(ROWS)
# XLA has wrong values or none, which ours avoids by gathering an operand, in jax; or there are no shardings to compare.
WITHOUT_JAX = {
    "gradients of largest elements of windows leave out what windows on two devices share":
        ["test_window_rules.CASES: max", "test_window_rules.CASES: max of ties", "test_window_rules.CASES: min"],
    "replicas are added, where the axis of a window or of groups is sharded":
        ["others: convolution", "others: convolution in groups"],
    "XLA cannot reduce over devices by this function": ["test_reduction_rules.FLAT: reduce_and"],
    "XLA's partitioner does not know it": ["others: mulhi", "test_elementwise_rules.BATCHED: mulhi"],
    "ordered effects are refused on several devices": ["others: prints and callbacks"],
    "the result is on one device only": ["others: pure_callback"],
    "the gradient is the random numbers, which nothing says how to shard":
        ["others: keys", "others: uniform, threefry"],
}


def _placed(module, name, operands):
    """Return the operands on a mesh, sharded as the row's name draws."""
    kind = module.sharding
    mesh = kind.Mesh(np.array(module.devices()[1:7]).reshape([n for _, n in AXES]), [a for a, _ in AXES])
    specs = [spec_of(x.shape, AXES, zlib.crc32(f"{name} {i}".encode())) for i, x in enumerate(operands)]
    return [module.device_put(x, kind.NamedSharding(mesh, kind.PartitionSpec(*s)))
            for x, s in zip(operands, specs, strict=True)]


def _value_and_vjp(module, function, operands):
    smooth = [i for i, x in enumerate(operands) if is_smooth(x)]

    def results(*moving):
        full = list(operands)
        for i, x in zip(smooth, moving, strict=True):
            full[i] = x
        return module.tree.leaves(function(module.lax, *full))

    try:
        found, pullback = module.vjp(results, *[operands[i] for i in smooth])
        ones = [module.numpy.ones_like(x) if is_smooth(x) else np.zeros(x.shape, jax.dtypes.float0) for x in found]
        return found, list(pullback(ones))
    except (NotImplementedError, ValueError, TypeError):
        return results(*[operands[i] for i in smooth]), []


def _run(module, names, given):
    return module.jit(lambda given: [_value_and_vjp(module, ROWS[n][0], x) for n, x in zip(names, given, strict=True)])(
        given
    )


def _entries(tree):
    """Return the entries of the sharding of each leaf, one for each dimension."""
    leaves = jax.tree.leaves(tree)
    return [(tuple(x.sharding.spec) + (None,) * x.ndim)[: x.ndim] for x in leaves]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("first", range(0, len(_NAMES), _TOGETHER), ids=lambda i: _NAMES[i])
def test_operations(first):
    names = _NAMES[first : first + _TOGETHER]
    operands = [[np.asarray(x) for x in ROWS[n][1:]] for n in names]
    ours = _run(xtrace, names, [_placed(xtrace, *pair) for pair in zip(names, operands, strict=True)])
    alone = _run(xtrace, names, [[xtrace.numpy.asarray(x) for x in each] for each in operands])
    for name, got, expected in zip(names, ours, alone, strict=True):
        assert_same(xtrace.tree.leaves(got), xtrace.tree.leaves(expected), 256, name, floor=8)
    known = [i for i, n in enumerate(names) if not any(n in group for group in WITHOUT_JAX.values())]
    names = [names[i] for i in known]
    theirs = _run(jax, names, [_placed(jax, n, operands[i]) for n, i in zip(names, known, strict=True)])
    for name, i, other in zip(names, known, theirs, strict=True):
        assert _entries(ours[i]) == _entries(other), name
