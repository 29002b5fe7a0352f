"""XLA's answers about its approximate operations."""

from __future__ import annotations

from jaxlib import _jax


def count_top_k_candidates(size: int, rank: int, k: int, recall_target: float, size_override: int) -> int:
    """Return the number of candidates that XLA keeps, of `size` elements, for an approximate top `k`."""
    return _jax.approx_top_k_reduction_output_size(size, rank, k, recall_target, False, size_override)[0]
