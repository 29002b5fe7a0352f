"""The operators of BCOO arrays: the operators of dense arrays under `sparsify`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from xtrace.experimental.sparse.sparse_arrays import JAXSparse
from xtrace.experimental.sparse.sparsification import sparsify


def apply_operator(operator: Callable[..., Any], x: Any, y: Any) -> Any:
    """Return ``operator(x, y)``. A dense operand is a constant for `sparsify`, and may be an exponent."""
    if isinstance(y, JAXSparse):
        if isinstance(x, JAXSparse):
            return sparsify(operator)(x, y)
        return sparsify(lambda y: operator(x, y))(y)
    return sparsify(lambda x: operator(x, y))(x)


class SparsifiedOperators:
    """The operators and methods of dense arrays, for sparse arrays."""

    def __abs__(self) -> Any:
        return sparsify(abs)(self)

    def __neg__(self) -> Any:
        return sparsify(lambda x: -x)(self)

    def __pos__(self) -> Any:
        return sparsify(lambda x: +x)(self)

    def __matmul__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x @ y, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x @ y, other, self)

    def __mul__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x * y, self, other)

    def __rmul__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x * y, other, self)

    def __truediv__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x / y, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x / y, other, self)

    def __add__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x + y, self, other)

    def __radd__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x + y, other, self)

    def __sub__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x - y, self, other)

    def __rsub__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x - y, other, self)

    def __pow__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x**y, self, other)

    def __rpow__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x**y, other, self)

    def __gt__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x > y, self, other)

    def __ge__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x >= y, self, other)

    def __lt__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x < y, self, other)

    def __le__(self, other: Any) -> Any:
        return apply_operator(lambda x, y: x <= y, self, other)

    def __eq__(self, other: object) -> Any:
        return apply_operator(lambda x, y: x == y, self, other)

    def __ne__(self, other: object) -> Any:
        return apply_operator(lambda x, y: x != y, self, other)

    __hash__ = None  # type: ignore[assignment]

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
