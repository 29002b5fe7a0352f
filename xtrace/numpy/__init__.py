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
from xtrace.numpy.contraction import *
from xtrace.numpy.creation import *
from xtrace.numpy.indexing import *
from xtrace.numpy.manipulation import *
from xtrace.numpy.reductions import *
from xtrace.numpy.scalar_types import *
from xtrace.numpy.scalar_types import one_bit_types as _one_bit_types
from xtrace.numpy.ufuncs import *

bool = bool_
globals().update(_one_bit_types)

# The newest version of the Python array API standard that the module follows.
__array_api_version__ = "2024.12"

__all__ = _make_public(globals())

# What few programs use is loaded when it is first asked for; one line for each file.
_late, __getattr__, __dir__ = _late_names(
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
