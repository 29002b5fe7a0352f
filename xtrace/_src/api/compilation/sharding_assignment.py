"""The devices of a program: from its arguments, from given shardings, or from the mesh in force."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.api.compilation.layout_assignment import assign_layouts
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, Jaxpr
from xtrace._src.core.memory_spaces import MemorySpace, find_memory_space
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.shardings.memory_layout import Format, Layout
from xtrace._src.core.shardings.mesh import AbstractMesh, BaseMesh, Mesh, PlannedDevice, context_mesh
from xtrace._src.core.shardings.partition_spec import PartitionSpec
from xtrace._src.core.shardings.requested_shardings import requested_sharding
from xtrace._src.core.shardings.shardings import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    explicit_part,
    unconstrained_dimensions,
)
from xtrace._src.core.tables import memoize_by_owner
from xtrace._src.runtime.arrays import ConcreteArray, mesh_sharding
from xtrace._src.runtime.execute import Assignment
from xtrace._src.runtime.transfer import committed_sharding, current_device
from xtrace._src.xla import clients
from xtrace._src.xla.clients import Device

with late_modules(globals()):
    from xtrace._src.api.compilation.mesh_agreement import check_meshes

_Names = Callable[[], Sequence[str]]


class ShardingTree(NamedTuple):
    """A user's shardings of arguments or results: the leaves of a tree prefix, and its structure."""

    leaves: tuple[Any, ...]
    tree: Any

    @property
    def is_empty(self) -> bool:
        """Whether all leaves are None."""
        return all(leaf is None for leaf in self.leaves)

    @property
    def has_memory(self) -> bool:
        """Whether a leaf has a kind of memory."""
        return any(isinstance(_get_sharding(leaf), Sharding) for leaf in self.leaves)

    @property
    def has_layout(self) -> bool:
        """Whether a leaf has a layout."""
        return any(_get_layout(leaf) is not None for leaf in self.leaves)

    def list_leaf_layouts(self, full_tree: Any) -> list[Any]:
        """Return the layout for each leaf of a tree of the structure `full_tree`, or None."""
        return list(map(_get_layout, self._broadcast(full_tree)))

    def _broadcast(self, full_tree: Any) -> list[Any]:
        """Return, for each leaf of `full_tree`, the prefix's leaf above it; ValueError if the prefix does not fit."""
        prefix = pytree.tree_unflatten(self.tree, self.leaves)
        return pytree.broadcast_prefix_to_structure(prefix, full_tree, is_leaf=_is_none)

    def list_leaf_spaces(self, full_tree: Any) -> list[MemorySpace | None]:
        """Return the memory for each leaf of a tree of the structure `full_tree`, or None; ValueError if it differs."""
        given = map(_get_sharding, self._broadcast(full_tree))
        kinds = [leaf.memory_kind if isinstance(leaf, Sharding) else None for leaf in given]
        return [find_memory_space(kind) if kind is not None else None for kind in kinds]

    def list_leaf_shardings(self, argument: str, full_tree: Any) -> tuple[Sharding | None, ...]:
        """Return the sharding for each leaf of a tree of the structure `full_tree`, or None.

        Raises ValueError, which names the `argument` of `jit`, if the prefix does not fit.
        """
        try:
            given = self._broadcast(full_tree)
        except ValueError as error:
            what = "positional arguments tuple" if argument == "in_shardings" else "result"
            raise ValueError(
                f"jit: {argument} specification must be a tree prefix of the {what}, pytree structure error: "
                f"{error}. Give one sharding for all, or a tree like the {what}"
            ) from None
        shardings = tuple([
            requested_sharding(argument, leaf, entered=False, function="jit", takes_layouts=True) for leaf in given
        ])
        for sharding in shardings if argument == "out_shardings" else ():
            if sharding is not None and unconstrained_dimensions(sharding):
                raise ValueError(
                    f"jit: Unconstrained dims are not allowed when passed to out_shardings, got {sharding}; "
                    "constrain the result with xtrace.lax.with_sharding_constraint in the function"
                )
        return shardings


def _is_none(leaf: object) -> bool:
    return leaf is None


def _get_sharding(leaf: Any) -> Any:
    return leaf.sharding if isinstance(leaf, Format) else leaf


def _get_layout(leaf: Any) -> Any:
    return leaf.layout if isinstance(leaf, Format) else None


NO_SHARDINGS = ShardingTree((None,), pytree.tree_structure(0))


def make_sharding_tree(argument: str, shardings: Any) -> ShardingTree:
    """Return the shardings in an `argument` of `jit` as a `ShardingTree`; TypeError for a leaf that is no sharding."""
    if argument == "in_shardings" and isinstance(shardings, list):
        # The structure of positional arguments is a tuple.
        shardings = tuple(shardings)
    leaves, tree = pytree.tree_flatten(shardings, is_leaf=_is_none)
    for leaf in leaves:
        if isinstance(leaf, Layout) or leaf is Layout.AUTO:
            raise ValueError(
                f"jit: {argument} does not take layouts alone, got {leaf}; write Format({leaf}, sharding), with "
                "xtrace.experimental.layout.Format"
            )
        if leaf is not None and not isinstance(leaf, (Sharding, PartitionSpec, Format)):
            raise TypeError(
                f"jit: {argument} leaf specifications are expected to be shardings such as "
                f"xtrace.NamedSharding(mesh, xtrace.P('x')) or x.sharding, PartitionSpec instances or None, but got "
                f"{abbreviate(leaf)}"
            )
    return ShardingTree(tuple(leaves), tree)


def apply_shardings_to_types(
    avals: list[Any], shardings: Sequence[Sharding | None], values: Sequence[Any]
) -> list[Any]:
    """Return the types of arguments with the split of their given shardings over explicit axes.

    The types of committed arrays have their split already.
    """
    if not shardings:
        return avals
    rows = zip(avals, shardings, map(committed_sharding, values), strict=True)
    return [
        a if s is None or own is not None or explicit_part(s, a.ndim) is None
        else a.update(sharding=explicit_part(s, a.ndim))
        for a, s, own in rows
    ]


def read_device_option(
    device: Device | None, backend: Any, in_shardings: object, out_shardings: object
) -> Device | None:
    """Return the device of `jit`'s arguments `device` or `backend`; None without them. Errors for invalid ones."""
    if (device is not None or backend is not None) and (in_shardings is not None or out_shardings is not None):
        raise ValueError("jit: in_shardings and out_shardings say where the program runs; leave out device and backend")
    if device is not None and backend is not None:
        raise ValueError(f"jit: device ({device}) and backend ({abbreviate(backend)}) cannot both be given")
    if device is not None and not isinstance(device, clients.Device):
        raise TypeError(
            f"jit: device must be one of xtrace.devices(), got {abbreviate(device)}; backend takes a platform's name"
        )
    if backend is not None and not isinstance(backend, str):
        raise TypeError(f"jit: backend must be the name of a platform, such as 'cpu', got {abbreviate(backend)}")
    return clients.local_devices(backend)[0] if backend is not None else device


class _Source(NamedTuple):
    """A source of a program's devices, such as an array or a sharding, with its description for messages."""

    devices: tuple[Device, ...]
    description: Callable[[], str]


def assign(
    values: Sequence[Any], function: str, names: _Names | None = None, jaxpr: Jaxpr | None = None,
    in_shardings: Sequence[Sharding | None] = (), out_shardings: Sequence[Sharding | None] = (),
    out_avals: Sequence[ShapedArray] = (), unread: frozenset[int] = frozenset(), out_names: _Names | None = None,
    constants: Sequence[Any] = (), of_user: bool = False, in_layouts: Sequence[Any] = (),
    out_layouts: Sequence[Any] = (),
) -> Assignment:
    """Return the devices of a program on `values`, and the shardings and layouts of its inputs and results.

    jaxpr: the program, whose equations may name a mesh; `constants` are the arrays it closes over. unread: the
    positions of values that the program does not read, whose devices do not count. in_shardings, out_shardings,
    in_layouts, out_layouts: the user's. names, out_names: functions that return the names of the values and of the
    results, for messages. of_user: whether a user calls the program.

    Raises ValueError if arguments or shardings are on different devices.
    """
    assignment = _assign_devices(
        values, function, names, jaxpr, in_shardings, out_shardings, out_avals, unread, out_names, constants, of_user
    )
    if jaxpr is None:
        return assignment
    layouts = assign_layouts(values, function, jaxpr, in_layouts, out_layouts, names, out_names)
    return assignment if layouts is None else assignment._replace(layouts=layouts)


def _assign_devices(
    values: Sequence[Any], function: str, names: _Names | None, jaxpr: Jaxpr | None,
    in_shardings: Sequence[Sharding | None], out_shardings: Sequence[Sharding | None],
    out_avals: Sequence[ShapedArray], unread: frozenset[int], out_names: _Names | None, constants: Sequence[Any],
    of_user: bool,
) -> Assignment:
    """Return the devices of a program and its shardings; the arguments are those of `assign`."""
    meshes = named_meshes = find_meshes(jaxpr) if jaxpr is not None else ()
    # An argument with one given device is moved there from any device.
    unread |= frozenset([i for i, s in enumerate(in_shardings) if isinstance(s, SingleDeviceSharding)])
    # A given sharding takes precedence over the argument's; `_choose_input_shardings` compares the two.
    given_for = frozenset([i for i, s in enumerate(in_shardings) if s is not None and not _is_abstract(s)])
    sources = [*_find_sources(values, function, names, unread | given_for), *_find_given("in_shardings", in_shardings)]
    sources += [
        *_find_given("out_shardings", out_shardings), *[_get_mesh_source("the function's", mesh) for mesh in meshes]
    ]
    closed = [mesh_sharding(c) if type(c) is ConcreteArray else None for c in constants]
    # A constant on the same devices in another order is moved.
    places = {*sources[0].devices} if sources else set()
    sources += _find_given(
        "an array that the function closes over", [s for s in closed if s is not None and {*s.devices} != places]
    )
    if not context_mesh().empty:
        sources.append(_get_mesh_source("the context's", context_mesh()))
    if not sources and any(a.explicit_sharding is not None for a in out_avals):
        # The types of results have a mesh, whose devices can only come from values that are not read.
        unread = frozenset()
        sources = list(_find_sources(values, function, names, unread))
    if not sources:
        planned = _plan_mesh(values, in_shardings, out_shardings)
        if planned is not None:
            meshes, sources = (planned,), [_get_mesh_source("the", planned)]
    first = sources[0] if sources else None
    for source in sources:
        if first is not None and source.devices != first.devices:
            raise ValueError(
                f"Received incompatible devices for jitted computation {function}: {first.description()}, and "
                f"{source.description()}. Both were put there explicitly; move one with "
                "xtrace.device_put(x, device), or use one mesh for both."
            )
    if first is None:
        return Assignment((current_device(),))
    meshes_of_results: Sequence[AbstractMesh | None] = [None] * len(out_avals)
    if jaxpr is not None:
        own = [committed_sharding(value) for value in values]
        others = [mesh.abstract_mesh for mesh in named_meshes]
        meshes_of_results = check_meshes(function, jaxpr, own, closed, others, names, of_user)
    devices = first.devices
    inputs = _choose_input_shardings(values, function, names, in_shardings, unread)
    wanted = list(out_shardings) or [None] * len(out_avals)
    given = [s for s in (*inputs, *wanted, *closed) if s is not None and not isinstance(s, SingleDeviceSharding)]
    if len(devices) == 1 and not meshes and not given and context_mesh().empty:
        return Assignment(devices, True)
    mesh = _choose_mesh(devices, given, meshes)
    for position, (sharding, aval) in enumerate(zip(wanted, out_avals, strict=True)):
        if sharding is not None:
            _check(sharding, aval.shape, partial(_name, "result", out_names, position))
    named = [*[s.mesh for s in given if isinstance(s, NamedSharding)], context_mesh(), *meshes]
    apart = [_find_separate_mesh(m, mesh, named) for m in meshes_of_results]
    results = [
        _move_to_mesh(s, mesh) if s is not None else _get_type_sharding(aval, mesh, named) if other is None else None
        for s, aval, other in zip(wanted, out_avals, apart, strict=True)
    ]
    ranks = tuple([v.aval.ndim for v in jaxpr.invars]) if jaxpr is not None else ()
    on_mesh = tuple([_move_to_mesh(s, mesh) for s in inputs])
    depending = _mark_dependents(jaxpr, on_mesh) if jaxpr is not None else (True,) * len(results)
    return Assignment(devices, True, mesh, on_mesh, tuple(results), ranks, depending, tuple(apart))


def _find_sources(
    values: Sequence[Any], function: str, names: _Names | None, unread: frozenset[int]
) -> Iterator[_Source]:
    """Yield the devices of committed arguments."""
    for position, value in enumerate(values):
        sharding = None if position in unread else committed_sharding(value)
        if sharding is not None and not _is_abstract(sharding):
            yield _Source(sharding.devices, _make_description(value, position, function, names, sharding))


def _make_description(
    value: Any, position: int, function: str, names: _Names | None, sharding: Sharding
) -> Callable[[], str]:
    def describe() -> str:
        name = names()[position] if names is not None else str(position)
        kind = f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
        return f"argument {name} of {function}, {kind} on {describe_devices(sharding.devices)}"

    return describe


def describe_devices(devices: Sequence[Device]) -> str:
    """Return the text of devices in messages: the only one, or their numbers."""
    if len(devices) == 1:
        return str(devices[0])
    return f"the devices {[d.id for d in devices]} of platform {devices[0].platform}"


def _find_given(argument: str, shardings: Sequence[Sharding | None]) -> Iterator[_Source]:
    for sharding in shardings:
        if sharding is not None and not _is_abstract(sharding):
            devices = sharding.devices
            yield _Source(devices, lambda devices=devices: f"{argument} on {describe_devices(devices)}")  # type: ignore[misc]


def _get_mesh_source(owner: str, mesh: Mesh) -> _Source:
    devices = mesh.flat_devices
    return _Source(devices, lambda: f"{owner} mesh {mesh} on {describe_devices(devices)}")


def _is_abstract(sharding: Sharding) -> bool:
    return isinstance(sharding, NamedSharding) and not isinstance(sharding.mesh, Mesh)


def _plan_mesh(
    values: Sequence[Any], in_shardings: Sequence[Sharding | None], out_shardings: Sequence[Sharding | None]
) -> Mesh | None:
    """Return the AbstractMesh of a sharding as a mesh of planned devices, for lowering; None if there is none."""
    for sharding in (*map(committed_sharding, values), *in_shardings, *out_shardings):
        mesh = sharding.mesh if isinstance(sharding, NamedSharding) else None
        if isinstance(mesh, AbstractMesh):
            device = mesh.abstract_device
            platform = device.platform if device is not None and device.platform else clients.default_platform()
            devices = np.empty(mesh.axis_sizes, object)
            for number, place in enumerate(np.ndindex(*mesh.axis_sizes)):
                devices[place] = PlannedDevice(number, platform)
            return Mesh(devices, mesh.axis_names, mesh.axis_types)
    return None


def _choose_input_shardings(
    values: Sequence[Any], function: str, names: _Names | None, in_shardings: Sequence[Sharding | None],
    unread: frozenset[int],
) -> list[Sharding | None]:
    """Return the sharding of each input: the given one, or the argument's own; ValueError if the two differ."""
    inputs: list[Sharding | None] = []
    for position, (value, given) in enumerate(zip(values, in_shardings or (None,) * len(values), strict=True)):
        given = _keep_memory(value, given, function, names, position)
        own = None if position in unread else committed_sharding(value)
        if own is not None and given is not None and not _is_abstract(given):
            if not own.has_same_pieces(given, len(value.shape)) or {*own.devices} != {*given.devices}:
                name = names()[position] if names is not None else str(position)
                raise ValueError(
                    f"Sharding passed to jit does not match the sharding on the respective arg. {function}: argument "
                    f"{name} has the sharding {own}, and in_shardings says {given}. Move it with "
                    "xtrace.device_put(x, sharding) first, or leave in_shardings out for it"
                )
            if own.devices == given.devices and _get_axis_types(own) != _get_axis_types(given):
                given = own
        sharding = given if given is not None else own
        if sharding is not None and not isinstance(sharding, SingleDeviceSharding):
            _check(sharding, getattr(value, "shape", ()), partial(_name, "argument", names, position))
        inputs.append(sharding)
    return inputs


def _get_axis_types(sharding: Sharding) -> Any:
    return sharding.mesh.axis_types if isinstance(sharding, NamedSharding) else None


def _keep_memory(
    value: Any, given: Sharding | None, function: str, names: _Names | None, position: int
) -> Sharding | None:
    """Return a given sharding in the argument's memory; ValueError for a committed array in another memory."""
    if given is None or given.memory_kind is None:
        return given
    space = find_memory_space(given.memory_kind)
    own = value.aval.memory_space if type(value) is ConcreteArray else MemorySpace.Device
    if space is own:
        return given
    if type(value) is ConcreteArray and value.committed:
        name = names()[position] if names is not None else str(position)
        raise ValueError(
            f"Memory kinds passed to jit does not match memory kind on the respective arg. {function}: argument {name} "
            f"is in {own.kind} memory, {value.aval.str_short(True)}, and in_shardings says {given.memory_kind}. Move "
            "it with xtrace.device_put(x, sharding) first"
        )
    return given.with_memory_kind(own.kind)


def _check(sharding: Sharding, shape: tuple[int, ...], name: Callable[[], str]) -> None:
    """Raise ValueError, with the name of the argument or result, if the sharding does not fit the shape."""
    try:
        sharding.shard_shape(shape)
    except ValueError as error:
        raise type(error)(f"{name()} is incompatible with its sharding annotation: {error}") from None


def _name(kind: str, names: _Names | None, position: int) -> str:
    """Return the name of an argument or a result in messages."""
    group = "outputs" if kind == "result" else "arguments"
    return f"One of pjit {group} with pytree key path {position if names is None else names()[position]}"


def _choose_mesh(devices: tuple[Device, ...], given: Sequence[Any], meshes: Sequence[Mesh]) -> Mesh:
    """Return the mesh over `devices` for the shardings of results: a given one, or one with a single axis."""
    named = [s.mesh for s in given if isinstance(s, NamedSharding)]
    for mesh in (*named, context_mesh(), *meshes):
        if isinstance(mesh, Mesh) and mesh.flat_devices == devices:
            return mesh
    return Mesh(list(devices), ("devices",))


def _move_to_mesh(sharding: Sharding | None, mesh: Mesh) -> Sharding | None:
    """Return a sharding over the devices of `mesh`; for a single device, the replicated sharding."""
    if isinstance(sharding, SingleDeviceSharding):
        return NamedSharding(mesh, PartitionSpec(), sharding.memory_kind)
    if isinstance(sharding, NamedSharding) and _is_abstract(sharding):
        return NamedSharding(mesh, sharding.spec, sharding.memory_kind)
    return sharding


def _find_separate_mesh(result: AbstractMesh | None, mesh: Mesh, others: Sequence[BaseMesh]) -> Mesh | None:
    """Return the mesh of a result without explicit axes, in a program on a mesh with explicit axes; else None."""
    if result is None or result.explicit_axes or not mesh.explicit_axes:
        return None
    return next((m for m in others if isinstance(m, Mesh) and m.abstract_mesh is result), None)


def _get_type_sharding(aval: ShapedArray, mesh: Mesh, others: Sequence[BaseMesh]) -> Sharding | None:
    """Return the sharding in the type of a result; None if the compiler chooses it, wholly or in part.

    A result without one, on a mesh with only explicit axes, is replicated. others: further meshes in the program.
    """
    own, kind = aval.explicit_sharding, aval.memory_space.kind
    if own is not None and own.mesh.auto_axes:
        # The compiler chooses the split over the Auto axes.
        return None
    if own is not None:
        for other in others:
            if isinstance(other, Mesh) and other.abstract_mesh is own.mesh:
                return NamedSharding(other, own.spec, kind)
        # Inside of `auto_axes` and `explicit_axes`, the axes have other types.
        return NamedSharding(mesh.update(axis_types=own.mesh.axis_types), own.spec, kind)
    return NamedSharding(mesh, PartitionSpec(*[None] * aval.ndim), kind) if mesh.are_all_axes_explicit else None


def _mark_dependents(jaxpr: Jaxpr, inputs: Sequence[Sharding | None]) -> tuple[bool, ...]:
    """Return whether each result of a jaxpr depends on an input with a sharding."""
    depending: set[Atom] = {v for v, sharding in zip(jaxpr.invars, inputs, strict=True) if sharding is not None}
    for equation in jaxpr.eqns:
        if not depending.isdisjoint(equation.invars):
            depending.update(equation.outvars)
    return tuple([v in depending for v in jaxpr.outvars])


@memoize_by_owner
def find_meshes(jaxpr: Jaxpr) -> tuple[Mesh, ...]:
    """Return the meshes with devices in the parameters of a jaxpr's equations."""
    meshes: dict[Mesh, None] = {}
    for equation in jaxpr.eqns:
        if equation.parameters:
            _collect_meshes(equation.parameters, meshes)
    return tuple(meshes)


# The types of most parameters of equations, which have no mesh.
_SIMPLE = frozenset((int, str, bool, float, type(None), frozenset))


def _collect_meshes(parameters: Iterable[Any], meshes: dict[Mesh, None]) -> None:
    for value in parameters:
        if type(value) in _SIMPLE:
            continue
        if isinstance(value, (tuple, list)):
            _collect_meshes(value, meshes)
        elif isinstance(value, (Jaxpr, ClosedJaxpr)):
            inner = value if isinstance(value, Jaxpr) else value.jaxpr
            meshes.update(dict.fromkeys(find_meshes(inner)))
        else:
            mesh = value.mesh if isinstance(value, NamedSharding) else value
            if isinstance(mesh, Mesh) and not mesh.empty:
                meshes[mesh] = None
