"""`pmap`: a function mapped over an axis of arrays, one device for each index; and `smap`, its newer form."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.api.jit.jit import jit
from xtrace._src.api.mapping.shard_map import Infer, ShardMap, shard_map
from xtrace._src.core.avals import aval_of
from xtrace._src.core.callables import check_callable, function_name, wraps
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.integers import integer_tuple, to_integer
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.shardings.axis_names import name_tuple
from xtrace._src.core.shardings.mesh import Mesh, device_grid
from xtrace._src.core.shardings.partition_spec import PartitionSpec
from xtrace._src.core.trace import axis_environment, current_trace
from xtrace._src.ops.arrays.shape import expand_dims, squeeze
from xtrace._src.xla import clients

# The bound on axis numbers; no array has as many axes.
_MAX_AXES = 64


class _PmapAxis(str):
    """The name of an axis of `pmap`."""

    __slots__ = ()


def pmap(
    fun: Callable[..., Any], axis_name: Any = None, *, in_axes: Any = 0, out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (), devices: Sequence[Any] | None = None,
    backend: str | None = None, axis_size: int | None = None, donate_argnums: int | Sequence[int] = (),
) -> Callable[..., Any]:
    """Return `fun` mapped over an axis of its arguments, one device for each index.

    It is `jit` of a `shard_map` over a mesh with one axis; new programs should use `shard_map`.

    Args:
        fun: a function of pytrees of arrays.
        axis_name: the name of the mapped axis in collectives.
        in_axes: the mapped axis of each positional argument: an integer, None for an argument that is the same on all
            devices, or a tree prefix of the arguments with these as leaves.
        out_axes: the position of the mapped axis in the results, likewise.
        static_broadcasted_argnums: positions of arguments that are Python values, the same on all devices.
        devices: the devices; None for the first ones of the process.
        backend: the platform, such as "cpu".
        axis_size: the size of the mapped axis; needed only if no argument is mapped.
        donate_argnums: positions of arguments whose memory may be reused.

    Returns:
        A function of whole arrays.

    Raises:
        TypeError: `fun` is not callable.
        ValueError: mapped axes differ in size, or are larger than the number of devices.
        NotImplementedError: it is called inside another `pmap`.

    Example:
        >>> xtrace.pmap(lambda x: x + lax.psum(x, "i"), axis_name="i")(jnp.arange(1))
        Array([0], dtype=int32)
    """
    check_callable(fun)
    name = axis_name
    if axis_name is None or isinstance(axis_name, str):
        name = _PmapAxis("pmap_axis" if axis_name is None else axis_name)
    given_static = static_broadcasted_argnums
    static = (given_static,) if isinstance(given_static, int) else integer_tuple(
        "static_broadcasted_argnums", given_static
    )
    given_devices = None if devices is None else list(device_grid("pmap", devices).ravel())

    def mapped(*args: Any, **kwargs: Any) -> Any:
        _check_outermost(fun)
        if any(i >= len(args) for i in static):
            raise ValueError(
                f"pmapped function {function_name(fun)} has static_broadcasted_argnums={static} but was called with "
                f"only {len(args)} positional arguments. All static broadcasted arguments must be passed positionally."
            )
        fixed = {i % len(args): args[i] for i in static}
        given = tuple([x for i, x in enumerate(args) if i not in fixed])
        axes = _find_argument_axes(in_axes, given, kwargs, fixed, len(args))
        leaves, tree = pytree.tree_flatten((given, kwargs))
        places = [_check_axis(axis, x) for axis, x in zip(axes, leaves, strict=True)]
        size = _find_mapped_size(leaves, places, axis_size, function_name(fun))
        mesh = Mesh(np.array([*_choose_devices(given_devices, backend, size), None], object)[:-1], (name,))
        out_places: list[int | None] = []

        def body(*pieces: Any) -> Any:
            values = [x if i is None else squeeze(x, (i,)) for x, i in zip(pieces, places, strict=True)]
            inner, named = pytree.tree_unflatten(tree, values)
            rest = iter(inner)
            whole = [fixed[i] if i in fixed else next(rest) for i in range(len(args))]
            results, out_tree = pytree.tree_flatten(fun(*whole, **named))
            wanted = pytree.broadcast_prefix_to_structure(out_axes, out_tree, is_leaf=_is_none)
            out_places[:] = [
                None if axis is None else _check_out_axis(axis, x) for axis, x in zip(wanted, results, strict=True)
            ]
            parts = [x if i is None else expand_dims(x, (i,)) for x, i in zip(results, out_places, strict=True)]
            return pytree.tree_unflatten(out_tree, parts)

        specs = tuple([_make_spec(i, name) for i in places])
        call = ShardMap(body, lambda _: [_make_spec(i, name) for i in out_places], specs, mesh, frozenset(), False)
        return call.bind(*leaves)

    return jit(wraps(fun)(mapped), static_argnums=static, donate_argnums=donate_argnums)


def _check_outermost(fun: Callable[..., Any]) -> None:
    """Raise NotImplementedError inside of a mapped function."""
    if any(isinstance(own, _PmapAxis) for own, _ in axis_environment(current_trace.get())):
        raise NotImplementedError(
            f"pmap: {function_name(fun)} is mapped inside of another pmap, which is not supported; use shard_map over "
            "a mesh of two axes"
        )


def _is_none(axis: object) -> bool:
    return axis is None


def _make_spec(axis: int | None, name: Any) -> PartitionSpec:
    """Return the PartitionSpec of an array that is split along `axis`; None splits nothing."""
    return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, name)


def _find_argument_axes(
    in_axes: Any, given: tuple[Any, ...], kwargs: dict[str, Any], fixed: dict[int, Any], count: int
) -> list[Any]:
    """Return the mapped axis of each leaf of the arguments; keyword arguments are mapped along axis 0."""
    if isinstance(in_axes, (tuple, list)):
        if len(in_axes) not in (count, len(given)):
            raise ValueError(
                f"pmap: in_axes must have an entry for each of {count} arguments by position, got "
                f"{abbreviate(in_axes)}"
            )
        own = in_axes if len(in_axes) == len(given) else [a for i, a in enumerate(in_axes) if i not in fixed]
        in_axes = tuple(own)
    try:
        return [
            *pytree.broadcast_prefix(in_axes, given, is_leaf=_is_none), *[0] * len(pytree.tree_leaves(kwargs)),
        ]
    except ValueError as error:
        raise ValueError(f"pmap: in_axes must be a tree prefix of the arguments by position: {error}") from None


def _check_axis(axis: Any, leaf: Any) -> int | None:
    if axis is None:
        return None
    number, ndim = to_integer("in_axes", axis), aval_of(leaf).ndim
    if not -ndim <= number < ndim:
        raise ValueError(f"pmap: in_axes {number} is no axis of an argument of shape {aval_of(leaf).shape}")
    return number % ndim


def _check_out_axis(axis: Any, leaf: Any) -> int:
    number, ndim = to_integer("out_axes", axis), aval_of(leaf).ndim + 1
    if not -ndim <= number < ndim:
        raise ValueError(
            f"pmap: out_axes {number} is no axis of the mapped result, which has {ndim} with those of a result of "
            f"shape {aval_of(leaf).shape}. Write a number from 0 to {ndim - 1}"
        )
    return number % ndim


def _find_mapped_size(leaves: Sequence[Any], places: Sequence[int | None], axis_size: int | None, function: str) -> int:
    """Return the size of the mapped axis; ValueError if the arguments disagree."""
    sizes = {aval_of(x).shape[i] for x, i in zip(leaves, places, strict=True) if i is not None}
    if axis_size is not None:
        sizes.add(to_integer("axis_size", axis_size))
    if len(sizes) != 1:
        raise ValueError(
            f"pmap got inconsistent sizes for array axes to be mapped: the mapped axes of the arguments of {function} "
            f"have the sizes {sorted(sizes)}"
            if sizes else f"pmap: no argument of {function} is mapped; give axis_size"
        )
    return sizes.pop()


def _choose_devices(devices: Sequence[Any] | None, backend: str | None, size: int) -> Sequence[Any]:
    """Return the first `size` devices; ValueError if there are fewer."""
    known = clients.local_devices(backend) if devices is None else devices
    if size > len(known):
        raise ValueError(
            f"pmap: the mapped axis has the size {size}, but only {len(known)} devices are available. To try a program "
            f"on the CPU, start it with XTRACE_NUM_CPU_DEVICES={size}"
        )
    return known[:size]


def smap(
    f: Callable[..., Any] | None = None, /, *, in_axes: Any = Infer, out_axes: Any, axis_name: Any
) -> Callable[..., Any]:
    """Return `f` mapped over the pieces of arrays along one axis of the mesh in force.

    Args:
        f: a function of pieces, by position.
        in_axes: the axis along which each argument is split: an integer, None for no axis, or a tree prefix of the
            arguments with these as leaves. By default the types of the arguments determine it.
        out_axes: the axis along which the pieces of each result are concatenated, likewise.
        axis_name: the axis of the mesh of `set_mesh`.

    Returns:
        A function of whole arrays.

    Raises:
        TypeError: `f` is not callable.
        ValueError: no mesh is in force, or a dimension is no multiple of the number of parts.

    Example:
        >>> with xtrace.set_mesh(xtrace.make_mesh((1,), ("x",), (xtrace.sharding.AxisType.Auto,))):
        ...     xtrace.smap(lambda a: a * 2, in_axes=0, out_axes=0, axis_name="x")(jnp.arange(2))
        Array([0, 2], dtype=int32)
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if isinstance(axis_name, (tuple, list, set, frozenset)):
        raise TypeError(
            f"smap axis_name should be a `str` or a `Hashable`, the name of one axis, but got {abbreviate(axis_name)}"
        )
    name_tuple("smap", "axis_name", (axis_name,))
    in_specs = Infer if in_axes is Infer else _make_specs(in_axes, axis_name)
    return shard_map(f, in_specs=in_specs, out_specs=_make_specs(out_axes, axis_name), axis_names={axis_name})


def _make_specs(axes: Any, name: Any) -> Any:
    def specification(axis: Any) -> PartitionSpec:
        place = axis if axis is None else to_integer("in_axes and out_axes", axis)
        if place is not None and not 0 <= place < _MAX_AXES:
            raise ValueError(
                f"smap: in_axes and out_axes must be axes counted from 0, or None, got {abbreviate(axis)}"
            )
        return _make_spec(place, name)

    return pytree.tree_map(specification, axes, is_leaf=_is_none)
