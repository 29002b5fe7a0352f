"""Changing the types of mesh axes inside of functions: explicit axes to Auto, and Auto axes to explicit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from xtrace._src.algebra.resharding import cast_to
from xtrace._src.api.compilation.sharding_assignment import ShardingTree
from xtrace._src.api.jit.jit import jit
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of, is_array_like
from xtrace._src.core.callables import check_callable, function_name, wraps
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.name_suggestions import suggest_name
from xtrace._src.core.errors import NoMeshError
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.shardings.axis_names import name_tuple
from xtrace._src.core.shardings.mesh import AbstractMesh, AxisType, naming_mesh, override_abstract_mesh
from xtrace._src.core.shardings.partition_spec import PartitionSpec
from xtrace._src.core.shardings.shardings import NamedSharding
from xtrace._src.ops.shardings.sharding_constraints import reshard


def auto_axes(
    f: Callable[..., Any] | None = None, /, *, axes: Any = None, out_sharding: Any = None
) -> Callable[..., Any]:
    """Return `f` as a function in which mesh axes have the type Auto: the compiler shards arrays over them.

    Args:
        f: a function of pytrees of arrays.
        axes: the names of the axes; None for all.
        out_sharding: the shardings of the results, or a tree prefix of these; a call may give the keyword instead.

    Returns:
        A function with the arguments of `f`, whose results have the shardings `out_sharding`.

    Raises:
        TypeError: `f` cannot be called, or no `out_sharding` is given.

    Example:
        >>> mesh = xtrace.make_mesh((1,), ("x",))
        >>> place = xtrace.NamedSharding(mesh, xtrace.P("x"))
        >>> double = xtrace.sharding.auto_axes(lambda x: x + x, out_sharding=place)
        >>> xtrace.typeof(double(xtrace.device_put(np.arange(2), place)))
        ShapedArray(int32[2@x])
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    check_callable(f)

    def run(change: _Change, out_sharding: ShardingTree, args: Any, kwargs: Any) -> Any:
        args, kwargs = _cast_all((args, kwargs), change.inner)
        with override_abstract_mesh(change.inner):
            result = f(*args, **kwargs)
        return reshard(result, _on_mesh(out_sharding, change.outer))

    return _jit_on_axes("auto_axes", f, run, axes, AxisType.Auto, "out_sharding", out_sharding)


def explicit_axes(
    f: Callable[..., Any] | None = None, /, *, axes: Any = None, in_sharding: Any = None
) -> Callable[..., Any]:
    """Return `f` as a function in which mesh axes of type Auto have the type Explicit.

    Args:
        f: a function of pytrees of arrays.
        axes: the names of the axes; None for all.
        in_sharding: the `PartitionSpec`s of the positional arguments, or a tree prefix of these; a call may give the
            keyword instead.

    Returns:
        A function with the arguments of `f`.

    Raises:
        TypeError: `f` cannot be called, or gets positional arguments without an `in_sharding`.
        ValueError: no mesh is in force.

    Example:
        >>> mesh = xtrace.make_mesh((1,), ("x",), axis_types=xtrace.sharding.AxisType.Auto)
        >>> types = xtrace.sharding.explicit_axes(lambda x: print(xtrace.typeof(x)) or x, in_sharding=xtrace.P("x"))
        >>> with xtrace.set_mesh(mesh): y = types(jnp.arange(2))
        int32[2@x]
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    check_callable(f)

    def run(change: _Change, in_sharding: ShardingTree, args: Any, kwargs: Any) -> Any:
        with override_abstract_mesh(change.inner):
            result = f(*reshard(args, _on_mesh(in_sharding, change.inner)), **_cast_all(kwargs, change.inner))
        return _cast_all(result, change.outer)

    return _jit_on_axes("explicit_axes", f, run, axes, AxisType.Explicit, "in_sharding", in_sharding)


def _jit_on_axes(
    name: str, f: Callable[..., Any], run: Callable[..., Any], axes: Any, axis_type: AxisType, keyword: str, given: Any
) -> Callable[..., Any]:
    """Return `f` as ``run(change, shardings, args, kwargs)``; a call may give the shardings as `keyword` instead."""
    jitted = jit(run, static_argnums=(0, 1), inline=True)
    described = "results" if keyword == "out_sharding" else "arguments"

    @wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        wanted = kwargs.pop(keyword, None)
        wanted = given if wanted is None else wanted
        if wanted is None and (args or keyword == "out_sharding"):
            raise TypeError(
                f"{name}: Missing required keyword argument: '{keyword}' says how the {described} of "
                f"{function_name(f)} are sharded; give it to {name} or to the call"
            )
        change = _make_change(name, axes, axis_type, (args, kwargs, wanted))
        return jitted(change, _to_sharding_tree(wanted), args, kwargs)

    return call


class _Change(NamedTuple):
    """The mesh axes outside and inside of a function, which differ in their types."""

    outer: AbstractMesh
    inner: AbstractMesh


def _make_change(function: str, names: Any, kind: AxisType, trees: Any) -> _Change:
    """Return the change of the named axes to the type `kind`, on the mesh in force, or else the mesh of a leaf.

    names: a name, several names, or None for all axes that are not manual. Raises NoMeshError if there is no mesh, and
    ValueError for unknown names.
    """
    outer = naming_mesh().abstract_mesh
    for leaf in pytree.tree_leaves(trees) if outer.empty else ():
        sharding = aval_of(leaf).explicit_sharding if is_array_like(leaf) else leaf
        if isinstance(sharding, NamedSharding):
            outer = sharding.mesh.abstract_mesh
            break
    if outer.empty:
        raise NoMeshError(f"{function}: there is no mesh whose axes change; write with xtrace.set_mesh(mesh):")
    given = () if names is None else name_tuple(function, "axes", names)
    unknown = [name for name in given if name not in outer.axis_names]
    if unknown:
        raise ValueError(
            f"{function}: axes {unknown} are not in the mesh, whose axes are {outer.axis_names}; for "
            f"{abbreviate(unknown[0])} {suggest_name(unknown[0], outer.axis_names)}"
        )
    changed = given or tuple([name for name in outer.axis_names if name not in outer.manual_axes])
    return _Change(outer, outer.update_axis_types(dict.fromkeys(changed, kind)))


def _to_sharding_tree(shardings: Any) -> ShardingTree:
    leaves, tree = pytree.tree_flatten(shardings)
    return ShardingTree(tuple(leaves), tree)


def _on_mesh(shardings: ShardingTree, mesh: AbstractMesh) -> Any:
    """Return a tree of shardings with each `PartitionSpec` on the axes of `mesh`."""
    leaves = [NamedSharding(mesh, s) if isinstance(s, PartitionSpec) else s for s in shardings.leaves]
    return pytree.tree_unflatten(shardings.tree, leaves)


def _cast_all(tree: Any, mesh: AbstractMesh) -> Any:
    return pytree.tree_map(lambda x: cast_to(x, mesh) if isinstance(x, Array) else x, tree)
