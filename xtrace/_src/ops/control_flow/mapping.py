"""`map`, a loop without a carry, and `associative_scan`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.vector_space import canonical_axis, move_axis, reshape
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.callables import describe_leaf_paths
from xtrace._src.core.integers import to_integer
from xtrace._src.core.jaxprs.ir import scalar_literal
from xtrace._src.core.pytrees import pytree, pytree_differences
from xtrace._src.core.settings import config
from xtrace._src.core.sizes import is_symbolic
from xtrace._src.core.trace import base_trace, current_trace
from xtrace._src.ops.arrays.concatenation import concatenate
from xtrace._src.ops.arrays.shape import rev
from xtrace._src.ops.arrays.slicing import index_in_dim, pad, slice, slice_in_dim
from xtrace._src.ops.calls.calls import NO_PLACES, jit_call
from xtrace._src.ops.control_flow.bodies import check_function, flatten_argument, stage_body
from xtrace._src.ops.control_flow.scan import find_length, run_scan, scan
from xtrace._src.ops.control_flow.scan_parts import Loop
from xtrace._src.ops.elementwise.comparisons import bitwise_or
from xtrace._src.ops.elementwise.elementwise import add
from xtrace._src.transforms.batch import MappedAxis, batch, remove_axis
from xtrace._src.transforms.scopes import VMAP, scope
from xtrace._src.xla.pytree_registry import PyTreeDef


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Return the stacked results of a function for each element, computed in a loop.

    Args:
        f: a function of one element.
        xs: a pytree of arrays whose leading axes have one size.
        batch_size: the number of elements to compute together, as `vmap` does; None for one.

    Returns:
        A pytree of arrays, stacked along a new leading axis.

    Raises:
        TypeError: a result is no array.
        ValueError: leading axes differ in size, or `batch_size` is negative.

    Example:
        >>> lax.map(jnp.square, jnp.array([1.0, 2.0]))
        Array([1., 4.], dtype=float32)
    """
    check_function("f", f)
    elements, tree, avals = flatten_argument("xs", xs)
    length = find_length(None, tree, avals)
    size = to_integer("batch_size", batch_size) if batch_size is not None else 0
    if size < 0:
        raise ValueError(f"map: batch_size must not be negative, got {size}")
    if size < 2:
        return _call_in_turn(f, elements, tree, length)
    count, rest = divmod(length, size)
    whole = count * size
    if not count:
        return _call_on_batch(f, xs)
    parts = [_rows(x, 0, whole) if rest else x for x in elements]
    last = [_rows(x, whole, length) for x in elements] if rest else []
    parts = [reshape(x, (count, size, *a.shape[1:])) for x, a in zip(parts, avals, strict=True)]
    stacked, out_tree = pytree.tree_flatten(_call_in_turn(lambda part: _call_on_batch(f, part), parts, tree, count))
    remainder = pytree.tree_leaves(_call_on_batch(f, pytree.tree_unflatten(tree, last))) if rest else []
    results = [reshape(y, (whole, *aval_of(y).shape[2:])) for y in stacked]
    if rest:
        results = [concatenate([y, z], 0) for y, z in zip(results, remainder, strict=True)]
    return pytree.tree_unflatten(out_tree, results)


def _rows(x: Array, start: int, stop: int) -> Array:
    """Return the slice from `start` to `stop` of the leading axis."""
    shape = aval_of(x).shape
    return slice(x, (start, *(0,) * len(shape[1:])), (stop, *shape[1:]))


def _call_in_turn(f: Callable[[Any], Any], elements: Sequence[Any], tree: PyTreeDef, length: int) -> Any:
    """Return the stacked results of `f`, computed one element at a time."""
    if config.disable_jit.value:
        return scan(lambda carry, x: (carry, f(x)), (), pytree.tree_unflatten(tree, elements))[1]
    inner = [remove_axis(aval_of(x), 0) for x in elements]
    body = stage_body("map", f, pytree.treedef_tuple([tree]), inner)
    results = run_scan(body.jaxpr, Loop(length, False, 1, len(body.consts), 0), [*body.consts, *elements])
    return pytree.tree_unflatten(body.out_tree, results)


def _call_on_batch(f: Callable[[Any], Any], xs: object) -> Any:
    """Return the results of `f` for all indices of the leading axis, computed together."""
    elements, tree = pytree.tree_flatten(xs)
    out_tree: Any = None

    def flat(*leaves: Any) -> list[Any]:
        nonlocal out_tree
        results, out_tree = pytree.tree_flatten(f(pytree.tree_unflatten(tree, leaves)))
        return results

    mapped = MappedAxis(aval_of(elements[0]).shape[0])
    with scope(VMAP):
        results, axes = batch(flat, mapped, elements, [0] * len(elements))
    placed = [mapped.place(x, i) for x, i in zip(results, axes, strict=True)]
    return pytree.tree_unflatten(out_tree, placed)


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Return the inclusive scan of elements along an axis by an associative function, in logarithmic depth.

    Args:
        fn: a function of two trees, of any one size along the axis, that combines corresponding elements into one tree.
        elems: a pytree of arrays of one size along the axis.
        reverse: whether to scan from the end of the axis.
        axis: the axis.

    Returns:
        A pytree of the structure, shapes and dtypes of `elems`.

    Raises:
        TypeError: `fn` is not callable, or returns another structure.
        ValueError: the arrays differ in size along the axis.

    Example:
        >>> lax.associative_scan(jnp.maximum, jnp.array([1, 3, 2]))
        Array([1, 3, 3], dtype=int32)
    """
    check_function("fn", fn)
    leaves, tree, avals = flatten_argument("elems", elems)
    if not leaves:
        return elems
    axes = [canonical_axis(axis, a.ndim) for a in avals]
    sizes = {a.shape[i] for a, i in zip(avals, axes, strict=True)}
    if len(sizes) > 1:
        paths = describe_leaf_paths(["elems"], [tree])
        lines = [f"  * {path} has size {a.shape[i]}" for path, a, i in zip(paths, avals, axes, strict=True)]
        size = f"size along axis {axis}" if any(axes) else "first dimension"
        raise ValueError(f"Array inputs to associative_scan must have the same {size}:\n" + "\n".join(lines))

    def combine(one: list[Any], other: list[Any]) -> list[Any]:
        result, own_tree = pytree.tree_flatten(fn(pytree.tree_unflatten(tree, one), pytree.tree_unflatten(tree, other)))
        if own_tree != tree:
            raise TypeError(
                "associative_scan: fn must return the structure of elems; "
                f"{pytree_differences.treedef_difference(tree, own_tree)}"
            )
        return result

    def scan_leaves(*values: Array) -> list[Any]:
        ordered = [rev(x, (i,)) for x, i in zip(values, axes, strict=True)] if reverse else list(values)
        scanned = _scan(combine, ordered, axes)
        return [rev(x, (i,)) for x, i in zip(scanned, axes, strict=True)] if reverse else scanned

    if current_trace.get() is not base_trace or config.disable_jit.value:
        return pytree.tree_unflatten(tree, scan_leaves(*leaves))
    # An eager call is one program.
    body = stage_body(
        "associative_scan", scan_leaves, pytree.treedef_tuple([pytree.tree_structure(0)] * len(leaves)), avals
    )
    results = jit_call.bind_positional(
        [*body.consts, *leaves], ("associative_scan", body.jaxpr, (), False, None, False, *NO_PLACES)
    )
    return pytree.tree_unflatten(tree, results)


def _scan(combine: Callable[[list[Any], list[Any]], list[Any]], elements: list[Any], axes: Sequence[int]) -> list[Any]:
    """Return the scan: a scan of combined neighbours gives the odd positions, from which the even ones follow."""

    def part(values: Sequence[Any], start: int, stop: int | None, step: int = 1) -> list[Any]:
        return [slice_in_dim(x, start, stop, step, i) for x, i in zip(values, axes, strict=True)]

    size = aval_of(elements[0]).shape[axes[0]]
    if is_symbolic(size):
        return _scan_in_order(combine, elements, axes)
    if size < 2:
        return elements
    pairs = combine(part(elements, 0, size - 1, 2), part(elements, 1, None, 2))
    odd = _scan(combine, pairs, axes)
    before = part(odd, 0, -1) if size % 2 == 0 else odd
    even = combine(before, part(elements, 2, None, 2))
    even = [concatenate([x, y], i) for x, y, i in zip(part(elements, 0, 1), even, axes, strict=True)]
    return [_interleave(x, y, i) for x, y, i in zip(even, odd, axes, strict=True)]


def _scan_in_order(
    combine: Callable[[list[Any], list[Any]], list[Any]], elements: list[Any], axes: Sequence[int]
) -> list[Any]:
    """Return the scan over a symbolic number of elements, one step at a time."""
    moved = [move_axis(x, i, 0) for x, i in zip(elements, axes, strict=True)]
    first = [index_in_dim(x, 0, 0, keepdims=False) for x in moved]

    def step(carry: list[Any], row: list[Any]) -> Any:
        combined = combine(carry, row)
        return combined, combined

    _, rest = scan(step, first, [slice_in_dim(x, 1, None) for x in moved])
    scanned = [concatenate([reshape(x, (1, *aval_of(x).shape)), y], 0) for x, y in zip(first, rest, strict=True)]
    return [move_axis(x, 0, i) for x, i in zip(scanned, axes, strict=True)]


def _interleave(even: Array, odd: Array, axis: int) -> Array:
    """Return the elements of two arrays in alternation."""
    first, second = aval_of(even), aval_of(odd)
    unequal = first.shape[axis] > second.shape[axis]
    zero = scalar_literal(0, first.dtype)

    def dilate(x: ArrayLike, low: int, high: int) -> Any:
        return pad(x, zero, [(low, high, 1) if i == axis else (0, 0, 0) for i in range(first.ndim)])

    merge = bitwise_or if dtypes.is_boolean(first.dtype) else add
    return merge(dilate(even, 0, 0 if unequal else 1), dilate(odd, 1, 1 if unequal else 0))
