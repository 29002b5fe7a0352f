"""Sparse arrays (``jax.experimental.sparse``)."""
# ruff: noqa: I001

from xtrace._late_imports import late_imports as _late_imports
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.sparse.contractions import *
from xtrace._src.sparse.bcoo_primitives import *
from xtrace._src.sparse.layouts import *
from xtrace._src.sparse.rows_and_columns import *
from xtrace.experimental.sparse.arrays import *
from xtrace.experimental.sparse.conversions import *
from xtrace.experimental.sparse.creation import *
from xtrace.experimental.sparse.derivatives import *
from xtrace.experimental.sparse.indexing import *
from xtrace.experimental.sparse.layout_changes import *
from xtrace.experimental.sparse.matrices import *
from xtrace.experimental.sparse.products import *
from xtrace.experimental.sparse.random_arrays import *
from xtrace.experimental.sparse.row_functions import *
from xtrace.experimental.sparse.sparse_arrays import *
from xtrace.experimental.sparse.sparsification import *

_make_public(globals())

# These load at their first use.
with _late_imports(globals()):
    from xtrace.experimental.sparse import (
        ad as ad, api as api, bcoo as bcoo, bcsr as bcsr, coo as coo, csr as csr, linalg as linalg, random as random,
        transform as transform, util as util,
    )
