"""`checkpoint_name`: names of values, which policies of `checkpoint` select."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.algebra.vector_space import IN_PLACE
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.primitive import primitive
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.shardings.sharding_rules import same
from xtrace._src.core.shardings.sum_rules import linear_in_all


def _name_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, name: str) -> tuple[Any, Any]:
    return checkpoint_name.bind_positional(primals, (name,)), tangents[0]


def _name_abstract(x: ShapedArray, *, name: str) -> ShapedArray:
    """Return the operand unchanged, with a name for the policies of `checkpoint`."""
    return x


@primitive(
    ("name",), name="name", sharding=same, sums=linear_in_all, abstract=_name_abstract,
    emit=lambda builder, x, *, name: x, jvp=_name_jvp, batch=IN_PLACE,
)
def checkpoint_name(x: ArrayLike, name: str) -> Any:
    """Mark a value with a name for the policies of `checkpoint`.

    Args:
        x: an array or a tree of arrays.
        name: the name.

    Returns:
        `x`, unchanged.

    Raises:
        TypeError: `name` is no string, or `x` holds a leaf that is no array.

    Example:
        >>> xtrace.ad_checkpoint.checkpoint_name(jnp.ones(2), "hidden")
        Array([1., 1.], dtype=float32)
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name: name must be a string, got {abbreviate(name)}")
    leaves, tree = pytree.tree_flatten(x)
    return pytree.tree_unflatten(tree, [checkpoint_name.bind_positional((leaf,), (name,)) for leaf in leaves])
