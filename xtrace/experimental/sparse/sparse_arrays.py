"""The base class of sparse arrays."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from xtrace._src.core.annotations import Shape
from xtrace._src.core.arrays import Array
from xtrace._src.core.integers import integer_tuple
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.trace import Tracer

__all__ = ["JAXSparse"]


def _make_refusal(operation: str) -> Any:
    """Return a method that raises NotImplementedError."""

    def refuse(self: JAXSparse, *_: object) -> NoReturn:
        raise self._refuse(operation)

    return refuse


class JAXSparse:
    """The base class of sparse arrays: a shape, and buffers with the stored elements.

    Args:
        args: the buffers.
        shape: the shape of the array.

    Example:
        >>> from xtrace.experimental import sparse
        >>> isinstance(sparse.eye(3), sparse.JAXSparse)
        True
    """

    __hash__ = None  # type: ignore[assignment]
    # NumPy's arrays defer to the operators of this class.
    __array_ufunc__ = None

    data: Array

    def __init__(self, args: tuple[Any, ...], *, shape: Any) -> None:
        self.shape: Shape = integer_tuple("shape", shape, function=type(self).__name__)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.data.dtype

    @property
    def nse(self) -> int:
        """The number of stored elements of each batch."""
        return int(self.data.shape[0])

    @property
    def size(self) -> int:
        """The number of elements of the dense array."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def T(self) -> Any:
        """The array with its axes in reverse order."""
        return self.transpose()

    def __len__(self) -> int:
        return self.shape[0]

    def _description(self) -> str:
        return f"nse={self.nse}"

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            text = f"{name}({self.dtype.name}{list(self.shape)}, {self._description()})"
        except Exception:
            # The leaves of a tree may be anything.
            return f"{name}(<invalid>)"
        return f"{type(self.data).__qualname__}[{text}]" if isinstance(self.data, Tracer) else text

    def _refuse(self, operation: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__} arrays have no {operation}; convert with todense(), or use BCOO, which has most "
            "operations"
        )

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Return the buffers, and the static description of the array."""
        raise NotImplementedError(f"{type(self).__name__} does not define tree_flatten")

    def todense(self) -> Array:
        """Return the dense array."""
        raise NotImplementedError(f"{type(self).__name__} does not define todense")

    def transpose(self, axes: Any = None) -> Any:
        """Return the array with its axes permuted; in reverse order without `axes`."""
        raise self._refuse("transpose")

    def block_until_ready(self) -> Any:
        """Wait until the buffers are computed, and return the array."""
        for leaf in pytree.tree_leaves(self):
            leaf.block_until_ready()
        return self

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """Return the sum over axes."""
        raise self._refuse("sum")

    __neg__, __pos__ = _make_refusal("negation"), _make_refusal("operator +")
    __matmul__ = _make_refusal("operator @")
    __rmatmul__ = _make_refusal("operator @ with a dense array on the left")
    __mul__ = __rmul__ = _make_refusal("operator *")
    __add__ = __radd__ = _make_refusal("operator +")
    __sub__ = __rsub__ = _make_refusal("operator -")
    __getitem__ = _make_refusal("indexing")


def infer_mapped_shape(shape: Shape, batch: Shape, rest: int) -> Shape:
    """Return the shape of a sparse array after `vmap` or a loop added or removed batch axes of its buffers.

    batch: the sizes of the buffers' batch axes, 1 for broadcast axes. rest: the number of sparse and dense axes.
    """
    missing = len(batch) + rest - len(shape)
    if missing >= 0:
        return (*batch[:missing], *shape)
    own = list(shape[: len(shape) - rest])
    # The removed axis is the first one without which the sizes fit.
    for _ in range(-missing):
        fitting = [
            i for i in range(len(own))
            if all(n in (1, size) for n, size in zip(batch, own[:i] + own[i + 1 :], strict=False))
        ]
        own.pop(fitting[0] if fitting else 0)
    return (*own, *shape[len(shape) - rest :])
