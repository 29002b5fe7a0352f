"""einsum: sums of products written with one letter for each axis, in the order that opt_einsum finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import opt_einsum
from opt_einsum.parser import convert_interleaved_input, parse_einsum_input

from xtrace._src.algebra.resharding import cast_to_auto, reshard_result
from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to, operand_aval, reduce_sum, transpose
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import common_dtype
from xtrace._src.core import dtypes, type_promotion
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.sizes import guess
from xtrace._src.core.tables import Table
from xtrace._src.ops.arrays.creation import broadcasted_iota
from xtrace._src.ops.arrays.shape import squeeze
from xtrace._src.ops.contractions.contraction import choose_product_sharding, dot_general, multiply_shards
from xtrace._src.ops.elementwise.comparisons import bitwise_and, eq
from xtrace._src.ops.reductions.reductions import reduce_or
from xtrace.numpy.operands import refuse, select_or_fill
from xtrace.numpy.products.contraction import to_factor

_Axes = tuple[int, ...]


class _OperandSteps(NamedTuple):
    """The steps on an operand before it is multiplied.

    diagonals: pairs of axes with one letter. summed: axes that are summed over. squeezed: axes of size 1, numbered
    after the summation, that broadcast against longer ones.
    """

    diagonals: tuple[tuple[int, int], ...]
    summed: _Axes
    squeezed: _Axes


class _Step(NamedTuple):
    """The positions of one or two operands in the list, the steps on each, their dot_general, and its permutation."""

    positions: _Axes
    sides: tuple[_OperandSteps, ...]
    dimensions: Any
    order: _Axes | None


# Steps by subscripts, order of contraction and shapes.
_steps_of_calls = Table()


def einsum(
    subscripts: object, /, *operands: ArrayLike, out: None = None, optimize: object = "auto", precision: object = None,
    preferred_element_type: object = None, _dot_general: Callable[..., Any] = dot_general, out_sharding: object = None,
) -> Array:
    """Return the sum of products that subscripts describe.

    Args:
        subscripts: one letter for each axis of an operand, terms separated by commas, and ``->`` with the letters
            of the result, by default those that occur once, in alphabetical order. A letter twice in a term is a
            diagonal; an ellipsis stands for axes that broadcast. Or the first operand.
        operands: the arrays; after a first operand in `subscripts`, a list of integers instead of
            letters after each operand, and the list of the result.
        out: not supported; leave it at None.
        optimize: True or the name of a strategy of opt_einsum for the order of contractions; False for the order as
            written; or a path, a list of tuples of positions.
        precision: a `lax.Precision` or its name; None for the default.
        preferred_element_type: the dtype of the sums and the result; None for the promoted dtype.
        _dot_general: the function to call instead of `lax.dot_general`.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array.

    Raises:
        NotImplementedError: `out` is given.
        TypeError: an operand is not an array.
        ValueError: the subscripts do not fit the operands.

    Example:
        >>> jnp.einsum("ij,j->i", jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
        Array([21, 43], dtype=int32)
    """
    refuse(out=out)
    sharding = choose_product_sharding(out_sharding)
    unreduced = sharding.spec.unreduced if sharding is not None else frozenset()
    if sharding is not None and not unreduced:
        operands = tuple([cast_to_auto(x) if isinstance(x, Array) else x for x in operands])
        summed = einsum(
            subscripts, *operands, optimize=optimize, precision=precision,
            preferred_element_type=preferred_element_type, _dot_general=_dot_general,
        )
        return reshard_result(summed, sharding)
    if not isinstance(subscripts, str):
        subscripts, operands = _parse_interleaved((subscripts, *operands))
    preferred = requested_dtype(preferred_element_type)
    avals = [operand_aval(x, i) for i, x in enumerate(operands)]
    key = (subscripts, _make_hashable(optimize), *[aval.shape for aval in avals])
    steps = _steps_of_calls.get(key)
    if steps is None:
        steps = _plan_steps(subscripts, [aval.shape for aval in avals], optimize)
        _steps_of_calls.remember(key, steps)
    if preferred is None:
        _, dtype, weak = common_dtype(operands)
    else:
        dtype, weak = preferred, False
    run = _contract if _dot_general is dot_general else _contract.__wrapped__  # type: ignore[attr-defined]
    summed = run(
        *operands, steps=steps, dtype=dtype, weak=weak, precision=_make_hashable(precision), multiply=_dot_general,
        unreduced=unreduced,
    )
    return reshard_result(summed, sharding)


def einsum_path(
    subscripts: object, /, *operands: ArrayLike, optimize: object = "auto"
) -> tuple[list[tuple[int, ...]], Any]:
    """Return the order in which `einsum` contracts its operands.

    Args:
        subscripts, operands: as in `einsum`.
        optimize: True or the name of a strategy of opt_einsum for the order of contractions; False for the order as
            written; or a path, a list of tuples of positions.

    Returns:
        A pair of a list of tuples of positions in the list of operands, and opt_einsum's report.

    Raises:
        ValueError: the subscripts do not fit the operands.

    Example:
        >>> jnp.einsum_path("ij,jk,k->i", np.ones((2, 2)), np.ones((2, 2)), np.ones(2))[0]
        [(1, 2), (0, 1)]
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _parse_interleaved((subscripts, *operands))
    shapes = [operand_aval(x, i).shape for i, x in enumerate(operands)]
    return _find_path(subscripts, shapes, optimize)


def _make_hashable(value: object) -> Any:
    return tuple([_make_hashable(x) for x in value]) if isinstance(value, (list, tuple)) else value


def _parse_interleaved(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Return the subscripts and operands of a call that has a list of axes after each operand."""
    try:
        subscripts, operands = convert_interleaved_input(arguments)
    except (TypeError, KeyError) as error:
        raise TypeError(
            f"{called_function()}: the first argument must be a string, or each operand must be followed by a list "
            f"of its axes, integers or Ellipsis; got {', '.join(type(x).__name__ for x in arguments)} ({error})"
        ) from None
    return subscripts, tuple(operands)


def _find_path(subscripts: str, shapes: Sequence[_Axes], optimize: Any) -> tuple[Any, Any]:
    """Return opt_einsum's path and its report; ValueError for subscripts that do not fit the operands."""
    strategy: Any = optimize
    if isinstance(optimize, bool):
        strategy = "optimal" if optimize or len(shapes) < 2 else [(0, 1)] * (len(shapes) - 1)
    elif isinstance(optimize, (list, tuple)):
        _check_path(optimize, len(shapes))
    elif not isinstance(optimize, str):
        raise TypeError(
            f"{called_function()}: optimize must be a bool, a string or a list of positions, got {abbreviate(optimize)}"
        )
    # The order of symbolic sizes is unknown; no result depends on it.
    shapes = [tuple([guess(n) for n in shape]) for shape in shapes]
    try:
        path, report = opt_einsum.contract_path(subscripts, *shapes, shapes=True, optimize=strategy)
        return path, report
    except (ValueError, KeyError) as error:
        kind = KeyError if isinstance(error, KeyError) and isinstance(optimize, str) else ValueError
        raise kind(
            f"{called_function()}: {str(error).removesuffix('.')}; the subscripts are {abbreviate(subscripts)}, the "
            f"operands have shapes {', '.join(map(str, shapes))}, optimize={abbreviate(optimize)}"
        ) from None


def _check_path(path: Sequence[Any], count: int) -> None:
    """Raise TypeError, IndexError or ValueError unless `path` contracts `count` operands."""
    for entry in path:
        if not isinstance(entry, (list, tuple)) or not all(isinstance(i, int) for i in entry):
            raise TypeError(
                f"{called_function()}: optimize must be a list of tuples of positions, got {abbreviate(path)}"
            )
        if not all(0 <= i < count for i in entry) or len(set(entry)) != len(entry):
            raise IndexError(
                f"{called_function()}: optimize={abbreviate(path)} takes operands {entry} where {count} are left"
            )
        count -= max(len(entry) - 1, 0)
    if count != 1:
        raise ValueError(
            f"{called_function()}: optimize={abbreviate(path)} leaves {count} operands that are not contracted"
        )


def _plan_steps(subscripts: str, shapes: list[_Axes], optimize: object) -> tuple[_Step, ...]:
    """Return the steps that contract operands of `shapes`."""
    path, _ = _find_path(subscripts, shapes, optimize)
    inputs, output, _ = parse_einsum_input((subscripts, *shapes), shapes=True)
    terms = list(zip(inputs.split(","), shapes, strict=True))
    steps = []
    for entry in path:
        # More than two operands are contracted in pairs; each product goes to the end of the list.
        together = sorted(entry)
        while together:
            pair: _Axes = tuple(together[:2])
            taken = [terms[i] for i in pair]
            terms = [term for i, term in enumerate(terms) if i not in pair]
            step, names, shape = _plan_step(pair, taken, "".join([names for names, _ in terms]), output, last=not terms)
            steps.append(step)
            terms.append((names, shape))
            together = [i - 2 for i in together[2:]] + [len(terms) - 1] if len(together) > 2 else []
    return tuple(steps)


def _plan_step(
    positions: _Axes, taken: Sequence[Any], later: str, output: str, *, last: bool
) -> tuple[_Step, str, _Axes]:
    """Return the step for the terms `taken`, and names and sizes of its result."""
    needed = set(later + output)
    if len(taken) == 1:
        side, sizes = _plan_operand(taken[0][0], taken[0][1], needed, {})
        names, dimensions = "".join(sizes), None
        sides: tuple[_OperandSteps, ...] = (side,)
    else:
        own = [dict(zip(names, shape, strict=True)) for names, shape in taken]
        # Axes of size 1 that broadcast are dropped; letters left in one operand only are summed there.
        left = [
            {k: n for k, n in sizes.items() if n != 1 or other.get(k, 1) == 1}
            for sizes, other in ((own[0], own[1]), (own[1], own[0]))
        ]
        pairs = [
            _plan_operand(names, shape, needed | (left[0].keys() & left[1].keys()), left[1 - i])
            for i, (names, shape) in enumerate(taken)
        ]
        dimensions, names, exchanged = _plan_product(pairs[0][1], pairs[1][1], needed, output)
        sizes = pairs[0][1] | pairs[1][1]
        sides = tuple([side for side, _ in (pairs[::-1] if exchanged else pairs)])
        positions = positions[::-1] if exchanged else positions
    order = None
    if last and names != output:
        order, names = tuple([names.index(k) for k in output]), output
    return _Step(positions, sides, dimensions, order), names, tuple([sizes[k] for k in names])


def _plan_operand(
    names: str, shape: _Axes, kept: set[str], other: dict[str, int]
) -> tuple[_OperandSteps, dict[str, int]]:
    """Return the steps on an operand, and the sizes of its axes after them."""
    diagonals, summed = [], []
    last: dict[str, int] = {}
    for axis, name in enumerate(names):
        if name in last:
            diagonals.append((last[name], axis))
            summed.append(last[name])
        last[name] = axis
    summed += [axis for name, axis in last.items() if name not in kept]
    left = [i for i in range(len(names)) if i not in summed]
    squeezed = [at for at, i in enumerate(left) if shape[i] == 1 and other.get(names[i], 1) != 1]
    sizes = {names[i]: shape[i] for at, i in enumerate(left) if at not in squeezed}
    return _OperandSteps(tuple(diagonals), tuple(sorted(summed)), tuple(squeezed)), sizes


def _plan_product(left: dict[str, int], right: dict[str, int], needed: set[str], output: str) -> tuple[Any, str, bool]:
    """Return the axes of the dot_general of two operands, the names of its result, and whether they are exchanged.

    The operands are exchanged where the result then needs fewer transpositions to `output`.
    """
    shared = [k for k in left if k in right]
    over = [k for k in shared if k not in needed]
    batch = sorted([k for k in shared if k in needed], key=output.find)
    free = ["".join([k for k in names if k not in shared]) for names in (left, right)]
    both = ["".join(batch) + free[0] + free[1], "".join(batch) + free[1] + free[0]]
    exchanged = _count_inversions(both[1], output) < _count_inversions(both[0], output)
    operands = [list(names) for names in ((right, left) if exchanged else (left, right))]
    contracting, batched = [
        tuple([tuple([names.index(k) for k in group]) for names in operands]) for group in (over, batch)
    ]
    return (contracting, batched), both[exchanged], exchanged


def _count_inversions(names: str, output: str) -> int:
    """Return the number of pairs of names whose order is reversed in `output`."""
    places = [output.index(k) for k in names if k in output]
    return sum(a > b for i, a in enumerate(places) for b in places[i + 1 :])


@inline_jit
def _contract(
    *operands: Any, steps: tuple[_Step, ...], dtype: Any, weak: bool, precision: Any, multiply: Any,
    unreduced: frozenset[Any],
) -> Any:
    values = [to_factor(x, dtype) for x in operands]
    for positions, sides, dimensions, order in steps:
        taken = [_reduce_operand(values[i], side, dtype) for i, side in zip(positions, sides, strict=True)]
        values = [x for i, x in enumerate(values) if i not in positions]
        if dimensions is None:
            (product,) = taken
        elif unreduced and not values:
            left, right = taken
            product = multiply_shards(left, right, dimensions, precision, dtype, unreduced)
        else:
            product = multiply(*taken, dimensions, precision=precision, preferred_element_type=dtype)
        values.append(product if order is None else transpose(product, order))
    return convert_to(values[0], dtype, weak)


def _reduce_operand(x: Array, side: _OperandSteps, dtype: np.dtype[Any]) -> Array:
    if side.diagonals:
        x = select_or_fill(_mask_diagonals(x.shape, side.diagonals), x, 0)
    if side.summed:
        # The sum is formed in the wider of the operand's and the result's type.
        if type_promotion.promote(((x.dtype, False), (dtype, False)), config.keeps_wide_dtypes())[0] == dtype:
            x = convert_to(x, dtype, x.aval.weak_type)
        x = (reduce_or if dtypes.is_boolean(x.dtype) else reduce_sum)(x, side.summed)
    return squeeze(x, side.squeezed) if side.squeezed else x


def _mask_diagonals(shape: _Axes, diagonals: Sequence[tuple[int, int]]) -> Any:
    """Return a mask of `shape`: True at equal indices along each pair of axes."""
    mask = None
    for pair in diagonals:
        square = tuple([shape[i] for i in pair])
        equal = eq(*[broadcasted_iota(dtypes.int32, square, i) for i in (0, 1)])
        if len(shape) > 2:
            equal = broadcast_in_dim(equal, shape, pair)
        mask = equal if mask is None else bitwise_and(mask, equal)
    return mask
