"""What XLA says about its approximate operations."""

from __future__ import annotations

from jaxlib import _jax


def top_k_candidates(size: int, rank: int, k: int, recall_target: float, size_override: int) -> int:
    """Return how many candidates for the `k` largest XLA leaves of `size` elements of an array of that rank."""
    return _jax.approx_top_k_reduction_output_size(size, rank, k, recall_target, False, size_override)[0]
