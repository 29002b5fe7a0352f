"""NumPy's functions on xtrace arrays, as ``jax.numpy`` has them."""
# ruff: noqa: I001

from numpy import (
    character, complexfloating, dtype, flexible, floating, generic, inexact, integer, number, object_, signedinteger,
    unsignedinteger,
)

from xtrace._src.core.arrays import Array as ndarray
from xtrace._src.core.dtypes import finfo, iinfo
from xtrace._src.core.late import late_names as _late_names
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.contraction import dot, inner, matmul, matvec, outer, tensordot, trace, vdot, vecdot, vecmat
from xtrace.numpy.creation import (
    arange, array, asarray, astype, broadcast_arrays, broadcast_shapes, broadcast_to, empty, empty_like, eye,
    from_dlpack, full, full_like, geomspace, identity, indices, linspace, logspace, meshgrid, ones, ones_like, tri,
    tril, triu, zeros, zeros_like,
)
from xtrace.numpy.indexing import argwhere, flatnonzero, nonzero, take
from xtrace.numpy.manipulation import (
    append, argsort, array_split, atleast_1d, atleast_2d, atleast_3d, block, column_stack, concat, concatenate, copy,
    diag, diagflat, diagonal, dsplit, dstack, expand_dims, flip, fliplr, flipud, hsplit, hstack, matrix_transpose,
    moveaxis, permute_dims, ravel, repeat, reshape, resize, roll, rollaxis, rot90, sort, split, squeeze, stack,
    swapaxes, tile, transpose, unstack, vsplit, vstack,
)
from xtrace.numpy.reductions import (
    all, amax, amin, any, argmax, argmin, average, count_nonzero, cumprod, cumsum, cumulative_prod, cumulative_sum,
    max, mean, min, nanprod, nansum, prod, ptp, std, sum, var,
)
from xtrace.numpy.scalar_types import (
    bfloat16, bool_, can_cast, cdouble, complex64, complex128, complex_, csingle, double, e, euler_gamma,
    float4_e2m1fn, float6_e2m3fn, float6_e3m2fn, float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn,
    float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, float16, float32, float64, float_, inf, int2, int4,
    int8, int16, int32, int64, int_, isdtype, isscalar, issubdtype, iterable, nan, ndim, newaxis, pi, promote_types,
    result_type, shape, single, size, uint, uint2, uint4, uint8, uint16, uint32, uint64,
)
from xtrace.numpy.scalar_types import one_bit_types as _one_bit_types
from xtrace.numpy.ufuncs import (
    abs, absolute, acos, acosh, add, angle, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, around, asin,
    asinh, atan, atan2, atanh, bitwise_and, bitwise_count, bitwise_invert, bitwise_left_shift, bitwise_not,
    bitwise_or, bitwise_right_shift, bitwise_xor, cbrt, ceil, clip, conj, conjugate, copysign, cos, cosh, deg2rad,
    degrees, divide, divmod, equal, exp, exp2, expm1, fabs, float_power, floor, floor_divide, fmax, fmin, fmod, frexp,
    greater, greater_equal, heaviside, hypot, i0, imag, invert, isclose, iscomplex, iscomplexobj, isfinite, isinf,
    isnan, isneginf, isposinf, isreal, isrealobj, ldexp, left_shift, less, less_equal, log, log1p, log2, log10,
    logaddexp, logaddexp2, logical_and, logical_not, logical_or, logical_xor, maximum, minimum, mod, modf, multiply,
    nan_to_num, negative, nextafter, not_equal, positive, pow, power, rad2deg, radians, real, reciprocal, remainder,
    right_shift, rint, round, sign, signbit, sin, sinc, sinh, spacing, sqrt, square, subtract, tan, tanh, true_divide,
    trunc, where,
)

bool = bool_
globals().update(_one_bit_types)

__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "all", "amax", "amin", "angle", "any", "append", "arange", "arccos",
    "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argsort", "argwhere",
    "around", "array", "array_split", "asarray", "asin", "asinh", "astype", "atan", "atan2", "atanh", "atleast_1d",
    "atleast_2d", "atleast_3d", "average", "bfloat16", "bitwise_and", "bitwise_count", "bitwise_invert",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "block", "bool",
    "bool_", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast", "cbrt", "cdouble", "ceil",
    "character", "clip", "column_stack", "complex128", "complex64", "complex_", "complexfloating", "concat",
    "concatenate", "conj", "conjugate", "copy", "copysign", "cos",
    "cosh", "count_nonzero", "csingle", "cumprod",
    "cumsum", "cumulative_prod", "cumulative_sum", "deg2rad", "degrees", "diag", "diagflat", "diagonal", "divide",
    "divmod", "dot", "double", "dsplit", "dstack", "dtype", "e", "empty", "empty_like", "equal", "euler_gamma",
    "exp", "exp2", "expand_dims", "expm1", "eye", "fabs", "finfo", "flatnonzero", "flexible", "flip", "fliplr",
    "flipud", "float16", "float32", "float4_e2m1fn", "float64", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4",
    "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "float_", "float_power", "floating", "floor", "floor_divide", "fmax", "fmin", "fmod", "frexp",
    "from_dlpack", "full", "full_like", "generic", "geomspace", "greater", "greater_equal", "heaviside", "hsplit",
    "hstack", "hypot", "i0", "identity", "iinfo", "imag", "indices", "inexact", "inf", "inner", "int16", "int2",
    "int32", "int4", "int64", "int8", "int_", "integer", "invert", "isclose", "iscomplex", "iscomplexobj",
    "isdtype", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "isrealobj", "isscalar",
    "issubdtype", "iterable", "ldexp", "left_shift", "less", "less_equal", "linspace", "log", "log10", "log1p",
    "log2", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "logspace",
    "matmul", "matrix_transpose", "matvec", "max", "maximum", "mean", "meshgrid", "min", "minimum", "mod", "modf",
    "moveaxis", "multiply", "nan", "nan_to_num", "nanprod", "nansum", "ndarray", "ndim", "negative", "newaxis",
    "nextafter", "nonzero", "not_equal", "number", "object_", "ones", "ones_like", "outer", "permute_dims",
    "pi", "positive", "pow", "power", "prod", "promote_types", "ptp", "rad2deg", "radians", "ravel", "real",
    "reciprocal", "remainder", "repeat", "reshape", "resize", "result_type", "right_shift", "rint", "roll",
    "rollaxis", "rot90", "round", "shape", "sign", "signbit", "signedinteger", "sin", "sinc", "single", "sinh",
    "size", "sort", "spacing", "split", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "swapaxes",
    "take", "tan", "tanh", "tensordot", "tile", "trace", "transpose", "tri", "tril", "triu", "true_divide", "trunc",
    "uint", "uint16", "uint2", "uint32", "uint4", "uint64", "uint8", "unsignedinteger", "unstack", "var", "vdot",
    "vecdot", "vecmat", "vsplit", "vstack", "where", "zeros", "zeros_like",
]
# The newest version of the Python array API standard that the module follows.
__array_api_version__ = "2024.12"
__all__ += _one_bit_types

_make_public(globals(), __all__)

# What few programs use is loaded when it is first asked for; one line for each file.
_late, __getattr__, __dir__ = _late_names(
    "xtrace.numpy",
    {
        "xtrace.numpy.contraction": ("cross", "kron"),
        "xtrace.numpy.namespace_info": ("__array_namespace_info__",),
        "xtrace.numpy.choices": (
            "choose", "compress", "extract", "fromfunction", "piecewise", "select", "take_along_axis",
        ),
        "xtrace.numpy.index_makers": (
            "c_", "diag_indices", "diag_indices_from", "index_exp", "ix_", "mask_indices", "mgrid", "ogrid", "r_",
            "ravel_multi_index", "s_", "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from",
            "unravel_index",
        ),
        "xtrace.numpy.placing": ("fill_diagonal", "place", "put", "put_along_axis"),
        "xtrace.numpy.einstein_sums": ("einsum", "einsum_path"),
        "xtrace.numpy.ufunc_objects": ("frompyfunc", "ufunc"),
        "xtrace.numpy.vectorization": ("apply_along_axis", "apply_over_axes", "vectorize"),
        "xtrace.numpy.sets": (
            "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts",
            "unique_inverse", "unique_values",
        ),
        "xtrace.numpy.polynomials": (
            "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval", "roots",
            "vander",
        ),
        "xtrace.numpy.spectral_windows": ("bartlett", "blackman", "hamming", "hanning", "kaiser"),
        "xtrace.numpy.signals": ("convolve", "correlate"),
        "xtrace.numpy.ordering": ("argpartition", "digitize", "lexsort", "partition", "searchsorted", "sort_complex"),
        "xtrace.numpy.histograms": ("bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"),
        "xtrace.numpy.differences": ("diff", "ediff1d", "gradient", "interp", "trapezoid", "unwrap"),
        "xtrace.numpy.covariances": ("corrcoef", "cov"),
        "xtrace.numpy.divisors": ("gcd", "lcm"),
        "xtrace.numpy.padding": ("pad",),
        "xtrace.numpy.comparisons": ("allclose", "array_equal", "array_equiv"),
        "xtrace.numpy.insertion": ("delete", "insert", "trim_zeros"),
        "xtrace.numpy.bits": ("packbits", "unpackbits"),
        "xtrace.numpy.files": (
            "ComplexWarning", "array_repr", "array_str", "frombuffer", "fromfile", "fromiter", "fromstring",
            "get_printoptions", "load", "printoptions", "save", "savez", "set_printoptions",
        ),
        "xtrace.numpy.quantiles": ("median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"),
        "xtrace.numpy.nan_reductions": (
            "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanstd", "nanvar",
        ),
    },
    submodules=("fft", "linalg"),
)
__all__ += _late
