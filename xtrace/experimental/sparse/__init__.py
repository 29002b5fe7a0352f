"""Sparse arrays (``jax.experimental.sparse``)."""
# ruff: noqa: I001

from xtrace._src.core.public_modules import late_imports as _late_imports
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
from xtrace._src.sparse.rows_and_columns import (
    bcsr_dot_general_p,
    bcsr_extract_p,
    bcsr_fromdense_p,
    bcsr_todense_p,
    coo_fromdense_p,
    coo_matmat_p,
    coo_matvec_p,
    coo_todense_p,
    csr_fromdense_p,
    csr_matmat_p,
    csr_matvec_p,
    csr_todense_p,
)
from xtrace.experimental.sparse.arrays import BCOO, BCSR, bcoo_fromdense, bcsr_fromdense
from xtrace.experimental.sparse.conversions import (
    bcoo_extract,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_transpose,
)
from xtrace.experimental.sparse.creation import empty, eye, todense, todense_p
from xtrace.experimental.sparse.derivatives import grad, jacfwd, jacobian, jacrev, value_and_grad
from xtrace.experimental.sparse.indexing import (
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_gather,
    bcoo_rev,
    bcoo_slice,
)
from xtrace.experimental.sparse.layout_changes import (
    bcoo_broadcast_in_dim,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_squeeze,
    bcoo_update_layout,
)
from xtrace.experimental.sparse.matrices import (
    COO,
    CSC,
    CSR,
    coo_fromdense,
    coo_matmat,
    coo_matvec,
    coo_todense,
    csr_fromdense,
    csr_matmat,
    csr_matvec,
    csr_todense,
)
from xtrace.experimental.sparse.products import (
    bcoo_conv_general_dilated,
    bcoo_dot_general,
    bcoo_dot_general_sampled,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
)
from xtrace.experimental.sparse.random_arrays import random_bcoo
from xtrace.experimental.sparse.row_functions import (
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_extract,
    bcsr_sum_duplicates,
    bcsr_todense,
)
from xtrace.experimental.sparse.sparse_arrays import JAXSparse
from xtrace.experimental.sparse.sparsification import SparseTracer, sparsify


__all__ = [
    "BCOO", "BCSR", "COO", "CSC", "CSR", "CuSparseEfficiencyWarning", "JAXSparse", "SparseEfficiencyError",
    "SparseEfficiencyWarning", "SparseTracer",
    "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_conv_general_dilated", "bcoo_dot_general", "bcoo_dot_general_p",
    "bcoo_dot_general_sampled", "bcoo_dot_general_sampled_p", "bcoo_dynamic_slice", "bcoo_extract", "bcoo_extract_p",
    "bcoo_fromdense", "bcoo_fromdense_p", "bcoo_gather", "bcoo_multiply_dense", "bcoo_multiply_sparse",
    "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_sort_indices", "bcoo_sort_indices_p",
    "bcoo_spdot_general_p", "bcoo_squeeze", "bcoo_sum_duplicates", "bcoo_sum_duplicates_p", "bcoo_todense",
    "bcoo_todense_p", "bcoo_transpose", "bcoo_transpose_p", "bcoo_update_layout",
    "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general", "bcsr_dot_general_p", "bcsr_extract",
    "bcsr_extract_p", "bcsr_fromdense", "bcsr_fromdense_p", "bcsr_sum_duplicates", "bcsr_todense", "bcsr_todense_p",
    "coo_fromdense", "coo_fromdense_p", "coo_matmat", "coo_matmat_p", "coo_matvec", "coo_matvec_p", "coo_todense",
    "coo_todense_p", "csr_fromdense", "csr_fromdense_p", "csr_matmat", "csr_matmat_p", "csr_matvec", "csr_matvec_p",
    "csr_todense", "csr_todense_p",
    "empty", "eye", "grad", "jacfwd", "jacobian", "jacrev", "random_bcoo", "sparsify", "todense", "todense_p",
    "value_and_grad",
]

_make_public(globals(), __all__)

# These load at their first use.
with _late_imports(globals()):
    from xtrace.experimental.sparse import (
        ad as ad, api as api, bcoo as bcoo, bcsr as bcsr, coo as coo, csr as csr, linalg as linalg, random as random,
        transform as transform, util as util,
    )
