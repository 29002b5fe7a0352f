"""Devices, and moving data between them and the host."""

from __future__ import annotations

import copy
import os
import platform as system
import sys
from typing import Any, NamedTuple, overload

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.core import dtypes
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.function_names import copy_with_name
from xtrace._src.core.memory_spaces import MemorySpace
from xtrace._src.core.pytrees import key_paths, pytree
from xtrace._src.core.references import Reference
from xtrace._src.core.shardings.memory_layout import Format, Layout
from xtrace._src.core.shardings.partition_spec import PartitionSpec
from xtrace._src.core.shardings.requested_shardings import requested_sharding
from xtrace._src.core.shardings.shardings import Sharding
from xtrace._src.core.trace import Tracer
from xtrace._src.runtime.arrays import ConcreteArray, deleted_message, get_layout, mesh_sharding
from xtrace._src.runtime.transfer import array_from_host, current_device, in_layout, put_at, put_on, to_concrete
from xtrace._src.xla import clients, guards
from xtrace._src.xla.versions import JAXLIB_VERSION_TEXT

with late_modules(globals()):
    from xtrace._src.ops.shardings.device_put import CopySemantics, put


def devices(backend: str | None = None) -> list[Any]:
    """Return the devices of all processes.

    Args:
        backend: the platform, such as "cpu"; None for the default one.

    Returns:
        A list of devices, ordered by their numbers.

    Raises:
        RuntimeError: the platform is unknown or does not start.

    Example:
        >>> xtrace.devices("cpu")[0].platform
        'cpu'
    """
    return clients.devices(backend)


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Any]:
    """Return the devices of one process.

    Args:
        process_index: the number of the process; None for this one.
        backend: the platform, such as "cpu"; None for the default one.
        host_id: the old name of `process_index`.

    Returns:
        A list of devices.

    Raises:
        RuntimeError: the platform is unknown or does not start.
        ValueError: there is no such process.

    Example:
        >>> xtrace.local_devices()[0] in xtrace.devices()
        True
    """
    index = process_index if process_index is not None else host_id
    if index is None:
        return clients.local_devices(backend)
    if index not in (known := process_indices(backend)):
        raise ValueError(f"local_devices: there is no process {abbreviate(index)}; the processes are {known}")
    return [d for d in clients.devices(backend) if d.process_index == index]


def device_count(backend: str | None = None) -> int:
    """Return the number of devices of all processes.

    Args:
        backend: the platform, such as "cpu"; None for the default one.

    Returns:
        An integer.

    Raises:
        RuntimeError: the platform is unknown or does not start.

    Example:
        >>> xtrace.device_count("cpu") >= 1
        True
    """
    return len(clients.devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Return the number of devices of this process.

    Args:
        backend: the platform, such as "cpu"; None for the default one.

    Returns:
        An integer.

    Raises:
        RuntimeError: the platform is unknown or does not start.

    Example:
        >>> xtrace.local_device_count("cpu") >= 1
        True
    """
    return len(clients.local_devices(backend))


def default_backend() -> str:
    """Return the name of the platform of new arrays, such as "cpu".

    Returns:
        A string.

    Example:
        >>> xtrace.default_backend()
        'cpu'
    """
    name = clients.default_platform()
    if name in clients.factories:
        name = clients.client().platform
    return {"cuda": "gpu"}.get(name, name)


def process_index(backend: str | None = None) -> int:
    """Return the number of this process.

    Args:
        backend: the platform, such as "cpu"; None for the default one.

    Returns:
        An integer.

    Raises:
        RuntimeError: the platform is unknown or does not start.

    Example:
        >>> xtrace.process_index()
        0
    """
    return int(clients.client(backend).process_index())


def process_count(backend: str | None = None) -> int:
    """Return the number of processes.

    Args:
        backend: the platform, such as "cpu"; None for the default one.

    Returns:
        An integer.

    Raises:
        RuntimeError: the platform is unknown or does not start.

    Example:
        >>> xtrace.process_count()
        1
    """
    return 1 + max(d.process_index for d in clients.devices(backend))


def process_indices(backend: str | None = None) -> list[int]:
    """Return the numbers of all processes.

    Args:
        backend: the platform, such as "cpu"; None for the default one.

    Returns:
        A list of integers.

    Raises:
        RuntimeError: the platform is unknown or does not start.

    Example:
        >>> xtrace.process_indices()
        [0]
    """
    return sorted({int(d.process_index) for d in clients.devices(backend)})


# Older names.
host_id = copy_with_name(process_index, "host_id")
host_count = copy_with_name(process_count, "host_count")
host_ids = copy_with_name(process_indices, "host_ids")


@overload
def device_put(
    x: Array, device: object = ..., *, src: object = ..., donate: object = ..., may_alias: object = ...
) -> Array: ...


@overload
def device_put(
    x: object, device: object = ..., *, src: object = ..., donate: object = ..., may_alias: object = ...
) -> Any: ...


def device_put(
    x: object, device: object = None, *, src: object = None, donate: object = False, may_alias: object = None
) -> Any:
    """Return a tree with its arrays on a device.

    Args:
        x: a pytree of arrays, NumPy arrays and scalars.
        device: a device, a sharding, a memory space, a `Format`, which includes a layout, or a tree prefix of these;
            None for the default device.
        src: the places of the arrays, in the same forms; it has no effect.
        donate: whether the memory of the operands may be reused, a boolean or a tree prefix of booleans.
        may_alias: whether the result may share memory with a NumPy array; None to share it only where that is safe.

    Returns:
        A pytree of the same structure.

    Raises:
        TypeError: a leaf is no array and no scalar.
        ValueError: a tree prefix does not fit, or `device` is another object.

    Example:
        >>> xtrace.device_put(np.arange(3)).devices() == {xtrace.devices()[0]}
        True
    """
    pairs, tree = pytree.tree_flatten_with_path(x)
    count = len(pairs)
    moves = list(map(
        _Move, [path for path, _ in pairs], [leaf for _, leaf in pairs],
        map(_check_target, _for_leaves("device", device, x, count, "a device, a sharding or None")),
        _for_leaves("src", src, x, count, "a device, a sharding or None"),
        map(bool, _for_leaves("donate", donate, x, count, "a bool")),
        _for_leaves("may_alias", may_alias, x, count, "a bool or None"),
    ))
    avals = []
    for move in moves:
        if move.donated and move.aliased:
            raise ValueError(f"device_put: may_alias and donate cannot be True at the same time, for {move.name}")
        try:
            avals.append(aval_of(move.leaf))
        except (TypeError, ValueError) as error:
            raise type(error)(f"device_put: {move.name}: {error}") from None
    recorded = [m for m in moves if m.is_recorded()]
    moved = iter(_record_moves(recorded) if recorded else [])
    with guards.mark_explicit("put"):
        results = [next(moved) if m.is_recorded() else _put_leaf(m, a) for m, a in zip(moves, avals, strict=True)]
    return pytree.tree_unflatten(tree, results)


class _Move(NamedTuple):
    """A leaf of `device_put`, with its destination and options."""

    path: Any
    leaf: Any
    target: Any
    source: Any
    donated: bool
    aliased: Any

    @property
    def name(self) -> str:
        """The name of the leaf in messages."""
        return f"x{key_paths.keystr(self.path)}"

    def is_recorded(self) -> bool:
        """Whether the move is an operation bound under the current trace, instead of a transfer here."""
        return isinstance(self.leaf, Tracer) or isinstance(self.target, MemorySpace)

    def semantics(self) -> CopySemantics:
        """Return the copy semantics of the operation."""
        if self.donated:
            return CopySemantics.DONATE_INPUT
        return CopySemantics.ALWAYS_COPY if self.aliased is False else CopySemantics.REUSE_INPUT


def _record_moves(moves: list[_Move]) -> list[Any]:
    return put(
        [m.leaf for m in moves], [m.target for m in moves], [m.source for m in moves], [m.semantics() for m in moves]
    )


def _for_leaves(name: str, value: object, x: object, count: int, expected: str) -> list[Any]:
    """Return an argument's value for each leaf of `x`; it may be a tree prefix of `x`."""
    if value is None or isinstance(value, (bool, clients.Device, Sharding, PartitionSpec, MemorySpace, Format)):
        return [value] * count
    try:
        return pytree.broadcast_prefix(value, x, is_leaf=lambda v: v is None)
    except ValueError as error:
        raise ValueError(
            f"device_put {name} specification must be a tree prefix of the corresponding value: {error}. Give "
            f"{expected}, or a tree of these like x"
        ) from None


def _check_target(target: object) -> Any:
    if target is None or isinstance(target, (clients.Device, MemorySpace)):
        return target
    if isinstance(target, Format) and target.layout is Layout.AUTO:
        raise ValueError(
            f"device_put: sharding and layout should be concrete, since no compiler chooses here. Got {target}"
        )
    if isinstance(target, (Sharding, PartitionSpec, Format)):
        sharding = requested_sharding("device", target, entered=False, takes_layouts=True)
        return target if isinstance(target, Format) and sharding is not None else sharding
    raise ValueError(
        "device_put: device must be a device (see xtrace.devices()), a memory such as xtrace.memory.Space.Host, a "
        f"sharding, a Format or None. Received invalid value: {abbreviate(target)}"
    )


def _put_leaf(move: _Move, aval: ShapedArray) -> Array:
    leaf, aliased = move.leaf, move.aliased
    target = move.target.sharding if isinstance(move.target, Format) else move.target
    if isinstance(target, Sharding):
        sharding, device = target, getattr(target, "device", None)
    else:
        sharding, device = None, target
    is_plain = target is move.target and (sharding is None or device is not None)
    if isinstance(leaf, np.ndarray) and aliased and is_plain:
        return array_from_host(leaf, aval, device, copy=False)
    if isinstance(leaf, ConcreteArray) and leaf.is_deleted():
        raise RuntimeError(f"device_put: {move.name}: {deleted_message(leaf.aval)}")
    if isinstance(leaf, ConcreteArray) and aliased is False:
        # This matters on the same device; an array that moves gets new memory anyway.
        leaf = in_layout(copy.deepcopy(leaf), get_layout(leaf))
    if sharding is not None:
        moved: ConcreteArray = _put_at(leaf, sharding, aval, move.name)
        if isinstance(move.target, Format) and type(moved) is ConcreteArray:
            _check_axes(move.target, aval, move.name)
            moved = in_layout(moved, move.target.layout)
    elif device is not None:
        moved = put_on(leaf, device, MemorySpace.Device)
    else:
        return to_concrete(leaf)
    if move.donated and isinstance(leaf, ConcreteArray) and _takes_over(moved, leaf):
        leaf.delete()
    return moved


def _check_axes(target: Format, aval: ShapedArray, name: str) -> None:
    if target.layout is None:
        return
    try:
        target.layout.check_compatible_aval(aval.shape)  # type: ignore[union-attr]
    except ValueError as error:
        raise ValueError(f"device_put: device, of {name}: {error}") from None


def _takes_over(moved: ConcreteArray, array: ConcreteArray) -> bool:
    """Whether a donated array is deleted after its move; on CPU, as in JAX, only if the pieces stay the same."""
    old, new = mesh_sharding(array), mesh_sharding(moved)
    if moved.buffer is array.buffer:
        return False
    if get_layout(moved) != get_layout(array):
        return True
    if next(iter(array.devices())).platform == "cpu":
        return old is not None and new is not None and old.has_same_pieces(new, array.ndim)
    # A replicated array that moves to one of its devices is not copied.
    return not (old is not None and array.is_fully_replicated and moved.devices() <= array.devices() and new is None)


def _put_at(leaf: Any, sharding: Sharding, aval: ShapedArray, name: str) -> Any:
    try:
        return put_at(leaf, sharding, aval)
    except ValueError as error:
        raise type(error)(f"device_put: {name}: {error}") from None


def device_get(x: object) -> Any:
    """Return a tree with its arrays as NumPy arrays.

    Args:
        x: a pytree; leaves that are no arrays, and traced values, are left alone.

    Returns:
        A pytree of the same structure.

    Example:
        >>> xtrace.device_get({"a": jnp.ones(2)})
        {'a': array([1., 1.], dtype=float32)}
    """

    def get(leaf: object) -> Any:
        extended = isinstance(leaf, ConcreteArray) and isinstance(leaf.dtype, dtypes.ExtendedDType)
        if isinstance(leaf, Tracer) or extended:
            return leaf
        return np.asarray(leaf) if hasattr(leaf, "__array__") else leaf

    arrays = [leaf for leaf in pytree.tree_leaves(x) if isinstance(leaf, ConcreteArray)]
    for array in arrays:
        array.copy_to_host_async()
    with guards.mark_explicit("get"):
        return pytree.tree_map(get, x)


def block_until_ready(x: Any) -> Any:
    """Wait until the arrays in a tree are computed, and return the tree.

    Args:
        x: a pytree; leaves that are no arrays are left alone.

    Returns:
        `x`.

    Example:
        >>> xtrace.block_until_ready(jnp.ones(2) + 1)
        Array([2., 2.], dtype=float32)
    """
    for leaf in pytree.tree_leaves(x):
        if isinstance(leaf, ConcreteArray):
            leaf.block_until_ready()
    return x


def copy_to_host_async(x: object) -> Any:
    """Start to copy the arrays of a tree to the host, for a later `device_get`.

    Args:
        x: a pytree; leaves that are no arrays are left alone.

    Returns:
        `x`.

    Example:
        >>> x = xtrace.copy_to_host_async(jnp.ones(2))
    """
    for leaf in pytree.tree_leaves(x):
        if isinstance(leaf, ConcreteArray):
            leaf.copy_to_host_async()
    return x


def typeof(x: object) -> Any:
    """Return the type of an array in programs: shape, dtype, weak type and sharding.

    Args:
        x: an array, a scalar or a traced value.

    Returns:
        A ShapedArray.

    Raises:
        TypeError: `x` is no array and no scalar.

    Example:
        >>> xtrace.typeof(jnp.ones((2, 3)))
        ShapedArray(float32[2,3])
    """
    return aval_of(x.target if isinstance(x, Reference) else x)


# Prefixes of environment variables on which programs depend.
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "JAX_", "TPU_", "XLA_", "XTRACE_")


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions of Python and of the libraries, the platform and the devices, for reports of faults.

    Args:
        return_string: whether the text is returned and not printed.

    Returns:
        A string, or None if the text is printed.

    Example:
        >>> "jaxlib" in xtrace.print_environment_info(return_string=True)
        True
    """
    lines = [
        f"jaxlib: {JAXLIB_VERSION_TEXT}", f"numpy:  {np.__version__}", f"python: {sys.version}",
        f"system: {system.platform()}",
        f"devices: {', '.join(map(str, clients.devices()))} (default {current_device()})",
        f"processes: {process_count()}",
        *[f"{name}={os.environ[name]}" for name in sorted(os.environ) if name.startswith(_VARIABLES)],
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None
