"""Functions of whole arrays over hard values, compared with jax: values and cotangents, jitted, of every dtype.

Rows of three numbers that are infinite, NaN, zeros of both signs, the smallest and largest of their dtype; rows of one
number and of none. An ordinary run takes one function in `PARTS`, another one for each commit; --whole-tables takes
all. All bits are compared, of rows with `roundings` those of values that are not finite: a function has no row of the
dtypes whose operations jax does in another order, or wrongly.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy
import jax.scipy.linalg
import jax.scipy.signal
import jax.scipy.special
import jax.scipy.stats
import numpy as np
import pytest
import scipy.linalg
import scipy.special

import xtrace
import xtrace.scipy.linalg
import xtrace.scipy.special
import xtrace.scipy.stats
from tests.differential.test_hard_values import hard_values
from tests.support.operands import ALL, COMPLEX, FLOAT, INTEGER
from tests.support.sampling import number_of_draws
from xtrace._src.core import dtypes

pytestmark = pytest.mark.thorough

PARTS = 12
_TOGETHER = 4
_INEXACT = [*FLOAT, *COMPLEX]
_REAL = [d for d in ALL if d not in COMPLEX]
# LAPACK, the transforms and their batched forms are written for these.
_LAPACK = [FLOAT[0], *COMPLEX]


class Row(NamedTuple):
    """A function of a package and an array, or of two arrays; its dtypes, and how its results are compared."""

    call: Any = None
    dtypes: Sequence[Any] = ALL
    cotangents: bool = True
    # Whether rows of one element and of none are compared.
    one: bool = True
    empty: bool = True
    # How many roundings finite values may be apart, where operations are done in an order of the library's own.
    roundings: int = 0


_ALL, _VALUES, _ONLY_REAL = Row(), Row(cotangents=False), Row(dtypes=_REAL)


def _rows(dtype: Any) -> np.ndarray[Any, Any]:
    """Return rows of three hard values: each of them beside each of a few others."""
    values = hard_values(dtype)
    if dtypes.is_complex(dtype):
        values = values[::4]
    others = values if len(values) < 12 else values[:: len(values) // 12]
    first, second = (x.ravel() for x in np.meshgrid(values, others))
    third = np.resize(values[1::2], first.shape)
    return np.stack([first, third, second], -1)


def _operands(dtype: Any, row: Row) -> list[np.ndarray[Any, Any]]:
    rows = _rows(dtype)
    one, empty = rows[: len(hard_values(dtype)), :1], rows[:2, :0]
    return [rows, *([one] if row.one else []), *([empty] if row.empty else [])]


def _module(package: Any, name: str) -> Any:
    return functools.reduce(getattr, name.split("."), package)


def _family(apply: Callable[..., Any], module: str, names: str, row: Row, **options: Any) -> dict[str, Row]:
    """Return rows of functions, which `apply` calls of a package, the function with its options, and the operand."""
    def called(name: str) -> Callable[..., Any]:
        return lambda p, x: apply(p, functools.partial(getattr(_module(p, module), name), **options), x)

    shown = f"{module}.{{}} of {', '.join(f'{k}={v}' for k, v in options.items())}" if options else f"{module}.{{}}"
    return {shown.format(name): row._replace(call=called(name)) for name in names.split()}


def _last(module: str, names: str, row: Row = _ALL, **options: Any) -> dict[str, Row]:
    """Return rows of functions of the last axis."""
    return _family(lambda p, f, x: f(x), module, names, row, axis=-1, **options)


def _each(module: str, names: str, row: Row = _ALL, *arguments: Any, **options: Any) -> dict[str, Row]:
    """Return rows of functions of a vector, mapped over the rows."""
    return _family(lambda p, f, x: p.vmap(lambda y: f(y, *arguments))(x), module, names, row, **options)


def _pairs(module: str, names: str, row: Row = _ALL, **options: Any) -> dict[str, Row]:
    """Return rows of functions of two vectors: a row of the operand, and another one."""
    return _family(lambda p, f, x: p.vmap(f)(x, _others(p, x)), module, names, row, **options)


def _linear(module: str, names: str, row: Row = _ALL, **options: Any) -> dict[str, Row]:
    """Return rows of functions of matrices."""
    return _family(lambda p, f, x: f(_matrices(x)), module, names, row, **options)


def _others(package: Any, x: Any) -> Any:
    return package.numpy.concatenate([x[7:], x[:7]])


def _matrices(x: Any) -> Any:
    """Return matrices of 2 by 2, with the first of three hard values twice; of fewer, of one column."""
    return x[:, np.array([[0, 1], [2, 0]])] if x.shape[-1] == 3 else x[:, :, None]


_SINGLE = Row(dtypes=FLOAT[:1])
_COMPARED = Row(dtypes=_REAL, cotangents=False)
# Of one element jax's cumulative functions and quantiles compute with the initial value too; NumPy's are the element.
_LONG = Row(one=False)
ROWS: dict[str, Row] = {
    **_last("numpy", "sum prod max min mean var ptp any all count_nonzero median"),
    **_last("numpy", "nansum nanprod nanmax nanmin nanmean nanvar"),
    **_last("numpy", "std nanstd", _SINGLE),
    **_last("numpy", "cumsum nancumsum cumulative_sum nanmedian", _LONG),
    **_last("numpy", "cumprod nancumprod cumulative_prod", _LONG._replace(cotangents=False)),
    **_last("numpy", "argmax argmin nanargmax nanargmin", _COMPARED),
    **_last("numpy", "argsort", _VALUES),
    **_last("numpy", "sort diff trapezoid flip average"),
    **_last("numpy", "unwrap", Row(dtypes=FLOAT)),
    **_last("numpy", "gradient", Row(empty=False)),
    **{k: v for q in (0.0, 0.3, 1.0) for k, v in _last("numpy", "quantile", _ONLY_REAL, q=np.float32(q)).items()},
    **{k: v for method in ("lower", "higher", "nearest", "midpoint") for k, v in {
        **_last("numpy", "percentile", _ONLY_REAL, q=np.float32(40), method=method),
        **_last("numpy", "nanpercentile", Row(dtypes=_REAL, one=False), q=np.float32(40), method=method),
    }.items()},
    **_each("numpy", "ediff1d diag tril"),
    **_each("numpy", "cov", _SINGLE),
    **_each("numpy", "insert", _ALL, 1, 3),
    **_each("numpy", "delete", _ALL, 0, assume_unique_indices=True),
    **_each("numpy", "take", _ALL, np.array([2, -1, 5, 0]), mode="fill"),
    **_each("numpy", "take", _ALL, np.array([2, -1, 5, 0]), mode="wrap"),
    **_each("numpy", "histogram_bin_edges histogram", _COMPARED, 3),
    **_each("numpy", "histogram", _COMPARED, 3, range=(-2, 2)),
    **_each("numpy", "unique nonzero", _VALUES, size=3),
    **_pairs("numpy", "searchsorted digitize", _COMPARED),
    **{k: v for method in ("scan", "sort", "compare_all") for k, v in _pairs(
        "numpy", "searchsorted", _COMPARED, side="right", method=method).items()},
    **_pairs("numpy", "union1d setdiff1d", _VALUES, size=4),
    # Subnormal numbers are 0 where they are compared, and differ where they are sorted.
    **_pairs("numpy", "intersect1d", Row(dtypes=INTEGER, cotangents=False), size=4),
    **_pairs("numpy", "isin array_equal array_equiv allclose", _VALUES),
    **_pairs("numpy", "polysub polymul convolve correlate dot inner outer cross vdot kron append"),
    **_pairs("numpy", "polyadd", Row(dtypes=ALL[1:])),
    "numpy.interp": Row(lambda p, x: p.vmap(lambda y, z: p.numpy.interp(y, p.numpy.sort(z), z))(x, _others(p, x)),
                        [np.dtype(np.float32), np.dtype(np.float16)], cotangents=False),
    # Edges up to an infinity are NaN, between which nothing lies; NumPy refuses them.
    "numpy.histogram2d": Row(lambda p, x: p.vmap(lambda y, z: p.numpy.histogram2d(y, z, 3))(x, _others(p, x)),
                             INTEGER, cotangents=False),
    "numpy.lexsort": Row(lambda p, x: p.numpy.lexsort(x.T), cotangents=False),
    "numpy.sort_complex": Row(lambda p, x: p.numpy.sort_complex(x)),
    "numpy.max of all": Row(lambda p, x: p.numpy.max(x), empty=False),
    # Of integers jax subtracts in their type, which overflows; halves round elsewhere.
    **_last("nn", "softmax log_softmax logsumexp standardize", Row(dtypes=FLOAT[:1])),
    **_last("scipy.special", "logsumexp softmax log_softmax", Row(dtypes=FLOAT[:1])),
    **{f"lax.cum{n}{' reversed' * reverse}": Row(
        lambda p, x, n=n, reverse=reverse: getattr(p.lax, f"cum{n}")(x, axis=1, reverse=reverse),
        one=False, cotangents=n != "prod")
       for n in ("sum", "prod", "max", "min") for reverse in (False, True)},
    **{f"lax.reduce_{n}": Row(lambda p, x, n=n: getattr(p.lax, f"reduce_{n}")(x, axes=(1,)))
       for n in ("sum", "prod", "max", "min", "and", "or", "xor")},
    **{f"lax.reduce_window of {n}": Row(lambda p, x, n=n, start=start: p.lax.reduce_window(
        x, np.array(start, x.dtype), getattr(p.lax, n), (1, 2), (1, 1), "SAME"), _REAL, empty=False)
       for n, start in (("add", 0), ("mul", 1))},
    **{f"lax.reduce_window of {n}": Row(lambda p, x, n=n, start=start: p.lax.reduce_window(
        x, np.array(start, x.dtype), getattr(p.lax, n), (1, 2), (1, 1), "VALID"), FLOAT, empty=False)
       for n, start in (("max", -np.inf), ("min", np.inf))},
    "lax.top_k": Row(lambda p, x: p.lax.top_k(x, 2), _REAL, empty=False),
    "lax.argmax": Row(lambda p, x: p.lax.argmax(x, 1, np.int32), _REAL, empty=False, cotangents=False),
    "lax.sort of two": Row(lambda p, x: p.lax.sort((x, x[:, ::-1]), dimension=1, num_keys=2)),
    **_linear("numpy.linalg", "norm trace matrix_norm vector_norm", Row(dtypes=_INEXACT)),
    **{k: v for o in (0, 1, -1, 2, 3, np.inf, -np.inf) for k, v in _last(
        "numpy.linalg", "norm", Row(dtypes=_INEXACT, empty=False), ord=o).items()},
    **{k: v for o in ("fro", 1, -1, np.inf, -np.inf) for k, v in _linear(
        "numpy.linalg", "norm", Row(dtypes=_INEXACT), ord=o, axis=(-2, -1)).items()},
    # The order in which LAPACK meets a NaN decides what else is NaN: only functions of the same calls are here.
    **_linear("numpy.linalg", "inv", _SINGLE),
    **_linear("scipy.linalg", "inv cholesky lu_factor", _SINGLE._replace(cotangents=False)),
    **_linear("numpy.linalg", "qr svdvals matrix_rank", Row(dtypes=_LAPACK, cotangents=False)),
    **_linear("numpy", "trace"),
    "numpy.linalg.solve": Row(lambda p, x: p.numpy.linalg.solve(_matrices(x), _matrices(x)[:, ::-1]), _LAPACK),
    "scipy.linalg.solve_triangular": Row(lambda p, x: p.vmap(
        lambda a: p.scipy.linalg.solve_triangular(a, a[0], lower=True))(_matrices(x)), FLOAT[:1]),
    "numpy.matmul": Row(lambda p, x: p.numpy.matmul(_matrices(x), _matrices(x)[:, ::-1])),
    "numpy.linalg.matrix_power": Row(lambda p, x: p.numpy.linalg.matrix_power(_matrices(x), 3), _INEXACT),
    **_last("numpy.fft", "fft ifft", Row(dtypes=_LAPACK, empty=False)),
    **_last("numpy.fft", "rfft", Row(dtypes=_LAPACK[:1], empty=False)),
    "numpy.fft.irfft": Row(lambda p, x: p.numpy.fft.irfft(x, n=3), _LAPACK, empty=False),
    "numpy.fft.fftshift": Row(lambda p, x: p.numpy.fft.fftshift(x, axes=1)),
    **_each("scipy.stats", "rankdata mode sem", Row(dtypes=FLOAT, empty=False, cotangents=False)),
    **{f"scipy.stats.{m}.{n}": Row(lambda p, x, m=m, n=n: getattr(_module(p, f"scipy.stats.{m}"), n)(x), FLOAT,
                                   cotangents=n != "cdf")
       for m, names in {"norm": "logpdf pdf cdf", "logistic": "logpdf pdf", "cauchy": "cdf", "expon": "pdf cdf",
                        "laplace": "logpdf pdf cdf", "uniform": "logpdf pdf"}.items() for n in names.split()},
    "image.resize nearest": Row(lambda p, x: p.image.resize(x, (x.shape[0], 5), "nearest"), FLOAT, empty=False),
    "image.resize linear": Row(lambda p, x: p.image.resize(x, (x.shape[0], 5), "linear"), FLOAT[:1], empty=False),
    "nn.one_hot": Row(lambda p, x: p.nn.one_hot(x, 3), INTEGER, cotangents=False),
    "ops.segment_max": Row(lambda p, x: p.ops.segment_max(x, np.arange(x.shape[0]) % 5, 5), _REAL),
    **{f"at.{n}": Row(lambda p, x, n=n: getattr(x.at[:, np.array([0, -1])], n)(x[:1, :1]), _REAL, empty=False)
       for n in ("set", "add", "multiply", "min", "max")},
    **_last("numpy", "nanquantile", Row(dtypes=FLOAT[:1], one=False), q=np.float32(0.3)),
    **_each("numpy", "polyder", Row(dtypes=INTEGER)),
    **_each("numpy", "corrcoef", Row(dtypes=FLOAT[:1], cotangents=False)),
    **_linear("numpy.linalg", "pinv", _SINGLE._replace(cotangents=False)),
    **_linear("numpy.linalg", "eigvalsh cholesky", _SINGLE._replace(cotangents=False, empty=False)),
    **_linear("numpy.linalg", "det", _SINGLE._replace(cotangents=False, one=False, roundings=4)),
    **_linear("scipy.linalg", "det", _SINGLE._replace(cotangents=False, one=False, roundings=4)),
    **{f"ops.segment_{n}": Row(lambda p, x, n=n: getattr(p.ops, f"segment_{n}")(x, np.arange(x.shape[0]) % 5, 5),
                               cotangents=n != "prod") for n in ("sum", "prod")},
    "ops.segment_min": Row(lambda p, x: p.ops.segment_min(x, np.arange(x.shape[0]) % 5, 5), cotangents=False),
    "nn.glu": Row(lambda p, x: p.nn.glu(x[:, :2]), FLOAT[:1], one=False, roundings=4),
    "numpy.choose": Row(lambda p, x: p.numpy.choose(
        np.arange(x.shape[0]) % 2, [x[:, 0], x[:, -1]], mode="clip"), empty=False),
    "lax.cumlogsumexp": Row(lambda p, x: p.lax.cumlogsumexp(x, axis=1), FLOAT[:1], one=False),
    "vjp of lax.cumprod along the last axis": Row(
        lambda p, x: p.vjp(lambda y: p.lax.cumprod(y, axis=-1), x)[1](x), FLOAT[:1], cotangents=False),
    "image.resize cubic": Row(lambda p, x: p.image.resize(x, (x.shape[0], 5), "cubic"), FLOAT[:1], empty=False),
    "scipy.stats.cauchy.pdf": Row(lambda p, x: p.scipy.stats.cauchy.pdf(x), FLOAT[:1], roundings=4),
    "scipy.stats.cauchy.logpdf": Row(lambda p, x: p.scipy.stats.cauchy.logpdf(x), FLOAT, roundings=4),
    "scipy.stats.logistic.cdf": Row(lambda p, x: p.scipy.stats.logistic.cdf(x), FLOAT, cotangents=False, roundings=4),
    "numpy.histogramdd": Row(lambda p, x: p.vmap(lambda y: p.numpy.histogramdd(y[:, None], 3, range=[(-2, 2)])[0])(x),
                             _REAL, cotangents=False),
    **_pairs("scipy.signal", "convolve correlate", Row(dtypes=FLOAT[:1], empty=False, roundings=4), method="direct"),
    **_pairs("scipy.signal", "convolve", Row(dtypes=FLOAT[:1], empty=False, roundings=4), method="direct", mode="same"),
    **_linear("numpy.linalg", "slogdet", _SINGLE._replace(cotangents=False, empty=False, roundings=4)),
    **_last("numpy.fft", "ihfft", Row(dtypes=_LAPACK[:1], empty=False)),
    "numpy.fft.hfft": Row(lambda p, x: p.numpy.fft.hfft(x, n=3), _LAPACK, empty=False),
    **_each("numpy", "vander", Row(dtypes=INTEGER, empty=False)),
    **{f"numpy.histogram of {edges}": Row(lambda p, x, edges=edges: p.vmap(
        lambda y: p.numpy.histogram(y, np.array(edges, np.float32), density=True)[0])(x), FLOAT[:1], cotangents=False)
       for edges in ((0, 1, np.inf), (-np.inf, 0, 2))},
    "numpy.compress": Row(lambda p, x: p.numpy.compress([True], x, axis=1), empty=False),
}


def _is_inexact(x: Any) -> bool:
    return dtypes.is_inexact(np.dtype(x.dtype))


def _outcome(package: Any, row: Row, x: Any, cotangents: bool) -> Any:
    """Return the flat results, or the cotangent of the operand for cotangents of 1; the class of an error."""
    def found(y: Any) -> Any:
        return package.tree.leaves(row.call(package, y))

    try:
        if not cotangents:
            return found(x)
        results, pullback = package.vjp(lambda y: [z for z in found(y) if _is_inexact(z)], x)
        return list(pullback([package.numpy.ones(y.shape, y.dtype) for y in results]))
    except (TypeError, ValueError, NotImplementedError, AttributeError, IndexError) as error:
        return type(error)


def _outcomes(package: Any, calls: Sequence[tuple[Row, Any, bool]]) -> list[Any]:
    """Return the outcomes of calls, which are one program."""
    traced: list[Any] = []

    def whole(operands: Any) -> Any:
        traced[:] = [_outcome(package, row, x, c) for (row, _, c), x in zip(calls, operands, strict=True)]
        return [[] if isinstance(found, type) else found for found in traced]

    results = package.jit(whole)([x for _, x, _ in calls])
    return [t if isinstance(t, type) else found for t, found in zip(traced, results, strict=True)]


def _comparable(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return real parts and imaginary parts along a last axis, in double precision."""
    parts = [x.real, x.imag] if np.iscomplexobj(x) else [x]
    return np.stack([np.asarray(part, np.float64) for part in parts], -1)


def _differences(got: Any, expected: Any, call: str, operand: Any, roundings: int = 0) -> list[str]:
    if isinstance(expected, type) or isinstance(got, type):
        return [] if isinstance(expected, type) == isinstance(got, type) else [f"{call}: {got}, jax {expected}"]
    if len(got) != len(expected):
        return [f"{call}: {len(got)} results, jax has {len(expected)}"]
    found = []
    for one, other in zip(map(np.asarray, got), map(np.asarray, expected), strict=True):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            found.append(f"{call}: {one.dtype}{one.shape}, jax has {other.dtype}{other.shape}")
            continue
        a, b = _comparable(one), _comparable(other)
        with np.errstate(invalid="ignore"):
            equal = ((a == b) & (np.signbit(a) == np.signbit(b))) | ((a != a) & (b != b))
            if roundings and _is_inexact(other):
                info = dtypes.finfo(other.dtype)
                near = np.abs(a - b) <= roundings * float(info.eps) * np.maximum(np.abs(b), float(info.tiny))
                equal |= near & np.isfinite(a) & np.isfinite(b)
        if not equal.all():
            at = np.unravel_index(int(np.argmax(~equal)), equal.shape)[:-1]
            mapped = bool(at) and one.shape[0] == operand.shape[0]
            at, where = (at[:1], operand[at[0]]) if mapped else (at, "…")
            found.append(f"{call}({where}) and {(~equal).sum() - 1} more: {one[at]}, jax has {other[at]}")
    return found


def _check(names: Sequence[str]) -> None:
    calls = [
        (name, x, c)
        for name in names for dtype in ROWS[name].dtypes for x in _operands(dtype, ROWS[name])
        for c in (False, True) if not c or (ROWS[name].cotangents and dtypes.is_inexact(dtype))
    ]
    got, expected = (_outcomes(package, [(ROWS[n], x, c) for n, x, c in calls]) for package in (xtrace, jax))
    found: list[str] = []
    for (name, x, cotangents), one, other in zip(calls, got, expected, strict=True):
        call = f"{'vjp of ' if cotangents else ''}{name} {x.dtype.name}"
        found += _differences(one, other, call, x, ROWS[name].roundings)
    assert not found, "\n".join(found)


NAMES = list(ROWS)


@pytest.mark.drawn(0.2)
@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(NAMES), _TOGETHER * PARTS), ids=lambda i: f"from {NAMES[i]}")
def test_hard_arrays_give_in_jax_and_here_the_same(first: int, pytestconfig: pytest.Config) -> None:
    number = number_of_draws(pytestconfig.getoption("sample_seed"))
    parts = range(PARTS) if pytestconfig.getoption("whole_tables") else [number % PARTS]
    for part in parts:
        _check(NAMES[first + part : first + _TOGETHER * PARTS : PARTS])


# Where jax is wrong, or depends on how the call is batched, NumPy and SciPy say what is right.


def _assert_same_kinds(got: Any, expected: np.ndarray[Any, Any]) -> None:
    """Compare what is NaN, what is infinite with which sign, and finite numbers up to the roundings of three steps."""
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(np.asarray(got), expected, rtol=16 * np.finfo(expected.dtype).eps, atol=1e-37)


def _float_rows() -> list[np.ndarray[Any, Any]]:
    """Return triples of numbers that are infinite, NaN, zero or finite."""
    kinds = np.array([0, 1, -2.5, np.inf, -np.inf, np.nan], np.float32)
    return list(np.stack([x.ravel() for x in np.meshgrid(kinds, kinds, kinds)], -1))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_polynomials_of_infinite_zeros_are_NaN_only_where_infinities_meet() -> None:
    rows = _float_rows()
    found = xtrace.jit(xtrace.vmap(xtrace.numpy.poly))(np.stack(rows))
    _assert_same_kinds(found, np.stack([np.poly(row) for row in rows]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_remainder_of_a_division_is_not_finite_where_a_coefficient_is_not() -> None:
    def divided(u: np.ndarray[Any, Any], v: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        rest, quotient = u.copy(), np.zeros(len(u) - len(v) + 1, u.dtype)
        for k in range(len(quotient)):
            quotient[k] = rest[k] / v[0]
            rest[k : k + len(v)] -= quotient[k] * v
        return quotient, rest

    rows, divisor = _float_rows(), np.array([2, 4], np.float32)
    quotients, rests = xtrace.jit(xtrace.vmap(lambda u: xtrace.numpy.polydiv(u, divisor)))(np.stack(rows))
    expected = [divided(row, divisor) for row in rows]
    _assert_same_kinds(quotients, np.stack([q for q, _ in expected]))
    _assert_same_kinds(rests, np.stack([r for _, r in expected]))


@pytest.mark.parametrize("dtype", FLOAT, ids=str)
def test_an_integral_of_a_polynomial_is_rounded_once(dtype: Any) -> None:
    p = np.array([2.5, 7, -3, 11], dtype)
    expected = np.polyint(p.astype(np.float64)).astype(dtype)
    assert np.asarray(xtrace.numpy.polyint(p)).tolist() == expected.tolist()


@pytest.mark.parametrize("beside", [np.nan, np.inf])
def test_a_matrix_that_is_not_finite_leaves_exponentials_beside_it_as_they_are(beside: float) -> None:
    a = np.array([[1.5, -10], [0, 1.5]], np.float32)
    found = xtrace.scipy.linalg.expm(np.stack([a, np.full((2, 2), beside, np.float32)]))
    np.testing.assert_allclose(np.asarray(found[0]), scipy.linalg.expm(a), rtol=1e-5, atol=1e-5)
    assert np.isnan(np.asarray(found[1])).all()


def test_the_density_of_a_large_half_precision_number_has_the_derivative_zero() -> None:
    assert xtrace.grad(xtrace.scipy.stats.cauchy.pdf)(np.float16(65504)) == 0


def test_uniform_probabilities_rise_up_to_both_ends_and_are_NaN_of_NaN() -> None:
    slopes = xtrace.vmap(xtrace.grad(xtrace.scipy.stats.uniform.cdf))(np.array([-0.5, 0, 1, 1.5], np.float32))
    assert np.asarray(slopes).tolist() == [0, 1, 1, 0]
    assert np.isnan(xtrace.scipy.stats.uniform.cdf(np.float32(np.nan)))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", [bool, np.int32, np.float32], ids=str)
def test_segments_of_no_elements_are_empty(name: str, dtype: Any) -> None:
    def reduced(x: Any) -> Any:
        return getattr(xtrace.ops, f"segment_{name}")(x, np.array([0, 1, 0, 1]), 2)

    x = np.ones((4, 0), dtype)
    assert (reduced(x).shape, reduced(x).dtype) == ((2, 0), np.dtype(dtype))
    if dtype is np.float32:
        assert xtrace.vjp(reduced, x)[1](reduced(x))[0].shape == (4, 0)


@pytest.mark.parametrize("dtype", [d for d in INTEGER if d.kind == "u"], ids=str)
def test_positions_at_the_end_of_an_unsigned_type_are_behind_the_array(dtype: Any) -> None:
    positions = np.array([0, np.iinfo(dtype).max, np.iinfo(dtype).max // 2 + 1], dtype)
    x = np.arange(3)
    assert np.asarray(xtrace.numpy.insert(x, positions, np.array([7, 8, 9]))).tolist() == [7, 0, 1, 2, 8, 9]
    assert np.asarray(xtrace.numpy.insert(x, positions[1], 8)).tolist() == [0, 1, 2, 8]


@pytest.mark.parametrize("dtype", INTEGER, ids=str)
def test_positions_of_narrow_types_are_deleted_from_longer_arrays(dtype: Any) -> None:
    x, positions = np.arange(300), np.array([1, 100, 127], dtype)
    found = xtrace.numpy.delete(x, positions, assume_unique_indices=True)
    assert np.asarray(found).tolist() == np.delete(x, positions).tolist()


@pytest.mark.parametrize("dtype", FLOAT, ids=str)
def test_mantissas_of_subnormal_numbers_are_at_least_a_half(dtype: Any) -> None:
    info = dtypes.finfo(dtype)
    x = np.array([info.smallest_subnormal, info.tiny, -info.smallest_subnormal, 0.0, -0.0], dtype)
    mantissa, exponent = (np.asarray(part) for part in xtrace.numpy.frexp(x))
    expected = np.frexp(x.astype(np.float64))
    assert mantissa.astype(np.float64).tolist() == expected[0].tolist() and exponent.tolist() == expected[1].tolist()


def test_the_incomplete_beta_function_of_large_parameters_is_that_of_scipy() -> None:
    large = np.array([2.0**20, 2.0**31 - 128, 2.0**31, 2.0**40], np.float32)
    small = np.array([0.5, 2, 5, 30], np.float32)[:, None]
    generator = np.random.default_rng(0)
    a, b, x = (10 ** generator.uniform(*ends, 400).astype(np.float32) for ends in ((-2, 1), (2, 8), (-8, 0)))
    for operands in ((small, large, small / large), (large, small, np.float32(1 - 2.0**-20)), (a, b, x)):
        expected = scipy.special.betainc(*[y.astype(np.float64) for y in operands])
        np.testing.assert_allclose(np.asarray(xtrace.scipy.special.betainc(*operands)), expected, atol=2e-5)
