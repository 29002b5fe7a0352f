"""Control dependencies: orders of operations beyond the order that their operands imply."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.avals import is_array_like
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.ffi import ffi_call

__all__ = ["control_dep", "schedule"]


def control_dep(src: ArrayLike, dst: ArrayLike) -> None:
    """Run the operation that computes `src` before the operation that computes `dst`.

    Args:
        src: an array, the result of the first operation.
        dst: an array, the result of the second operation; `src` must not depend on it.

    Raises:
        TypeError: an argument is not an array.

    Example:
        >>> def function(x):
        ...     first, second = jnp.sin(x), jnp.cos(x)
        ...     xtrace.experimental.control_deps.control_dep(first, second)
        ...     return first + second
        >>> "custom_call @control_dep(%0, %1)" in xtrace.lower(function, 1.0).as_text()
        True
    """
    for name, value in (("src", src), ("dst", dst)):
        if not is_array_like(value):
            raise TypeError(f"control_dep: {name} must be an array, got {abbreviate(value)} of type {type(value)}")
    ffi_call("control_dep", (), has_side_effect=True)(src, dst)


def schedule(ops: Sequence[ArrayLike]) -> None:
    """Run the operations that compute arrays in the order of the arrays.

    Args:
        ops: arrays, the results of the operations.

    Raises:
        TypeError: an element is not an array.

    Example:
        >>> def function(x):
        ...     parts = [jnp.sin(x), jnp.cos(x), jnp.tan(x)]
        ...     xtrace.experimental.control_deps.schedule(parts)
        ...     return sum(parts)
        >>> xtrace.lower(function, 1.0).as_text().count("@control_dep")
        2
    """
    for src, dst in itertools.pairwise(ops):
        control_dep(src, dst)


_make_public(globals(), __all__)
