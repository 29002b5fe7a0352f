"""Random numbers from explicit keys, as ``jax.random`` has them: the same bits for the same key, shape and dtype."""

from xtrace.random.continuous import bits, normal, uniform
from xtrace.random.keys import (
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)

__all__ = [
    "PRNGKey", "bits", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "normal", "split", "uniform",
    "wrap_key_data",
]  # fmt: skip
