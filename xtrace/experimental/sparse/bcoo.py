"""BCOO arrays and their functions (``jax.experimental.sparse.bcoo``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.sparse.contractions import bcoo_dot_general_p, bcoo_dot_general_sampled_p, bcoo_spdot_general_p
from xtrace._src.sparse.coordinates import (
    bcoo_extract_p,
    bcoo_fromdense_p,
    bcoo_sort_indices_p,
    bcoo_sum_duplicates_p,
    bcoo_todense_p,
    bcoo_transpose_p,
)
from xtrace._src.sparse.layouts import CuSparseEfficiencyWarning, SparseEfficiencyError, SparseEfficiencyWarning
from xtrace.experimental.sparse.arrays import BCOO, bcoo_fromdense
from xtrace.experimental.sparse.conversions import (
    bcoo_extract,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_transpose,
)
from xtrace.experimental.sparse.indexing import bcoo_concatenate, bcoo_dynamic_slice, bcoo_gather, bcoo_rev, bcoo_slice
from xtrace.experimental.sparse.layout_changes import (
    bcoo_broadcast_in_dim,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_squeeze,
    bcoo_update_layout,
)
from xtrace.experimental.sparse.products import (
    bcoo_conv_general_dilated,
    bcoo_dot_general,
    bcoo_dot_general_sampled,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
)
from xtrace.experimental.sparse.sparse_arrays import JAXSparse

__all__ = [
    "BCOO", "CuSparseEfficiencyWarning", "JAXSparse", "SparseEfficiencyError", "SparseEfficiencyWarning",
    "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_conv_general_dilated", "bcoo_dot_general",
    "bcoo_dot_general_p", "bcoo_dot_general_sampled", "bcoo_dot_general_sampled_p", "bcoo_dynamic_slice",
    "bcoo_extract", "bcoo_extract_p", "bcoo_fromdense", "bcoo_fromdense_p", "bcoo_gather", "bcoo_multiply_dense",
    "bcoo_multiply_sparse", "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_sort_indices",
    "bcoo_sort_indices_p", "bcoo_spdot_general_p", "bcoo_squeeze", "bcoo_sum_duplicates", "bcoo_sum_duplicates_p",
    "bcoo_todense", "bcoo_todense_p", "bcoo_transpose", "bcoo_transpose_p", "bcoo_update_layout",
]

_make_public(globals(), __all__)
