"""A solver of sparse linear systems on the host: it orders the rows for a narrow band, and eliminates inside the band.

The order is Cuthill and McKee's, reversed (George and Liu, "Computer Solution of Large Sparse Positive Definite
Systems", 1981, chapter 4); the elimination has partial pivots (Golub and Van Loan, "Matrix Computations", section 4.3).
"""

from __future__ import annotations

from typing import Any

import numpy as np

_Vector = np.ndarray[Any, Any]


def _list_neighbours(rows: _Vector, columns: _Vector, size: int) -> tuple[_Vector, _Vector]:
    """Return the concatenated adjacency lists of a pattern's graph, and the start of each list."""
    is_edge = rows != columns
    ends = np.concatenate([rows[is_edge], columns[is_edge]]), np.concatenate([columns[is_edge], rows[is_edge]])
    pairs = np.unique(ends[0] * size + ends[1])
    starts = np.searchsorted(pairs, np.arange(size + 1) * size)
    return pairs % size, starts


def find_narrow_order(rows: _Vector, columns: _Vector, size: int) -> _Vector:
    """Return an order of a sparse matrix' rows and columns that moves its elements near the diagonal."""
    neighbours, starts = _list_neighbours(rows, columns, size)
    degrees = np.diff(starts)
    seen, order = np.zeros(size, bool), np.empty(size, np.int64)
    filled = 0
    for root in np.argsort(degrees, kind="stable"):
        if seen[root]:
            continue
        seen[root], order[filled] = True, root
        next_node, filled = filled, filled + 1
        while next_node < filled:
            node = order[next_node]
            new = neighbours[starts[node] : starts[node + 1]]
            new = new[~seen[new]]
            new = new[np.argsort(degrees[new], kind="stable")]
            seen[new] = True
            order[filled : filled + len(new)] = new
            next_node, filled = next_node + 1, filled + len(new)
    return order[::-1]


def _eliminate(band: _Vector, below: int, right: _Vector) -> bool:
    """Make a band matrix upper triangular in place, with its right side; return whether it is singular.

    Row i of `band` begins with column ``i - below``.
    """
    size, width = band.shape
    step = band.strides[1]
    for j in range(size):
        count = min(below + 1, size - j)
        # The rows from j on, each from column j on: in `band` that column moves left by one from row to row.
        window = np.lib.stride_tricks.as_strided(
            band[j, below:], (count, width - below), ((width - 1) * step, step)
        )
        pivot = int(np.argmax(np.abs(window[:, 0])))
        if window[pivot, 0] == 0 or not np.isfinite(window[pivot, 0]):
            return True
        if pivot:
            window[[0, pivot]] = window[[pivot, 0]]
            right[[j, j + pivot]] = right[[j + pivot, j]]
        factors = window[1:, 0] / window[0, 0]
        window[1:] -= np.multiply.outer(factors, window[0])
        right[j + 1 : j + count] -= factors * right[j]
    return False


def solve_sparse(data: Any, indices: Any, indptr: Any, right: Any, transpose: bool, reorder: bool) -> _Vector:
    """Return the solution of a linear system with a CSR matrix, or with its transpose; NaN if it is singular.

    The buffers may be vectors of any library.
    """
    data, indices, indptr, right = (np.asarray(x) for x in (data, indices, indptr, right))
    size = len(right)
    dtype = np.result_type(right.dtype, np.float64)
    rows = np.repeat(np.arange(size), np.diff(indptr))
    columns, values = indices[: len(rows)].astype(np.int64), data[: len(rows)].astype(dtype)
    inside = (columns >= 0) & (columns < size)
    rows, columns, values = rows[inside], columns[inside], values[inside]
    if transpose:
        rows, columns = columns, rows
    order = find_narrow_order(rows, columns, size) if reorder else np.arange(size)
    inverse = np.empty(size, np.int64)
    inverse[order] = np.arange(size)
    rows, columns = inverse[rows], inverse[columns]
    below, above = (int(np.max(d, initial=0)) for d in (rows - columns, columns - rows))
    # Row exchanges widen the band to the right.
    width = 2 * below + above + 1
    band = np.zeros((size, width), dtype)
    np.add.at(band, (rows, columns - rows + below), values)
    known = right[order].astype(dtype)
    solution = np.zeros(size + width, dtype)
    if _eliminate(band, below, known):
        return np.full(size, np.nan, right.dtype)
    for j in range(size - 1, -1, -1):
        later = band[j, below + 1 :] @ solution[j + 1 : j + width - below]
        solution[j] = (known[j] - later) / band[j, below]
    result = np.empty(size, right.dtype)
    result[order] = solution[:size].astype(right.dtype)
    return result
