"""Attributes of operations for XLA's passes (``jax.experimental.xla_metadata``)."""

from __future__ import annotations

from typing import Any

from xtrace._src.core.diagnostics.positions import Annotation
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.pytrees import pytree
from xtrace._src.ops.calls.metadata import xla_metadata_value_p
from xtrace._src.transforms.scopes import annotate
from xtrace.numpy.arrays.conversion import asarray

__all__ = ["set_xla_metadata"]


def to_text_pairs(values: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Convert the values of a dict to text, and return its items; booleans are in lower case, as in XLA."""
    return tuple((key, str(v).lower() if isinstance(v, bool) else str(v)) for key, v in values.items())


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Set frontend attributes of the operations that compute `x`, or of all operations in a block.

    Args:
        x: a pytree of arrays; None for a context manager, which decorates functions, too.
        kwargs: the attributes; other values than strings are converted by `str`. In a block, None removes an attribute
            of the block around it.

    Returns:
        The pytree of the results of operations with these attributes; or the context manager.

    Raises:
        TypeError: a leaf of x is not an array.

    Example:
        >>> from xtrace.experimental.xla_metadata import set_xla_metadata
        >>> def f(x):
        ...     with set_xla_metadata(note="a"):
        ...         y = jnp.sin(x)
        ...     return set_xla_metadata(y + y, note="b")
        >>> [line.count("note") for line in xtrace.lower(f, 1.0).as_text().splitlines() if "note" in line]
        [1, 1]
    """
    pairs = to_text_pairs(kwargs)
    if x is None:
        return annotate(Annotation(tuple((key, None if kwargs[key] is None else text) for key, text in pairs)))
    if not pairs:
        return x
    return pytree.tree_map(lambda leaf: xla_metadata_value_p.bind(asarray(leaf), xla_metadata_kvs=pairs), x)


_make_public(globals(), __all__)
