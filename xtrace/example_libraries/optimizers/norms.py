"""The norm of a tree of arrays."""

from __future__ import annotations

from typing import Any

from xtrace._src.core.pytrees import pytree
from xtrace.numpy.elementwise.ufuncs import sqrt
from xtrace.numpy.indexing.where import where
from xtrace.numpy.products.contraction import vdot

__all__ = ["clip_grads", "l2_norm"]


def l2_norm(tree: Any) -> Any:
    """Compute the Euclidean norm of all numbers in a pytree of arrays.

    Args:
        tree: a pytree of arrays.

    Returns:
        A scalar.

    Raises:
        TypeError: a leaf is not an array.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> optimizers.l2_norm({"a": jnp.array([3.0, 0.0]), "b": 4.0})
        Array(5., dtype=float32)
    """
    return sqrt(sum(vdot(x, x) for x in pytree.tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Scale a pytree of arrays to a norm of at most `max_norm`.

    Args:
        grad_tree: a pytree of arrays.
        max_norm: a positive number.

    Returns:
        A pytree of arrays; unchanged if the norm is less than max_norm.

    Raises:
        TypeError: a leaf is not an array.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> optimizers.clip_grads([jnp.array([3.0, 4.0])], 1.0)
        [Array([0.6, 0.8], dtype=float32)]
    """
    norm = l2_norm(grad_tree)
    return pytree.tree_map(lambda x: where(norm < max_norm, x, x * (max_norm / norm)), grad_tree)
