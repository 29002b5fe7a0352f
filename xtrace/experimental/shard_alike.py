"""Arrays that the compiler shards alike (``jax.experimental.shard_alike``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.ops.shardings.sharding_groups import shard_alike

__all__ = ["shard_alike"]

_make_public(globals(), __all__)
