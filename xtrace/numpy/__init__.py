"""NumPy's functions on xtrace arrays, as ``jax.numpy`` has them."""
# ruff: noqa: I001

import sys as _sys
import typing as _typing

from xtrace._late_imports import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from numpy import (
        character as character, complexfloating as complexfloating, dtype as dtype, flexible as flexible,
        floating as floating, generic as generic, inexact as inexact, integer as integer, number as number,
        object_ as object_, signedinteger as signedinteger, unsignedinteger as unsignedinteger,
    )
    from xtrace._src.core.arrays import Array as ndarray
    from xtrace._src.core.dtypes import finfo as finfo, iinfo as iinfo
    from xtrace.numpy.arrays.scalar_types import (
        bfloat16 as bfloat16, bool_ as bool, bool_ as bool_, can_cast as can_cast, cdouble as cdouble,
        complex128 as complex128, complex64 as complex64, complex_ as complex_, csingle as csingle, double as double,
        e as e, euler_gamma as euler_gamma, float16 as float16, float32 as float32, float4_e2m1fn as float4_e2m1fn,
        float64 as float64, float6_e2m3fn as float6_e2m3fn, float6_e3m2fn as float6_e3m2fn, float8_e3m4 as float8_e3m4,
        float8_e4m3 as float8_e4m3, float8_e4m3b11fnuz as float8_e4m3b11fnuz, float8_e4m3fn as float8_e4m3fn,
        float8_e4m3fnuz as float8_e4m3fnuz, float8_e5m2 as float8_e5m2, float8_e5m2fnuz as float8_e5m2fnuz,
        float8_e8m0fnu as float8_e8m0fnu, float_ as float_, inf as inf, int16 as int16, int2 as int2, int32 as int32,
        int4 as int4, int64 as int64, int8 as int8, int_ as int_, isdtype as isdtype, isscalar as isscalar,
        issubdtype as issubdtype, iterable as iterable, nan as nan, ndim as ndim, newaxis as newaxis, pi as pi,
        promote_types as promote_types, result_type as result_type, shape as shape, single as single, size as size,
        uint as uint, uint16 as uint16, uint2 as uint2, uint32 as uint32, uint4 as uint4, uint64 as uint64,
        uint8 as uint8,
    )
    from xtrace.numpy.products.contraction import (
        cross as cross, dot as dot, inner as inner, kron as kron, matmul as matmul, matvec as matvec, outer as outer,
        tensordot as tensordot, trace as trace, vdot as vdot, vecdot as vecdot, vecmat as vecmat,
    )
    from xtrace.numpy.arrays.creation import (
        empty as empty, empty_like as empty_like, eye as eye, full as full, full_like as full_like,
        identity as identity, ones as ones, ones_like as ones_like, tri as tri, tril as tril, triu as triu,
        zeros as zeros, zeros_like as zeros_like,
    )
    from xtrace.numpy.arrays.conversion import (
        array as array, asarray as asarray, astype as astype, from_dlpack as from_dlpack,
    )
    from xtrace.numpy.arrays.ranges import (
        arange as arange, geomspace as geomspace, linspace as linspace, logspace as logspace,
    )
    from xtrace.numpy.manipulation.broadcasting import (  # every name
        broadcast_arrays as broadcast_arrays, broadcast_shapes as broadcast_shapes, broadcast_to as broadcast_to,
        indices as indices, meshgrid as meshgrid,
    )
    from xtrace.numpy.indexing.indexing import take as take
    from xtrace.numpy.indexing.nonzero_elements import (
        argwhere as argwhere, flatnonzero as flatnonzero, nonzero as nonzero,
    )
    from xtrace.numpy.manipulation.shapes import (
        atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d, copy as copy,
        expand_dims as expand_dims, matrix_transpose as matrix_transpose, moveaxis as moveaxis,
        permute_dims as permute_dims, ravel as ravel, reshape as reshape, rollaxis as rollaxis, squeeze as squeeze,
        swapaxes as swapaxes, transpose as transpose,
    )
    from xtrace.numpy.manipulation.joins_and_splits import (  # every name
        append as append, array_split as array_split, block as block, column_stack as column_stack, concat as concat,
        concatenate as concatenate, dsplit as dsplit, dstack as dstack, hsplit as hsplit, hstack as hstack,
        split as split, stack as stack, unstack as unstack, vsplit as vsplit, vstack as vstack,
    )
    from xtrace.numpy.manipulation.rearrangement import (  # every name
        diag as diag, diagflat as diagflat, diagonal as diagonal, flip as flip, fliplr as fliplr, flipud as flipud,
        repeat as repeat, resize as resize, roll as roll, rot90 as rot90, tile as tile,
    )
    from xtrace.numpy.reductions.reductions import (
        all as all, amax as amax, amin as amin, any as any, argmax as argmax, argmin as argmin,
        count_nonzero as count_nonzero, max as max, min as min, minmax as minmax, prod as prod, sum as sum,
    )
    from xtrace.numpy.reductions.statistics import average as average, mean as mean, ptp as ptp, std as std, var as var
    from xtrace.numpy.reductions.cumulative import (
        cumprod as cumprod, cumsum as cumsum, cumulative_prod as cumulative_prod, cumulative_sum as cumulative_sum,
    )
    from xtrace._src.api.operators.operators import (
        absolute as absolute, divmod as divmod, equal as equal, floor_divide as floor_divide, greater as greater,
        greater_equal as greater_equal, invert as invert, left_shift as left_shift, less as less,
        less_equal as less_equal, not_equal as not_equal, positive as positive, power as power, remainder as remainder,
        right_shift as right_shift, true_divide as true_divide,
    )
    from xtrace.numpy.elementwise.ufuncs import (  # every name
        abs as abs, acos as acos, acosh as acosh, add as add, arccos as arccos, arccosh as arccosh, arcsin as arcsin,
        arcsinh as arcsinh, arctan as arctan, arctan2 as arctan2, arctanh as arctanh, asin as asin, asinh as asinh,
        atan as atan, atan2 as atan2, atanh as atanh, cbrt as cbrt, clip as clip, cos as cos, cosh as cosh,
        deg2rad as deg2rad, degrees as degrees, divide as divide, exp as exp, exp2 as exp2, expm1 as expm1,
        fabs as fabs, float_power as float_power, fmax as fmax, fmin as fmin, fmod as fmod, hypot as hypot, log as log,
        log10 as log10, log1p as log1p, log2 as log2, maximum as maximum, minimum as minimum, mod as mod,
        multiply as multiply, negative as negative, pow as pow, rad2deg as rad2deg, radians as radians,
        reciprocal as reciprocal, sign as sign, sin as sin, sinh as sinh, sqrt as sqrt, square as square,
        subtract as subtract, tan as tan, tanh as tanh,
    )
    from xtrace.numpy.indexing.where import where as where
    from xtrace.numpy.elementwise.special_functions import (  # every name
        i0 as i0, logaddexp as logaddexp, logaddexp2 as logaddexp2, sinc as sinc,
    )
    from xtrace.numpy.elementwise.rounding import (  # every name
        around as around, ceil as ceil, floor as floor, modf as modf, rint as rint, round as round, trunc as trunc,
    )
    from xtrace.numpy.elementwise.complex_parts import (  # every name
        angle as angle, conj as conj, conjugate as conjugate, imag as imag, iscomplex as iscomplex,
        iscomplexobj as iscomplexobj, isreal as isreal, isrealobj as isrealobj, real as real,
    )
    from xtrace.numpy.elementwise.floating_point import (  # every name
        copysign as copysign, frexp as frexp, heaviside as heaviside, isclose as isclose, isfinite as isfinite,
        isinf as isinf, isnan as isnan, isneginf as isneginf, isposinf as isposinf, ldexp as ldexp,
        nan_to_num as nan_to_num, nextafter as nextafter, signbit as signbit, spacing as spacing,
    )
    from xtrace.numpy.elementwise.logic import (  # every name
        bitwise_and as bitwise_and, bitwise_count as bitwise_count, bitwise_invert as bitwise_invert,
        bitwise_left_shift as bitwise_left_shift, bitwise_not as bitwise_not, bitwise_or as bitwise_or,
        bitwise_right_shift as bitwise_right_shift, bitwise_xor as bitwise_xor, logical_and as logical_and,
        logical_not as logical_not, logical_or as logical_or, logical_xor as logical_xor,
    )
    from xtrace.numpy.namespace_info import __array_namespace_info__ as __array_namespace_info__
    from xtrace.numpy.indexing.selection import (  # every name
        choose as choose, compress as compress, extract as extract, fromfunction as fromfunction,
        piecewise as piecewise, select as select, take_along_axis as take_along_axis,
    )
    from xtrace.numpy.indexing.index_tricks import (
        c_ as c_, diag_indices as diag_indices, diag_indices_from as diag_indices_from, index_exp as index_exp,
        ix_ as ix_, mask_indices as mask_indices, mgrid as mgrid, ogrid as ogrid, r_ as r_,
        ravel_multi_index as ravel_multi_index, s_ as s_, tril_indices as tril_indices,
        tril_indices_from as tril_indices_from, triu_indices as triu_indices, triu_indices_from as triu_indices_from,
        unravel_index as unravel_index,
    )
    from xtrace.numpy.indexing.put_and_place import (  # every name
        fill_diagonal as fill_diagonal, place as place, put as put, put_along_axis as put_along_axis,
    )
    from xtrace.numpy.products.einstein_sums import (  # every name
        einsum as einsum, einsum_path as einsum_path,
    )
    from xtrace.numpy.elementwise.ufunc_objects import frompyfunc as frompyfunc, ufunc as ufunc
    from xtrace.numpy.vectorization import (  # every name
        apply_along_axis as apply_along_axis, apply_over_axes as apply_over_axes, vectorize as vectorize,
    )
    from xtrace.numpy.sorting.sets import (
        intersect1d as intersect1d, isin as isin, setdiff1d as setdiff1d, setxor1d as setxor1d, union1d as union1d,
        unique as unique, unique_all as unique_all, unique_counts as unique_counts, unique_inverse as unique_inverse,
        unique_values as unique_values,
    )
    from xtrace.numpy.signals.polynomials import (  # every name
        poly as poly, polyadd as polyadd, polyder as polyder, polydiv as polydiv, polyfit as polyfit,
        polyint as polyint, polymul as polymul, polysub as polysub, polyval as polyval, roots as roots,
        vander as vander,
    )
    from xtrace.numpy.signals.spectral_windows import (  # every name
        bartlett as bartlett, blackman as blackman, hamming as hamming, hanning as hanning, kaiser as kaiser,
    )
    from xtrace.numpy.signals.convolution import (  # every name
        convolve as convolve, correlate as correlate,
    )
    from xtrace.numpy.sorting.ordering import (  # every name
        argpartition as argpartition, digitize as digitize, partition as partition, searchsorted as searchsorted,
        top_k as top_k,
    )
    from xtrace.numpy.sorting.sorts import (
        argsort as argsort, lexsort as lexsort, sort as sort, sort_complex as sort_complex,
    )
    from xtrace.numpy.reductions.histograms import (  # every name
        bincount as bincount, histogram as histogram, histogram2d as histogram2d,
        histogram_bin_edges as histogram_bin_edges, histogramdd as histogramdd,
    )
    from xtrace.numpy.reductions.differences import (  # every name
        diff as diff, ediff1d as ediff1d, gradient as gradient, interp as interp, trapezoid as trapezoid,
        unwrap as unwrap,
    )
    from xtrace.numpy.reductions.covariances import (  # every name
        corrcoef as corrcoef, cov as cov,
    )
    from xtrace.numpy.elementwise.divisors import (  # every name
        gcd as gcd, lcm as lcm,
    )
    from xtrace.numpy.manipulation.padding import pad as pad
    from xtrace.numpy.sorting.comparisons import (  # every name
        allclose as allclose, array_equal as array_equal, array_equiv as array_equiv,
    )
    from xtrace.numpy.manipulation.insertion import (  # every name
        delete as delete, insert as insert, trim_zeros as trim_zeros,
    )
    from xtrace.numpy.elementwise.bits import (  # every name
        packbits as packbits, unpackbits as unpackbits,
    )
    from xtrace.numpy.arrays.files import (
        ComplexWarning as ComplexWarning, array_repr as array_repr, array_str as array_str, frombuffer as frombuffer,
        fromfile as fromfile, fromiter as fromiter, fromstring as fromstring, get_printoptions as get_printoptions,
        load as load, printoptions as printoptions, save as save, savez as savez, set_printoptions as set_printoptions,
    )
    from xtrace.numpy.reductions.quantiles import (  # every name
        median as median, nanmedian as nanmedian, nanpercentile as nanpercentile, nanquantile as nanquantile,
        percentile as percentile, quantile as quantile,
    )
    from xtrace.numpy.reductions.nan_reductions import (  # every name
        nanargmax as nanargmax, nanargmin as nanargmin, nancumprod as nancumprod, nancumsum as nancumsum,
        nanmax as nanmax, nanmean as nanmean, nanmin as nanmin, nanprod as nanprod, nanstd as nanstd, nansum as nansum,
        nanvar as nanvar,
    )
    from xtrace.numpy import fft as fft, linalg as linalg

# Only newer releases of ml_dtypes have the types of one bit.
with _late_imports(globals(), listed=False):
    from xtrace._src.core.settings.jax_version import is_newer as _is_newer
    from xtrace.numpy.arrays.scalar_types import int1 as int1, uint1 as uint1

_load_late = globals()["__getattr__"]


def __getattr__(name: str) -> _typing.Any:
    # The version of the Python array API standard that the module follows.
    if name == "__array_api_version__":
        return "2025.12" if _load_late("_is_newer")() else "2024.12"
    try:
        return _load_late(name)
    except AttributeError as error:
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # without this line
        raise


def __dir__() -> list[str]:
    # Without loading it, the release of ml_dtypes is not known.
    is_old = "ml_dtypes" in _sys.modules and not hasattr(_sys.modules["ml_dtypes"], "int1")
    return sorted([*globals()["__all__"], *([] if is_old else ["int1", "uint1"])])
