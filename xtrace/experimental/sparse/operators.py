"""The operators of BCOO arrays: the operators of dense arrays under `sparsify`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from xtrace.experimental.sparse.sparse_arrays import JAXSparse
from xtrace.experimental.sparse.sparsification import sparsify


def apply_operator(function: Callable[..., Any], x: Any, y: Any) -> Any:
    """Return ``function(x, y)``. A dense operand is a constant for `sparsify`, and may be an exponent."""
    if isinstance(y, JAXSparse):
        if isinstance(x, JAXSparse):
            return sparsify(function)(x, y)
        return sparsify(lambda y: function(x, y))(y)
    return sparsify(lambda x: function(x, y))(x)


def _make_operators(function: Callable[..., Any]) -> tuple[Any, Any]:
    """Return the methods of an operator, for an array on the left and on the right."""
    return (
        lambda self, other: apply_operator(function, self, other),
        lambda self, other: apply_operator(function, other, self),
    )


class SparsifiedOperators:
    """The operators and methods of dense arrays, for sparse arrays."""

    __matmul__, __rmatmul__ = _make_operators(operator.matmul)
    __mul__, __rmul__ = _make_operators(operator.mul)
    __truediv__, __rtruediv__ = _make_operators(operator.truediv)
    __add__, __radd__ = _make_operators(operator.add)
    __sub__, __rsub__ = _make_operators(operator.sub)
    __pow__, __rpow__ = _make_operators(operator.pow)
    __gt__ = _make_operators(operator.gt)[0]
    __ge__ = _make_operators(operator.ge)[0]
    __lt__ = _make_operators(operator.lt)[0]
    __le__ = _make_operators(operator.le)[0]
    __eq__ = _make_operators(operator.eq)[0]
    __ne__ = _make_operators(operator.ne)[0]
    __hash__ = None  # type: ignore[assignment]

    def __abs__(self) -> Any:
        return sparsify(abs)(self)

    def __neg__(self) -> Any:
        return sparsify(lambda x: -x)(self)

    def __pos__(self) -> Any:
        return sparsify(lambda x: +x)(self)

    def __getitem__(self, item: Any) -> Any:
        return sparsify(lambda x: x[item])(self)

    def __iter__(self) -> Iterator[Any]:
        shape: Any = getattr(self, "shape", ())
        if not shape:
            raise TypeError("iteration over a sparse scalar")
        return iter([self[i] for i in range(shape[0])])

    def reshape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the array in another shape."""
        return sparsify(lambda x: x.reshape(*args, **kwargs))(self)

    def astype(self, *args: Any, **kwargs: Any) -> Any:
        """Return the array in another dtype."""
        return sparsify(lambda x: x.astype(*args, **kwargs))(self)

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """Return the sum over axes; the sum over all axes is a dense scalar."""
        return sparsify(lambda x: x.sum(*args, **kwargs))(self)
