"""Functions of pytrees under short names (``jax.tree``)."""

from xtrace._src.core.function_names import copy_with_name as _renamed
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.pytrees import pytree as _pytree
from xtrace._src.core.pytrees import pytree_registration as _registration

all = _renamed(_pytree.tree_all, "all")
broadcast = _renamed(_pytree.tree_broadcast, "broadcast")
flatten = _renamed(_pytree.tree_flatten, "flatten")
flatten_with_path = _renamed(_pytree.tree_flatten_with_path, "flatten_with_path")
leaves = _renamed(_pytree.tree_leaves, "leaves")
leaves_with_path = _renamed(_pytree.tree_leaves_with_path, "leaves_with_path")
map = _renamed(_pytree.tree_map, "map")
map_with_path = _renamed(_pytree.tree_map_with_path, "map_with_path")
reduce = _renamed(_pytree.tree_reduce, "reduce")
reduce_associative = _renamed(_pytree.tree_reduce_associative, "reduce_associative")
static = _renamed(_registration.static_field, "static")
structure = _renamed(_pytree.tree_structure, "structure")
transpose = _renamed(_pytree.tree_transpose, "transpose")
unflatten = _renamed(_pytree.tree_unflatten, "unflatten")

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map", "map_with_path",
    "reduce", "reduce_associative", "static", "structure", "transpose", "unflatten",
]

_make_public(globals(), __all__, quick={"flatten", "leaves", "structure", "unflatten"})
