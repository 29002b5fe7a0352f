"""NumPy's functions on xtrace arrays, as ``jax.numpy`` has them."""
# ruff: noqa: I001

import typing as _typing

from numpy import (
    character, complexfloating, dtype, flexible, floating, generic, inexact, integer, number, object_, signedinteger,
    unsignedinteger,
)

from xtrace._src.core.arrays import Array as ndarray
from xtrace._src.core.dtypes import finfo, iinfo
from xtrace._src.core.jax_version import is_newer as _is_newer
from xtrace._src.core.late import late_names as _late_names
from xtrace._src.core.late import make_public as _make_public
from xtrace.numpy.contraction import *
from xtrace.numpy.creation import *
from xtrace.numpy.conversion import *
from xtrace.numpy.ranges import *
from xtrace.numpy.broadcasting import *
from xtrace.numpy.indexing import *
from xtrace.numpy.nonzero_elements import *
from xtrace.numpy.manipulation import *
from xtrace.numpy.joins_and_splits import *
from xtrace.numpy.rearrangement import *
from xtrace.numpy.reductions import *
from xtrace.numpy.statistics import *
from xtrace.numpy.cumulative import *
from xtrace.numpy.scalar_types import *
from xtrace.numpy.scalar_types import one_bit_types as _one_bit_types
from xtrace.numpy.ufuncs import *
from xtrace.numpy.rounding import *
from xtrace.numpy.complex_parts import *
from xtrace.numpy.floating_point import *
from xtrace.numpy.logic import *

bool = bool_
globals().update(_one_bit_types)

__all__ = _make_public(globals())

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace.numpy.namespace_info import __array_namespace_info__ as __array_namespace_info__
    from xtrace.numpy.selection import (
        choose as choose, compress as compress, extract as extract, fromfunction as fromfunction,
        piecewise as piecewise, select as select, take_along_axis as take_along_axis,
    )
    from xtrace.numpy.index_tricks import (
        c_ as c_, diag_indices as diag_indices, diag_indices_from as diag_indices_from, index_exp as index_exp,
        ix_ as ix_, mask_indices as mask_indices, mgrid as mgrid, ogrid as ogrid, r_ as r_,
        ravel_multi_index as ravel_multi_index, s_ as s_, tril_indices as tril_indices,
        tril_indices_from as tril_indices_from, triu_indices as triu_indices, triu_indices_from as triu_indices_from,
        unravel_index as unravel_index,
    )
    from xtrace.numpy.put_and_place import (
        fill_diagonal as fill_diagonal, place as place, put as put, put_along_axis as put_along_axis,
    )
    from xtrace.numpy.einstein_sums import einsum as einsum, einsum_path as einsum_path
    from xtrace.numpy.ufunc_objects import frompyfunc as frompyfunc, ufunc as ufunc
    from xtrace.numpy.vectorization import (
        apply_along_axis as apply_along_axis, apply_over_axes as apply_over_axes, vectorize as vectorize,
    )
    from xtrace.numpy.sets import (
        intersect1d as intersect1d, isin as isin, setdiff1d as setdiff1d, setxor1d as setxor1d, union1d as union1d,
        unique as unique, unique_all as unique_all, unique_counts as unique_counts, unique_inverse as unique_inverse,
        unique_values as unique_values,
    )
    from xtrace.numpy.polynomials import (
        poly as poly, polyadd as polyadd, polyder as polyder, polydiv as polydiv, polyfit as polyfit,
        polyint as polyint, polymul as polymul, polysub as polysub, polyval as polyval, roots as roots,
        vander as vander,
    )
    from xtrace.numpy.spectral_windows import (
        bartlett as bartlett, blackman as blackman, hamming as hamming, hanning as hanning, kaiser as kaiser,
    )
    from xtrace.numpy.signals import convolve as convolve, correlate as correlate
    from xtrace.numpy.ordering import (
        argpartition as argpartition, digitize as digitize, lexsort as lexsort, partition as partition,
        searchsorted as searchsorted, sort_complex as sort_complex, top_k as top_k,
    )
    from xtrace.numpy.histograms import (
        bincount as bincount, histogram as histogram, histogram2d as histogram2d,
        histogram_bin_edges as histogram_bin_edges, histogramdd as histogramdd,
    )
    from xtrace.numpy.differences import (
        diff as diff, ediff1d as ediff1d, gradient as gradient, interp as interp, trapezoid as trapezoid,
        unwrap as unwrap,
    )
    from xtrace.numpy.covariances import corrcoef as corrcoef, cov as cov
    from xtrace.numpy.divisors import gcd as gcd, lcm as lcm
    from xtrace.numpy.padding import pad as pad
    from xtrace.numpy.comparisons import allclose as allclose, array_equal as array_equal, array_equiv as array_equiv
    from xtrace.numpy.insertion import delete as delete, insert as insert, trim_zeros as trim_zeros
    from xtrace.numpy.bits import packbits as packbits, unpackbits as unpackbits
    from xtrace.numpy.files import (
        ComplexWarning as ComplexWarning, array_repr as array_repr, array_str as array_str, frombuffer as frombuffer,
        fromfile as fromfile, fromiter as fromiter, fromstring as fromstring, get_printoptions as get_printoptions,
        load as load, printoptions as printoptions, save as save, savez as savez, set_printoptions as set_printoptions,
    )
    from xtrace.numpy.quantiles import (
        median as median, nanmedian as nanmedian, nanpercentile as nanpercentile, nanquantile as nanquantile,
        percentile as percentile, quantile as quantile,
    )
    from xtrace.numpy.nan_reductions import (
        nanargmax as nanargmax, nanargmin as nanargmin, nancumprod as nancumprod, nancumsum as nancumsum,
        nanmax as nanmax, nanmean as nanmean, nanmin as nanmin, nanstd as nanstd, nanvar as nanvar,
    )
    from xtrace.numpy import fft as fft, linalg as linalg

# Rarely used names load at their first use; one line for each file.
_late, _late_name, __dir__ = _late_names(
    "xtrace.numpy",
    {
        "xtrace.numpy.namespace_info": ("__array_namespace_info__",),
        "xtrace.numpy.selection": (
            "choose", "compress", "extract", "fromfunction", "piecewise", "select", "take_along_axis",
        ),
        "xtrace.numpy.index_tricks": (
            "c_", "diag_indices", "diag_indices_from", "index_exp", "ix_", "mask_indices", "mgrid", "ogrid", "r_",
            "ravel_multi_index", "s_", "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from",
            "unravel_index",
        ),
        "xtrace.numpy.put_and_place": ("fill_diagonal", "place", "put", "put_along_axis"),
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
        "xtrace.numpy.ordering": (
            "argpartition", "digitize", "lexsort", "partition", "searchsorted", "sort_complex", "top_k",
        ),
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


def __getattr__(name: str) -> _typing.Any:
    # The version of the Python array API standard that the module follows.
    if name == "__array_api_version__":
        return "2025.12" if _is_newer() else "2024.12"
    return _late_name(name)
