"""Empty and identity arrays in any sparse format, and conversion from any format to dense arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.core.annotations import DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.integers import to_integer
from xtrace._src.core.pytrees import pytree
from xtrace._src.sparse.formula_primitives import formula_primitive
from xtrace.experimental.sparse.arrays import BCOO, BCSR
from xtrace.experimental.sparse.matrices import COO, CSC, CSR
from xtrace.experimental.sparse.sparse_arrays import JAXSparse
from xtrace.numpy.arrays.conversion import asarray

__all__ = ["empty", "eye", "todense", "todense_p"]

_FORMATS: dict[str, Any] = {"bcsr": BCSR, "bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}


def _todense(*buffers: Array, tree: Any) -> Array:
    """Convert a sparse array to a dense array; return a dense array unchanged."""
    mat = pytree.tree_unflatten(tree, buffers)
    return mat.todense() if isinstance(mat, JAXSparse) else mat


todense_p = formula_primitive("todense", ("tree",), _todense)


def todense(arr: Any) -> Array:
    """Convert a sparse array of any format to a dense array; return a dense array unchanged.

    Args:
        arr: a sparse array, or a dense one.

    Returns:
        A dense array.

    Raises:
        TypeError: `arr` is not an array.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.todense(sparse.eye(2))
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    arr = arr if isinstance(arr, JAXSparse) else asarray(arr)
    buffers, tree = pytree.tree_flatten(arr)
    return todense_p.bind(*buffers, tree=tree)


def _find_format(sparse_format: object) -> Any:
    if not isinstance(sparse_format, str) or sparse_format not in _FORMATS:
        raise ValueError(
            f"{called_function()}: sparse_format={abbreviate(sparse_format)} must be one of {list(_FORMATS)}"
        )
    return _FORMATS[sparse_format]


def empty(
    shape: Sequence[int], dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo", **kwds: Any,
) -> Any:
    """Create a sparse array of zeros without stored elements.

    Args:
        shape: the shape.
        dtype: the dtype; None for the default float.
        index_dtype: the dtype of the indices.
        sparse_format: ``"bcoo"``, ``"bcsr"``, ``"coo"``, ``"csr"`` or ``"csc"``.
        kwds: `n_batch`, `n_dense` and `nse`, for BCOO and BCSR.

    Returns:
        A sparse array.

    Raises:
        TypeError: the format does not have one of `kwds`.
        ValueError: there is no such format, or the shape does not fit it.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.empty((2, 3))
        BCOO(float32[2, 3], nse=0)
    """
    return _find_format(sparse_format)._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo", **kwds: Any,
) -> Any:
    """Create a sparse matrix with ones on a diagonal.

    Args:
        N: the number of rows.
        M: the number of columns; None for `N`.
        k: the number of the diagonal: 0 for the main diagonal, positive above it.
        dtype: the dtype; None for the default float.
        index_dtype: the dtype of the indices.
        sparse_format: ``"bcoo"``, ``"bcsr"``, ``"coo"``, ``"csr"`` or ``"csc"``.
        kwds: `n_batch` and `n_dense`, for ``"bcoo"``.

    Returns:
        A sparse matrix.

    Raises:
        TypeError: the format does not have one of `kwds`.
        ValueError: there is no such format.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.eye(2, 3, k=1).indices
        Array([[0, 1],
               [1, 2]], dtype=int32)
    """
    format_class = _find_format(sparse_format)
    rows = to_integer("N", N)
    columns = rows if M is None else to_integer("M", M)
    diagonal = to_integer("k", k)
    if format_class is BCSR:
        return BCSR.from_bcoo(BCOO._eye(rows, columns, diagonal, dtype=dtype, index_dtype=index_dtype, **kwds))
    return format_class._eye(rows, columns, diagonal, dtype=dtype, index_dtype=index_dtype, **kwds)
