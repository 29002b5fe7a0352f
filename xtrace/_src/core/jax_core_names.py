"""Names of ``jax.core`` that have no other home here."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from xtrace._src.core.avals import AbstractValue as AbstractValue
from xtrace._src.core.jaxprs.ir import Atom
from xtrace._src.core.sizes import has_symbolic, is_symbolic, largest, smallest
from xtrace._src.core.trace import Trace, Tracer, base_trace, use_trace

__all__ = ["AbstractValue", "Atom", "ParamDict", "Trace", "Tracer", "Value", "eval_context", "max_dim", "min_dim"]

ParamDict = dict[str, Any]
Value = Any


def eval_context() -> AbstractContextManager[Trace]:
    """Return a context that evaluates operations on concrete values at once, also while tracing.

    Returns:
        A context manager.

    Example:
        >>> with xtrace.core.eval_context(): jnp.ones(2).sum()
        Array(2., dtype=float32)
    """
    return use_trace(base_trace)


def max_dim(d1: Any, d2: Any) -> Any:
    """Return the larger of two sizes.

    Args:
        d1, d2: integers or symbolic dimensions.

    Returns:
        An int, or a symbolic dimension.

    Raises:
        TypeError: a size is no number.

    Example:
        >>> xtrace.core.max_dim(2, 3)
        3
    """
    return largest(d1, d2)


def min_dim(d1: Any, d2: Any) -> Any:
    """Return the smaller of two sizes.

    Args:
        d1, d2: integers or symbolic dimensions.

    Returns:
        An int, or a symbolic dimension.

    Raises:
        TypeError: a size is no number.

    Example:
        >>> xtrace.core.min_dim(2, 3)
        2
    """
    return smallest(d1, d2)


def is_concrete(x: Any) -> bool:
    """Return whether the value of `x` is known while a function is traced.

    Args:
        x: any object.

    Returns:
        A bool; False for an array that is traced or mapped.

    Example:
        >>> xtrace.core.is_concrete(jnp.ones(2)), xtrace.jit(xtrace.core.is_concrete)(1.0)
        (True, Array(False, dtype=bool))
    """
    return not isinstance(x, Tracer) or x.to_concrete_value() is not None


def is_constant_dim(d: Any) -> bool:
    """Return whether a size is an integer, and not symbolic."""
    return not is_symbolic(d)


def is_constant_shape(s: Iterable[Any]) -> bool:
    """Return whether all sizes of a shape are integers, and none is symbolic."""
    return not has_symbolic(s)
