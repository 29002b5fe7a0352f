"""`vmap`: a function of one example mapped over an axis of its arguments, vectorised instead of looped."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np

from xtrace._src.algebra.vector_space import convert_to, materialize_literal
from xtrace._src.api.differentiation.grad import check_each
from xtrace._src.api.jit import call_arguments
from xtrace._src.api.jit.call_arguments import NO_STATIC
from xtrace._src.api.mapping.mapped_classes import (
    is_mapped_object,
    is_specification,
    join_elements,
    mapped_classes,
    size_along,
    take_element,
)
from xtrace._src.core import dtypes
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of, is_array_like
from xtrace._src.core.callables import check_callable, function_name, make_debug_info, wraps
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.pytrees.key_paths import keystr
from xtrace._src.core.references import Reference
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.partition_spec import PartitionSpec, get_entry_axes
from xtrace._src.core.shardings.shardings import NamedSharding
from xtrace._src.core.sizes import to_size
from xtrace._src.ops.reductions.reductions import add_elements
from xtrace._src.ops.references.binding import check_results, make_reference, read_reference, write_reference
from xtrace._src.runtime.arrays import ConcreteArray, mesh_sharding
from xtrace._src.runtime.transfer import as_value
from xtrace._src.transforms.batch import MappedAxis, batch, remove_axis
from xtrace._src.transforms.scopes import VMAP, scope

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def vmap(
    fun: Callable[_Arguments, _Result], in_axes: object = 0, out_axes: object = 0, axis_name: object = None,
    axis_size: int | None = None, spmd_axis_name: object = None, sum_match: bool = False,
) -> Callable[_Arguments, _Result]:
    """Return `fun` vectorised over an axis of its arguments.

    Args:
        fun: a function of pytrees of arrays.
        in_axes: the mapped axis of each argument: an integer, None for an argument that all calls share, or a tree
            prefix of the arguments with these as leaves. Keyword arguments are mapped over axis 0.
        out_axes: the position of the mapped axis in the results, likewise; None only for a result that does not depend
            on the mapped axis.
        axis_name: a name of the axis for collectives such as `lax.psum`.
        axis_size: the size of the axis; it may be left out if an argument is mapped.
        spmd_axis_name: accepted for programs on several devices; without effect on one.
        sum_match: whether a result that depends on the axis is summed over it if its `out_axes` is None.

    Returns:
        A function of the arguments of `fun`.

    Raises:
        TypeError: `fun` is not callable.
        ValueError: the sizes of mapped axes differ, a tree prefix does not fit, or an axis is out of range.

    Example:
        >>> xtrace.vmap(jnp.dot, in_axes=(0, None))(jnp.ones((2, 3)), jnp.arange(3.0))
        Array([3., 3.], dtype=float32)
    """
    check_callable(fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    _check_parameters(in_axes, axis_size, axis_name, spmd_axis_name)
    # Its arguments are mapped values, not of the declared types.
    options = _Options(cast(Any, fun), in_axes, out_axes, axis_name, axis_size, spmd_axis_name, sum_match)

    @boundary
    @wraps(fun)
    def mapped(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Any:
        return _Call(options, args, kwargs).run()

    return mapped


def _check_parameters(in_axes: Any, axis_size: Any, axis_name: object, spmd_axis_name: object) -> None:
    """Raise TypeError for wrong parameters of `vmap`."""
    is_axis = in_axes is None or hasattr(in_axes, "__index__") or is_specification(in_axes)
    accepted = is_axis or isinstance(in_axes, tuple)
    if not accepted or isinstance(in_axes, bool) or getattr(in_axes, "ndim", None):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments "
            f"passed to the function, but got {abbreviate(in_axes)}."
        )
    if axis_size is not None and (
        not hasattr(axis_size, "__index__") or np.ndim(axis_size) or to_size(axis_size) < 0
    ):
        raise TypeError(f"vmap: axis_size must be a non-negative int or None, got {abbreviate(axis_size)}")
    for parameter, axis in (("axis_name", axis_name), ("spmd_axis_name", spmd_axis_name)):
        try:
            hash(axis)
        except TypeError:
            raise TypeError(f"vmap: {parameter} must be hashable, such as a string; got {abbreviate(axis)}") from None


class _Options(NamedTuple):
    """The parameters of `vmap`."""

    fun: Callable[..., Any]
    in_axes: Any
    out_axes: Any
    axis_name: Any
    axis_size: int | None
    spmd_axis_name: Any
    sum_match: bool


class _Call:
    """A call of a mapped function: the leaves of its arguments, their mapped axes, and the structure of its results.

    `objects` has the axes of leaves that are objects of mapped classes, `references` those that are mapped references.
    """

    def __init__(self, options: _Options, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.options, in_axes = options, options.in_axes
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments "
                f"passed to the function, but got len(in_axes)={len(in_axes)}, len(args)={len(args)}. Arguments by "
                "keyword are mapped along their axis 0 and have no entry"
            )
        self.is_leaf = is_mapped_object if mapped_classes else None
        leaves, self.in_tree = pytree.tree_flatten((args, kwargs), self.is_leaf)
        axes = _expand_prefix("in_axes", (in_axes, 0 if kwargs else {}), self.in_tree, options.fun)
        self.objects = {i: axes[i] for i, x in enumerate(leaves) if is_mapped_object(x)} if self.is_leaf else {}
        own_sizes = {i: n for i, axis in self.objects.items() if (n := size_along(leaves[i], axis)) is not None}
        if self.objects:
            axes = [None if i in self.objects else axis for i, axis in enumerate(axes)]
        self.values = [self._to_value(i, leaf, axes[i]) for i, leaf in enumerate(leaves)]
        self.references = {i: x for i, x in enumerate(leaves) if isinstance(x, Reference) and axes[i] is not None}
        for i, reference in self.references.items():
            self.values[i] = read_reference(reference)
        self.axes = check_each(lambda i: self._normalize_axis(i, axes[i]), len(self.values))
        self.axis = MappedAxis(
            self._find_axis_size(own_sizes), options.axis_name, options.spmd_axis_name, self._find_split()
        )
        self.out_tree: Any = None

    @property
    def name(self) -> str:
        """The name of the function, for messages."""
        return function_name(self.options.fun)

    def list_paths(self) -> list[str]:
        """Return the users' expressions for the leaves of the arguments."""
        return call_arguments.argument_paths(self.options.fun, NO_STATIC, self.in_tree)

    def run(self) -> Any:
        """Return the result, in which mapped axes are where `out_axes` asks for them."""
        with scope(VMAP):
            results, places = batch(self.run_example, self.axis, self.values, self.axes, self.describe)
        for i, reference in reversed(self.references.items()):
            value, place = materialize_literal(results.pop()), places.pop()
            write_reference(reference, self.axis.place(value, place, self.axes[i]))
        is_leaf, targets = self.is_leaf, self._expand_out_axes()
        out = [
            x if is_leaf is not None and is_leaf(x) else self._place_result(i, x, place, target)
            for i, (x, place, target) in enumerate(zip(results, places, targets, strict=True))
        ]
        return pytree.tree_unflatten(self.out_tree, out)

    def describe(self) -> Any:
        """Return the names of the arguments, for messages."""
        return make_debug_info("vmap", self.options.fun, self.list_paths)

    def run_example(self, *inner: object) -> list[Any]:
        """Call the function for the leaves of one example, and return the leaves of its results."""
        is_leaf = self.is_leaf
        copies = {i: make_reference(inner[i]) for i in self.references}
        given = copies | {i: take_element(inner[i], axis) for i, axis in self.objects.items()}
        args, kwargs = pytree.tree_unflatten(self.in_tree, [given.get(i, x) for i, x in enumerate(inner)])
        result = self.options.fun(*args, **kwargs)
        results, self.out_tree = pytree.tree_flatten(result, is_leaf)
        if is_leaf is not None and any(map(is_leaf, results)):
            for i, axis in enumerate(self._expand_out_axes()):
                if is_leaf(results[i]):
                    results[i] = join_elements(results[i], axis, functools.partial(self._place_result, i))
        check_results([x for x in results if is_leaf is None or not is_leaf(x)], result, self.describe)
        return [*results, *map(read_reference, copies.values())] if copies else results

    def _to_value(self, position: int, leaf: Any, axis: Any) -> Any:
        """Return a leaf of the arguments as an array; TypeError if it is mapped and no array."""
        if not is_array_like(leaf):
            if axis is not None and not isinstance(leaf, Reference):
                raise TypeError(
                    f"vmap: argument {self.list_paths()[position]} of {self.name}: {abbreviate(leaf)} of type "
                    f"{type(leaf)} is no array"
                )
            return leaf
        # A Python number stays a number: shapes may depend on it.
        return leaf if axis is None and type(leaf) in (bool, int, float, complex) else as_value(leaf)

    def _normalize_axis(self, position: int, axis: int | None) -> int | None:
        if axis is None:
            return None
        aval = aval_of(self.values[position])
        if not -aval.ndim <= axis < aval.ndim:
            raise ValueError(
                f"vmap was requested to map its argument along axis {axis}, which implies that its rank should be at "
                f"least {axis + 1 if axis >= 0 else -axis}, but argument {self.list_paths()[position]} of {self.name} "
                f"has only {aval.ndim} axes (its shape is {aval.shape}). With None in the place of this argument in "
                "in_axes it is the same for all"
                + ("" if aval.ndim else "; examples in a list are stacked with xtrace.numpy.array first")
            )
        return axis % aval.ndim

    def _find_axis_size(self, own_sizes: dict[int, int]) -> int:
        """Return the size of the mapped axis; ValueError if it is not known, or if arguments differ in it."""
        values, axes, given = self.values, self.axes, self.options.axis_size
        sizes = own_sizes | {i: aval_of(values[i]).shape[axis] for i, axis in enumerate(axes) if axis is not None}
        candidates = set(sizes.values()) | ({given} if given is not None else set())
        if not candidates:
            raise ValueError(
                "vmap must have at least one non-None value in in_axes, or axis_size, to know how often to call "
                f"{self.name}"
            )
        if len(candidates) > 1:
            paths = self.list_paths()
            lines = [f"  * argument {paths[i]} has size {n} along axis {axes[i]}" for i, n in sizes.items()]
            if given is not None:
                lines.append(f"  * axis_size is {given}")
            raise ValueError(
                f"vmap got inconsistent sizes for array axes to be mapped over in {self.name}:\n" + "\n".join(lines)
                + "\nAn argument that is the same for all examples has None in in_axes, such as in_axes=(None, 0)."
            )
        return to_size(candidates.pop())  # type: ignore[no-any-return]

    def _find_split(self) -> NamedSharding | None:
        """Return the sharding of the mapped axis over explicit mesh axes; None if it is not split.

        Raises ValueError if the arguments are split differently, or if `spmd_axis_name` contradicts them.
        """
        mapped = {i: aval_of(self.values[i]) for i, axis in enumerate(self.axes) if axis is not None}
        if not any(aval.is_placed for aval in mapped.values()):
            return None
        entries = {
            i: aval.explicit_sharding.spec[self.axes[i]] if aval.explicit_sharding is not None else None
            for i, aval in mapped.items()
        }
        split, spmd_axis_name = [i for i, e in entries.items() if e is not None], self.options.spmd_axis_name
        if split and spmd_axis_name is not None and get_entry_axes(entries[split[0]]) != get_entry_axes(spmd_axis_name):
            raise ValueError(
                f"vmap: only one of spmd_axis_name or arrays sharded on Explicit mesh axes is allowed, got "
                f"spmd_axis_name={abbreviate(spmd_axis_name)} and argument {self.list_paths()[split[0]]} of "
                f"{self.name}, {mapped[split[0]].str_short(True)}, "
                f"which is split over {abbreviate(entries[split[0]])} along the mapped axis. Leave spmd_axis_name out"
            )
        if len({*entries.values()}) > 1:
            paths = self.list_paths()
            lines = [
                f"  * argument {paths[i]}, {mapped[i].str_short(True)}, is split over {abbreviate(p)} along axis "
                f"{self.axes[i]}"
                for i, p in entries.items()
            ]
            raise ValueError(
                f"vmap: the mapped axes of the arguments of {self.name} should be split the same, got\n"
                + "\n".join(lines) + "\nSplit one otherwise with xtrace.reshard(x, xtrace.P(...)) first"
            )
        if not split:
            return None
        value = self.values[split[0]]
        own = mesh_sharding(value) if type(value) is ConcreteArray else None
        sharding = own if isinstance(own, NamedSharding) else aval_of(value).explicit_sharding
        return NamedSharding(sharding.mesh, PartitionSpec(entries[split[0]]))

    def _expand_out_axes(self) -> list[Any]:
        return _expand_prefix("out_axes", self.options.out_axes, self.out_tree, self.options.fun)

    def _place_result(self, position: int, x: Any, place: int | None, target: int | None) -> Any:
        """Return a result whose mapped axis is `place`, None for none, with that axis at `target`."""
        x = materialize_literal(x)
        if target is None:
            if place is not None and self.options.sum_match:
                return _sum_along(x, place)
            if place is not None:
                raise ValueError(
                    f"vmap has mapped output but out_axes is None: at vmap out_axes"
                    f"{keystr(pytree.leaf_paths(self.out_tree)[position])}, got axis spec None but output was batched "
                    f"on axis {place}: a result of {self.name} depends on the mapped axis. Give the axis it is to have "
                    "in the result, or reduce over the examples inside"
                )
            return x
        rank = aval_of(x).ndim + (place is None)
        if not -rank <= target < rank:
            raise ValueError(f"vmap: out_axes {target} is out of bounds for a result of {self.name} of {rank} axes")
        if aval_of(x).dtype == dtypes.float0:
            # Tangents of integers are NumPy arrays without data.
            shape = aval_of(x).shape if place is None else remove_axis(aval_of(x), place).shape
            return np.zeros((*shape[: target % rank], self.axis.size, *shape[target % rank :]), dtypes.float0)
        return self.axis.place(x, place, target % rank)


def _sum_along(x: Array, axis: int) -> Array:
    """Return the sum along `axis`; as in NumPy, narrow integers are added in the default integer dtype."""
    dtype, x64 = aval_of(x).dtype, config.enable_x64.value
    if not dtypes.is_inexact(dtype):
        unsigned = dtypes.is_integer(dtype) and not dtypes.is_signed(dtype)
        default = dtypes.default_uint(x64) if unsigned else dtypes.default_int(x64)
        x = convert_to(x, default if dtypes.bit_width(dtype) < dtypes.bit_width(default) else dtype)
    return add_elements(x, (axis,))


def _expand_prefix(parameter: str, axes: object, tree: Any, fun: Callable[..., Any]) -> list[Any]:
    """Return the entry of the tree prefix `axes` for each leaf of a tree of the structure `tree`."""
    try:
        flat_axes = pytree.broadcast_prefix_to_structure(axes, tree, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise ValueError(
            f"vmap {parameter} specification must be a tree prefix of the corresponding value of "
            f"{function_name(fun)}: {error}"
        ) from None
    for axis in flat_axes:
        if axis is not None and not hasattr(axis, "__index__") and not is_specification(axis):
            raise TypeError(
                f"vmap: {parameter} must be integers or None, got {abbreviate(axis)} for {function_name(fun)}"
            )
    return [operator.index(axis) if hasattr(axis, "__index__") else axis for axis in flat_axes]
