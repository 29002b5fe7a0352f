"""BCSR arrays and their functions (``jax.experimental.sparse.bcsr``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.sparse.rows_and_columns import bcsr_dot_general_p, bcsr_extract_p, bcsr_fromdense_p, bcsr_todense_p
from xtrace.experimental.sparse.arrays import BCSR, bcsr_fromdense
from xtrace.experimental.sparse.row_functions import (
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_extract,
    bcsr_sum_duplicates,
    bcsr_todense,
)
from xtrace.experimental.sparse.sparse_arrays import JAXSparse

__all__ = [
    "BCSR", "JAXSparse", "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general", "bcsr_dot_general_p",
    "bcsr_extract", "bcsr_extract_p", "bcsr_fromdense", "bcsr_fromdense_p", "bcsr_sum_duplicates", "bcsr_todense",
    "bcsr_todense_p",
]

_make_public(globals(), __all__)
