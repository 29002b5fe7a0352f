"""Functions and classes of pytrees (``jax.tree_util``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.pytrees.key_paths import *
from xtrace._src.core.pytrees.pytree import *
from xtrace._src.core.pytrees.pytree_registration import *

_make_public(globals(), quick={"tree_flatten", "tree_leaves", "tree_structure", "tree_unflatten"})
