"""Functions in which explicit mesh axes are the compiler's, and functions in which the compiler's are explicit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xtrace._src.algebra.resharding import unsplit
from xtrace._src.api.jit import jit
from xtrace._src.core import pytree
from xtrace._src.core.arrays import Array
from xtrace._src.core.callables import check_callable, function_name
from xtrace._src.core.mesh import AxisType, naming_mesh
from xtrace._src.core.partition_spec import PartitionSpec
from xtrace._src.core.shardings import NamedSharding
from xtrace._src.ops.sharding_constraints import reshard


def auto_axes(
    f: Callable[..., Any] | None = None, /, *, axes: Any = None, out_sharding: Any = None
) -> Callable[..., Any]:
    """Return `f` as a function in which the compiler splits arrays over mesh axes that are explicit outside.

    Args:
        f: a function of pytrees of arrays.
        axes: the names of the axes; None for all.
        out_sharding: the shardings of the results, or a tree prefix of these; a call may give them by that name.

    Returns:
        A function with the arguments of `f`, whose results are split as `out_sharding` says.

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
    check_callable("auto_axes", f)
    given = out_sharding
    run = jit(lambda args, kwargs: f(*_unsplit_all(args), **_unsplit_all(kwargs)))

    @functools.wraps(f)
    def called(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        wanted = given if out_sharding is None else out_sharding
        if wanted is None:
            raise TypeError(
                "auto_axes: Missing required keyword argument: 'out_sharding' says how the results of "
                f"{function_name(f)} are split; give it to auto_axes or to the call"
            )
        return reshard(run(args, kwargs), wanted)

    return called


def explicit_axes(
    f: Callable[..., Any] | None = None, /, *, axes: Any = None, in_sharding: Any = None
) -> Callable[..., Any]:
    """Return `f` as a function in which mesh axes are explicit that the compiler splits arrays over outside.

    Args:
        f: a function of pytrees of arrays.
        axes: the names of the axes; None for all.
        in_sharding: the `PartitionSpec`s of the arguments by position, or a tree prefix of these; a call may give them
            by that name.

    Returns:
        A function with the arguments of `f`.

    Raises:
        TypeError: `f` cannot be called, or no `in_sharding` is given.
        ValueError: no mesh is in force.

    Example:
        >>> mesh = xtrace.make_mesh((1,), ("x",), axis_types=xtrace.sharding.AxisType.Auto)
        >>> types = xtrace.sharding.explicit_axes(lambda x: print(xtrace.typeof(x)) or x, in_sharding=xtrace.P("x"))
        >>> with xtrace.set_mesh(mesh): y = types(jnp.arange(2))
        int32[2@x]
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    check_callable("explicit_axes", f)
    given = in_sharding
    names = (axes,) if isinstance(axes, str) else axes

    def run(wanted: Any, args: Any, kwargs: Any) -> Any:
        mesh = naming_mesh().abstract_mesh
        explicit = mesh.update_axis_types(dict.fromkeys(names or mesh.axis_names, AxisType.Explicit))

        def place(one: Any) -> Any:
            spec = one.spec if isinstance(one, NamedSharding) else one
            return NamedSharding(explicit, spec)

        shardings = pytree.tree_map(place, wanted, is_leaf=lambda s: isinstance(s, PartitionSpec))
        return _unsplit_all(f(*reshard(args, shardings), **kwargs))

    jitted = jit(run, static_argnums=0)

    @functools.wraps(f)
    def called(*args: Any, in_sharding: Any = None, **kwargs: Any) -> Any:
        wanted = given if in_sharding is None else in_sharding
        if wanted is None:
            raise TypeError(
                "explicit_axes: Missing required keyword argument: 'in_sharding' says how the arguments of "
                f"{function_name(f)} are split; give it to explicit_axes or to the call"
            )
        return jitted(wanted, args, kwargs)

    return called


def _unsplit_all(tree: Any) -> Any:
    return pytree.tree_map(lambda x: unsplit(x) if isinstance(x, Array) else x, tree)
