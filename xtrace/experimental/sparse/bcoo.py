"""BCOO arrays and their functions (``jax.experimental.sparse.bcoo``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.sparse.bcoo_primitives import *
from xtrace._src.sparse.contractions import *
from xtrace._src.sparse.layouts import *
from xtrace.experimental.sparse.arrays import BCOO as BCOO
from xtrace.experimental.sparse.arrays import bcoo_fromdense as bcoo_fromdense
from xtrace.experimental.sparse.conversions import *
from xtrace.experimental.sparse.indexing import *
from xtrace.experimental.sparse.layout_changes import *
from xtrace.experimental.sparse.products import *
from xtrace.experimental.sparse.sparse_arrays import *

_make_public(globals())
