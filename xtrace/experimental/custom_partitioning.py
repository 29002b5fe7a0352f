"""Functions partitioned by users (``jax.experimental.custom_partitioning``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.shardings.factor_rules import BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule
from xtrace._src.ops.shardings.custom_partitioning import custom_partitioning, custom_partitioning_p

__all__ = [
    "ArrayMapping", "BATCHING", "CompoundFactor", "SdyShardingRule", "custom_partitioning", "custom_partitioning_p",
]

_make_public(globals(), __all__)
