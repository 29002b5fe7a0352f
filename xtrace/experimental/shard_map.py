"""The older form of `xtrace.shard_map` (``jax.experimental.shard_map``)."""

from collections.abc import Callable as _Callable
from typing import Any as _Any

from xtrace._src.api.mapping.shard_map import shard_map as _shard_map
from xtrace._src.core.public_modules import make_public as _make_public

__all__ = ["shard_map"]


def shard_map(
    f: _Callable[..., _Any], mesh: _Any, in_specs: _Any, out_specs: _Any, check_rep: bool = True
) -> _Callable[..., _Any]:
    """Map a function over the shards of arrays; `xtrace.shard_map` is the newer form.

    Args:
        f: a function of shards, by position.
        mesh: a `Mesh` or an `AbstractMesh`.
        in_specs: a `PartitionSpec` for each argument, or a tree prefix.
        out_specs: a `PartitionSpec` for each result, or a tree prefix.
        check_rep: whether to check `out_specs` against the mesh axes that results vary along.

    Returns:
        A function of whole arrays, with the results of `f` put together.

    Raises:
        TypeError: `f` cannot be called, or a specification is not a PartitionSpec.
        ValueError: the specifications, the mesh and the shapes do not agree; see `xtrace.shard_map`.

    Example:
        >>> from xtrace.experimental.shard_map import shard_map
        >>> mesh = xtrace.sharding.Mesh(np.array(xtrace.devices()[:1]), ("x",))
        >>> shard_map(lambda x: lax.psum(x, "x"), mesh, xtrace.P("x"), xtrace.P())(jnp.arange(2))
        Array([0, 1], dtype=int32)
    """
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


_make_public(globals(), __all__)
