"""Pytree functions under JAX's short names: ``tree.map``, ``tree.flatten``, …"""

from xtrace.core.late import make_public as _make_public
from xtrace.core.pytree import static_field as static
from xtrace.core.pytree import tree_all as all
from xtrace.core.pytree import tree_broadcast as broadcast
from xtrace.core.pytree import tree_flatten as flatten
from xtrace.core.pytree import tree_flatten_with_path as flatten_with_path
from xtrace.core.pytree import tree_leaves as leaves
from xtrace.core.pytree import tree_leaves_with_path as leaves_with_path
from xtrace.core.pytree import tree_map as map
from xtrace.core.pytree import tree_map_with_path as map_with_path
from xtrace.core.pytree import tree_reduce as reduce
from xtrace.core.pytree import tree_reduce_associative as reduce_associative
from xtrace.core.pytree import tree_structure as structure
from xtrace.core.pytree import tree_transpose as transpose
from xtrace.core.pytree import tree_unflatten as unflatten

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map", "map_with_path",
    "reduce", "reduce_associative", "static", "structure", "transpose", "unflatten",
]  # fmt: skip

# These are too quick for it.
_make_public(globals(), set(__all__) - {"flatten", "leaves", "structure", "unflatten"})
