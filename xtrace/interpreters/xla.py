"""Evaluation of primitives by compiled programs (``jax.interpreters.xla``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xtrace._src.api.jit.jit import jit
from xtrace._src.core import dtypes
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.xla.clients import Client as Backend

__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers"]


class _DtypeHandlers(dict[type, Callable[[Any], Any]]):
    """Maps a class to the function that converts its values to a canonical dtype."""

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        return _to_canonical_dtype

    def __setitem__(self, kind: type, handler: Callable[[Any], Any]) -> None:
        # The handler is checked and not called: as in JAX, values of users' classes convert by __jax_array__.
        if not callable(handler):
            raise TypeError(f"canonicalize_dtype_handlers: a handler must be a function, got {abbreviate(handler)}")
        super().__setitem__(kind, handler)


def _to_canonical_dtype(value: Any) -> np.ndarray:
    host = np.asarray(value)
    return dtypes.cast(host, aval_of(host).dtype)


canonicalize_dtype_handlers = _DtypeHandlers()


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """Evaluate a primitive by its lowering rule.

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
