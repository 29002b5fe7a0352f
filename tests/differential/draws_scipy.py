"""Rows of scipy's functions, random numbers, trees and dtypes, of which a run draws a part."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.differential.arguments import INTEGERS, PLAIN, REAL, axis, family, given_as, operand, options, sampled
from tests.support.draws import Operand, Row, numbers
from tests.support.operands import seeds

_VALUE = ("value",)
_BATCHED = ("value", "vmap")
_ALL = ("value", "vjp", "vmap")
_FLOATS = [np.dtype(np.float32)] * 3 + [np.dtype(np.float64), np.dtype(np.float16)]
_WIDE = [np.dtype(np.float32), np.dtype(np.float64)]
_LOCATED = {"loc": sampled(0.5, -1, 0), "scale": sampled(2, 0.25)}


def _array(kind: str = "quarters", shapes: Any = ((3,), (2, 3), ()), dtypes: Any = _FLOATS) -> Any:
    return operand(dtypes, shapes, kind, PLAIN)


def _counts(shapes: Any = ((3,), ())) -> Any:
    return operand(INTEGERS[2:3], shapes, "quarters", PLAIN)


def density(functions: str, *kinds: str, located: str = "loc scale", **changes: Any) -> dict[str, Row]:
    """Return the row of functions of a distribution: of an argument, parameters, the location and the scale."""
    strategy = given_as(*map(_array, kinds), **{name: _LOCATED[name] for name in located.split()})
    return family(functions, Row(strategy, **{"modes": _ALL, "rounding": 64, "floor": 4.0} | changes))


def counted(functions: str, *parameters: Any, **changes: Any) -> dict[str, Row]:
    """Return the row of functions of a distribution of integers."""
    strategy = given_as(_counts(), *parameters, loc=sampled(1, 0))
    return family(functions, Row(strategy, **{"modes": _BATCHED, "rounding": 256, "floor": 8.0} | changes))


def _of(distribution: str, functions: str) -> str:
    return " ".join(f"{distribution}.{function}" for function in functions.split())


_PLAIN = "pdf logpdf cdf"
_TAILS = f"{_PLAIN} logcdf sf logsf"
_GAMMA = {"modes": _VALUE, "rounding": 512, "floor": 8.0}
_PROBABILITY = operand(_FLOATS, [(3,), ()], "unit", PLAIN)
STATS: dict[str, Row] = {
    **density(_of("norm", _TAILS), "quarters"), **density(_of("norm", "ppf isf"), "unit"),
    **density(_of("cauchy", _TAILS), "quarters"),
    # A tangent near its pole multiplies the rounding of the angle by its own size.
    **density(_of("cauchy", "ppf isf"), "unit", rounding=1024),
    **density(_of("gumbel_l", _TAILS), "quarters"), **density(_of("gumbel_r", _TAILS), "quarters"),
    # Reverse mode through these is an error in jax.
    **density("gumbel_l.ppf gumbel_r.ppf", "unit", modes=_BATCHED),
    **density(_of("expon", _TAILS), "positive"), **density(_of("expon", "ppf"), "unit"),
    **density(_of("logistic", "pdf logpdf cdf sf"), "quarters"), **density(_of("logistic", "ppf isf"), "unit"),
    **density(_of("laplace", _PLAIN), "quarters"),
    **density(_of("uniform", _PLAIN), "unit"), **density("uniform.ppf", "unit"),
    # Where x is the location, jax has no slope.
    **density(_of("pareto", _TAILS), "positive", "positive", modes=_BATCHED),
    **density("pareto.ppf", "unit", "positive"),
    **density(_of("t", "pdf logpdf"), "quarters", "positive"),
    **density(_of("vonmises", "pdf logpdf"), "quarters", "positive", located=""),
    **density(_of("wrapcauchy", "pdf logpdf"), "quarters", "unit", located=""),
    **density(_of("beta", _TAILS), "unit", "positive", "positive", **_GAMMA),
    **density(_of("gamma", _TAILS), "positive", "positive", **_GAMMA),
    **density(_of("chi2", _TAILS), "positive", "positive", **_GAMMA),
    **density(_of("gennorm", _PLAIN), "quarters", "positive", located="", **_GAMMA),
    **counted(_of("bernoulli", "pmf logpmf"), _PROBABILITY),
    "bernoulli.cdf": Row(given_as(_counts(), _PROBABILITY), modes=_BATCHED),
    "bernoulli.ppf": Row(given_as(_PROBABILITY, _PROBABILITY), modes=_BATCHED),
    **counted(_of("geom", "pmf logpmf"), _PROBABILITY),
    **counted(_of("poisson", "pmf logpmf cdf"), _array("positive", ((3,), ()))),
    # In float64 jax's sum ends before its terms are small: at a mean of 3.5 it has eleven digits.
    "poisson.entropy": Row(given_as(_array("positive", ((3,), ()), _WIDE[:1])), modes=_VALUE, rounding=256, floor=4.0),
    **counted(_of("binom", "pmf logpmf"), sampled(5, 2), _PROBABILITY),
    **counted(_of("nbinom", "pmf logpmf"), sampled(5, 2), _PROBABILITY),
    **counted(_of("betabinom", "pmf logpmf"), sampled(5, 2), sampled(0.5, 2.5), sampled(1.5, 3)),
    **family(_of("truncnorm", _TAILS), Row(
        given_as(_array(), sampled(-1.5, -0.25), sampled(0.5, 2), **_LOCATED), modes=_VALUE, rounding=256, floor=8.0)),
    **family(_of("dirichlet", "pdf logpdf"), Row(
        given_as(sampled(np.array([0.25, 0.25, 0.5], np.float32)), _array("positive", ((3,),))), modes=_BATCHED,
        rounding=256, floor=8.0)),
    **family(_of("multinomial", "pmf logpmf"), Row(
        given_as(sampled(np.array([1, 2, 3])), sampled(6, 5), sampled(np.array([0.25, 0.25, 0.5], np.float32))),
        modes=_VALUE, rounding=256, floor=8.0)),
    **family(_of("multivariate_normal", "pdf logpdf"), Row(
        given_as(_array("quarters", ((3,), (2, 3))), _array("quarters", ((3,), ())),
                 sampled(2.0, np.array([[2, 0.5, 0], [0.5, 3, 0.25], [0, 0.25, 1]], np.float32))),
        modes=_BATCHED, rounding=256, floor=8.0)),
    "mode": Row(given_as(operand(REAL, [(3,), (2, 3), (4, 2)], forms=PLAIN), axis=sampled(0, -1, None),
                         keepdims=st.booleans()), modes=_VALUE),
    "rankdata": Row(given_as(operand(REAL, [(3,), (2, 3), (0,)], forms=PLAIN), axis=sampled(0, -1),
                             method=sampled("average", "min", "max", "dense", "ordinal")), modes=_BATCHED),
    "sem": Row(given_as(_array("quarters", ((3,), (2, 3))), axis=sampled(0, -1, None), ddof=sampled(0, 1)),
               rounding=64, floor=4.0),
}


@st.composite
def square(draw: Any, kind: str = "dominant", **choices: Any) -> Any:
    """Draw a matrix far from singular, or symmetric and positive definite, and keywords."""
    return (Operand(draw(_matrices(kind))),), draw(options(**choices))


@st.composite
def _matrices(draw: Any, kind: str = "dominant") -> Any:
    n, dtype = draw(sampled(3, 2, 1)), draw(st.sampled_from(_WIDE))
    x = numbers(np.float64, (n, n), draw(seeds)) / 4 + 3 * np.eye(n)
    return (x + x.T if kind == "definite" else np.triu(x) if kind == "upper" else x).astype(dtype)


@st.composite
def system(draw: Any, kind: str = "dominant", **choices: Any) -> Any:
    """Draw a matrix, a right-hand side, and keywords."""
    x = draw(_matrices(kind))
    shape = draw(sampled((len(x),), (len(x), 2)))
    return (Operand(x), Operand(numbers(x.dtype, shape, draw(seeds)))), draw(options(**choices))


_SOLVED = {"rounding": 512, "floor": 8.0}
_ORDER = sampled(4, 2, 1)
_COEFFICIENTS = operand(_WIDE, [(3,), (4,)], "positive", PLAIN)
LINALG: dict[str, Row] = {
    "cholesky": Row(square("definite", lower=st.booleans()), **_SOLVED),
    "cho_factor": Row(square("definite", lower=st.booleans()), modes=_BATCHED, **_SOLVED),
    "cho_solve": Row(system("definite").map(lambda a: (((a[0][0], False), a[0][1]), {})), modes=_BATCHED, **_SOLVED),
    **family("det inv", Row(square(), **_SOLVED)),
    "eigh": Row(square("definite", lower=st.booleans(), eigvals_only=st.just(True)), **_SOLVED),
    "svd": Row(square(compute_uv=st.just(False)).map(lambda a: (a[0], {"compute_uv": False})), modes=_BATCHED,
               **_SOLVED),
    **family("lu lu_factor", Row(square(), modes=_BATCHED, **_SOLVED)),
    "lu_solve": Row(system().map(lambda a: (((a[0][0], np.arange(len(a[0][0].value))), a[0][1]), {})), modes=_VALUE,
                    **_SOLVED),
    "qr": Row(square(mode=sampled("full", "r", "economic")), modes=_BATCHED, **_SOLVED),
    "qr_multiply": Row(system().map(lambda a: ((*a[0],), {"mode": "left"})), modes=_VALUE, **_SOLVED),
    # Of other than wide matrices jax has no left factor.
    "polar": Row(square(side=sampled("right")), modes=_VALUE, **_SOLVED),
    "expm": Row(square(upper_triangular=st.just(False)), modes=_BATCHED, **_SOLVED),
    "expm_frechet": Row(st.tuples(square(), square()).map(lambda p: ((p[0][0][0], p[0][0][0]), {})), modes=_VALUE,
                        **_SOLVED),
    "sqrtm": Row(square("definite"), modes=_VALUE, **_SOLVED),
    "hessenberg": Row(square(calc_q=st.booleans()), modes=_VALUE, **_SOLVED),
    "solve": Row(system("definite", assume_a=sampled("gen", "pos"), lower=st.booleans()), **_SOLVED),
    "solve_triangular": Row(system("upper", trans=sampled(0, 1, "T"), unit_diagonal=st.booleans()), **_SOLVED),
    "eigh_tridiagonal": Row(st.tuples(_matrices(), st.just({"eigvals_only": True})).map(
        lambda p: ((Operand(np.diag(p[0]).copy()), Operand(np.diag(p[0], 1).copy())), p[1])), modes=_VALUE, **_SOLVED),
    "block_diag": Row(given_as(*[operand(shapes=[(2, 3), (1, 1), (3,)], forms=PLAIN)] * 2)),
    "toeplitz": Row(given_as(_COEFFICIENTS, operand(shapes=[(3,), (2,)], forms=PLAIN))),
    "hankel": Row(given_as(_COEFFICIENTS, operand(_WIDE, [(3,), (2,)], forms=PLAIN))),
    **family("circulant companion fiedler", Row(given_as(_COEFFICIENTS), modes=_BATCHED)),
    "fiedler_companion": Row(given_as(_COEFFICIENTS), modes=_VALUE),
    "leslie": Row(st.tuples(_array("positive", [(3,)]), _array("positive", [(2,)])).map(lambda a: (a, {}))),
    "convolution_matrix": Row(given_as(_COEFFICIENTS, sampled(3, 5), mode=sampled("full", "same", "valid"))),
    **family("hilbert hadamard helmert", Row(given_as(_ORDER), modes=_VALUE)),
    **family("invhilbert dft", Row(given_as(_ORDER), modes=_VALUE, rounding=64, floor=1.0)),
    **family(
        "pascal invpascal",
        Row(given_as(_ORDER, kind=sampled("symmetric", "lower", "upper")), modes=_VALUE, rounding=64),
    ),
}

_SIGNAL = operand(_WIDE, [(5,), (8,)], forms=PLAIN)
_IMAGE = operand(_WIDE, [(3, 3), (2, 4)], forms=PLAIN)
_MODES = sampled("full", "same", "valid")
_LONG = operand(_WIDE, [(16,), (2, 12)], forms=PLAIN)
SIGNAL: dict[str, Row] = {
    **family("convolve correlate", Row(given_as(_SIGNAL, _SIGNAL, mode=_MODES, method=sampled("direct", "fft")),
                                       rounding=64, floor=16.0)),
    "fftconvolve": Row(given_as(_SIGNAL, _SIGNAL, mode=_MODES), rounding=64, floor=16.0),
    **family("convolve2d correlate2d", Row(given_as(_IMAGE, _IMAGE, mode=sampled("full", "same")), floor=16.0)),
    "detrend": Row(given_as(_SIGNAL, type=sampled("linear", "constant")), rounding=256, floor=8.0),
    **family("stft welch", Row(given_as(_LONG).map(lambda a: (a[0], {"nperseg": 8})), modes=_VALUE, rounding=64,
                               floor=16.0)),
    "csd": Row(_LONG.map(lambda x: ((x, x), {"nperseg": 8})), modes=_VALUE, rounding=64, floor=16.0),
    "istft": Row(given_as(operand([np.dtype(np.complex64)], [(5, 4)], forms=PLAIN)).map(
        lambda a: (a[0], {"nperseg": 8})), modes=_VALUE, rounding=64, floor=16.0),
}
FFT: dict[str, Row] = {
    **family("dct idct", Row(given_as(_SIGNAL, type=st.just(2), norm=sampled("ortho", None), n=sampled(4, 6)),
                             rounding=64, floor=16.0)),
    **family("dctn idctn", Row(given_as(_IMAGE, type=st.just(2), norm=sampled("ortho", None)), rounding=64,
                               floor=16.0)),
}
_SINGLE = operand([np.dtype(np.float32)], [(3,)], "positive", PLAIN)
# In other dtypes jax has NaN or few digits of some of these, and of Bernoulli's numbers from the fourth on.
SPECIAL: dict[str, Row] = {
    "bernoulli": Row(given_as(sampled(0, 1, 2, 3, -1)), modes=_VALUE, rounding=64),
    # Where one of the arguments is 0, jax has NaN.
    "bessel_jn": Row(_array("positive", dtypes=_WIDE).map(lambda z: ((z,), {"v": 2, "n_iter": 10})), modes=_VALUE,
                     rounding=64, floor=1.0),
    "expi": Row(given_as(operand(_WIDE, [(3,), ()], "positive", PLAIN)), modes=_VALUE, rounding=64, floor=1.0),
    "expn": Row(given_as(sampled(1, 2, 3, 0), _SINGLE), modes=_VALUE, rounding=64, floor=1.0),
    "sici": Row(given_as(operand(_WIDE, [(3,), ()], forms=PLAIN)), modes=_VALUE, rounding=64, floor=1.0),
    "wofz": Row(given_as(operand([np.dtype(np.complex64), np.dtype(np.float32)], [(3,), (2, 3)], forms=PLAIN)),
                modes=_BATCHED, rounding=64, floor=1.0),
    "hyp2f1": Row(given_as(_SINGLE, _SINGLE, _SINGLE, operand([np.dtype(np.float32)], [(3,)], "unit", PLAIN)),
                  modes=_VALUE, rounding=512, floor=1.0),
}
OTHER: dict[str, Row] = {
    "scipy.ndimage.map_coordinates": Row(given_as(
        _IMAGE, st.just([np.array([0.5, 1.25], np.float32), np.array([1.0, 0.75], np.float32)]), sampled(0, 1),
        mode=sampled("nearest", "constant", "wrap", "reflect", "mirror"), cval=sampled(1.0, 0.0)), floor=16.0),
    "scipy.integrate.trapezoid": Row(given_as(operand(shapes=[(3,), (2, 3)], forms=PLAIN), dx=sampled(0.5, 2),
                                              axis=axis(1)), floor=16.0),
    "scipy.cluster.vq.vq": Row(given_as(operand(_WIDE, [(4, 3)], forms=PLAIN), operand(_WIDE, [(2, 3)], forms=PLAIN)),
                               modes=_VALUE, floor=4.0),
    "scipy.sparse.linalg.cg": Row(system("definite"), modes=_VALUE, rounding=2048, floor=8.0),
    "tree.leaves": Row(given_as(sampled([1, (2.0, None)], {"b": 1, "a": [2]}, 3)), modes=_VALUE),
    "tree.all": Row(given_as(sampled([1, (2.0, None)], [True, 0], [])), modes=_VALUE),
    "tree.map": Row(given_as(st.just(operator.add), *[st.tuples(operand(forms=PLAIN), st.just(1))] * 2)),
    **family("tree.reduce tree.reduce_associative", Row(given_as(
        st.just(operator.add), st.lists(operand(shapes=[(3,)], forms=PLAIN), min_size=1, max_size=3)))),
    "dtypes.canonicalize_dtype": Row(given_as(sampled(np.float64, "int8", bool, complex, int, "bfloat16")),
                                     modes=_VALUE),
    "dtypes.issubdtype": Row(given_as(sampled(np.float64, "int8", bool), sampled(np.floating, np.integer, np.number)),
                             modes=_VALUE),
    "dtypes.result_type": Row(given_as(operand(), operand()), modes=_VALUE),
    "dtypes.scalar_type_of": Row(given_as(sampled(1, 2.5, True, 1j, np.float32(1), np.int8(2))), modes=_VALUE),
    "dtypes.itemsize_bits": Row(given_as(sampled(np.dtype("float32"), np.dtype("int8"), np.dtype("complex64"))),
                                modes=_VALUE),
}

# Random numbers: a key, parameters, and mostly a shape and a dtype.
_KEY = seeds.map(lambda n: Operand(np.array([n, n // 3], np.uint32)))
_SHAPE = sampled((3,), (2, 3), (), (0,))
_TYPE = sampled(np.float32, np.float16, "float64", float)
_WHOLE = sampled(np.int32, np.uint8, "int64", int)
_POSITIVE = operand(_WIDE, [(3,), ()], "positive", PLAIN)


def _drawn(names: str, *parameters: Any, dtype: Any = _TYPE, **changes: Any) -> dict[str, Row]:
    strategy = given_as(_KEY, *parameters, shape=sampled((2, 3), (3,)), dtype=dtype)
    row = {"modes": _VALUE, "wider": "a dtype that the parameters are not of"} | changes
    return family(names, Row(strategy, **row))


RANDOM: dict[str, Row] = {
    **family("normal cauchy exponential gumbel laplace logistic maxwell uniform", Row(
        given_as(_KEY, _SHAPE, dtype=_TYPE), modes=_BATCHED)),
    "bits": Row(given_as(_KEY, _SHAPE, dtype=sampled(np.uint8, np.uint16, "uint32")), modes=_BATCHED),
    "rademacher": Row(given_as(_KEY, _SHAPE, dtype=_WHOLE), modes=_BATCHED),
    "randint": Row(given_as(_KEY, _SHAPE, sampled(0, -5, 300), sampled(1, 7, 1000), dtype=_WHOLE), modes=_BATCHED),
    "bernoulli": Row(given_as(_KEY, _PROBABILITY, shape=sampled((2, 3), (3,)), mode=sampled("low", "high")),
                     modes=_BATCHED),
    "truncated_normal": Row(given_as(_KEY, sampled(-1.0, 0.0), sampled(0.5, 2.0), shape=_SHAPE, dtype=_TYPE),
                            modes=_VALUE),
    **family("permutation", Row(given_as(_KEY, st.one_of(operand(shapes=[(3,), (2, 3)], forms=PLAIN), sampled(5)),
                                         independent=st.booleans()), modes=_VALUE)),
    "choice": Row(given_as(_KEY, st.one_of(operand(shapes=[(4,), (3, 2)], forms=PLAIN), sampled(5)),
                           shape=sampled((2,), ()), replace=st.booleans()), modes=_VALUE),
    "categorical": Row(given_as(_KEY, _array("quarters", [(3,), (2, 3)]), axis=sampled(-1, 0)), modes=_VALUE),
    "split": Row(given_as(_KEY, sampled(2, 3, (2, 2))), modes=_BATCHED),
    "fold_in": Row(given_as(_KEY, sampled(0, 3, np.uint32(7))), modes=_BATCHED),
    "PRNGKey": Row(given_as(sampled(0, 7, -1, 2**31)), modes=_VALUE),
    "double_sided_maxwell": Row(given_as(_KEY, sampled(0.5, 1), sampled(2.0, 1), shape=_SHAPE), modes=_VALUE),
    "weibull_min": Row(given_as(_KEY, sampled(0.5, 1.0), sampled(2.0, 1.0), shape=_SHAPE), modes=_VALUE),
    "triangular": Row(given_as(_KEY, sampled(0.0, -1.0), sampled(0.25, 0.5), sampled(1.0, 2.0), shape=_SHAPE),
                      modes=_VALUE),
    **_drawn("pareto wald rayleigh", _POSITIVE), **_drawn("lognormal", sampled(0.5, 2.0)),
    **_drawn("geometric", sampled(0.5, 0.25), dtype=_WHOLE),
    # Their eager and jitted forms differ in jax itself, by a rounding of a logarithm or power.
    **_drawn("gamma loggamma chisquare t", _POSITIVE, rounding=256, floor=1.0),
    **_drawn("beta f", *[operand(_WIDE[:1], [(3,), ()], "positive", PLAIN)] * 2, rounding=256, floor=1.0),
    **_drawn("dirichlet", operand(_WIDE, [(3,)], "positive", PLAIN), rounding=256, floor=1.0),
    **_drawn("poisson", _POSITIVE, dtype=_WHOLE), **_drawn("binomial", sampled(5, 20), sampled(0.5, 0.25)),
    "ball": Row(given_as(_KEY, sampled(2, 3), p=sampled(1, 2), shape=sampled((2,))), modes=_VALUE, rounding=256,
                floor=1.0),
    "generalized_normal": Row(given_as(_KEY, sampled(1.0, 2.5), shape=sampled((3,))), modes=_VALUE, rounding=256,
                              floor=1.0),
    "multinomial": Row(given_as(_KEY, sampled(5, 9), sampled(np.array([0.25, 0.25, 0.5], np.float32))), modes=_VALUE),
    "multivariate_normal": Row(given_as(
        _KEY, _array("quarters", [(2,)]), sampled(np.array([[2, 0.5], [0.5, 1]], np.float32)),
        method=sampled("cholesky", "eigh")), modes=_VALUE, rounding=64, floor=4.0),
    "orthogonal": Row(given_as(_KEY, sampled(2, 3), shape=sampled((2,), ())), modes=_VALUE, rounding=64, floor=4.0),
}
INITIALIZERS: dict[str, Row] = family("zeros ones", Row(given_as(_KEY, _SHAPE, _TYPE), modes=_VALUE))
