"""Running primitives by their compiled programs: ``jax.interpreters.xla``."""

from __future__ import annotations

from typing import Any

from xtrace._src.api.jit import jit
from xtrace._src.core.late import make_public as _make_public
from xtrace._src.core.primitive import Primitive
from xtrace._src.xla.clients import Client as Backend

__all__ = ["Backend", "apply_primitive"]


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """Compute the results of a primitive by its lowering rule.

    Args:
        prim: the primitive.
        args: the operands.
        params: its parameters.

    Returns:
        An array, or a list of arrays.

    Raises:
        NotImplementedError: the primitive has no lowering rule.

    Example:
        >>> xtrace.interpreters.xla.apply_primitive(lax.neg_p, jnp.ones(2))
        Array([-1., -1.], dtype=float32)
    """
    return jit(lambda *operands: prim.bind(*operands, **params))(*args)


_make_public(globals(), __all__)
