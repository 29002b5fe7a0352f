"""Sum rules: the mesh axes along which an operation's result is `unreduced`, terms of a sum, or `reduced`, the sum.

A rule is ``rule(name, operands, requested, **parameters) -> Sums``. An operand is a `Split`; `requested` are the sums
of the user's ``out_sharding``, or None. Rules are called only if an operand has such axes, or the user gives some. They
raise ShardingTypeError, or NotImplementedError for an operation that is not linear, if terms would have to be added up
first, because that needs communication.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.core.dtypes import is_inexact
from xtrace._src.core.errors import ShardingTypeError
from xtrace._src.core.shardings.partition_spec import PartitionSpec, get_entry_axes
from xtrace._src.core.shardings.sharding_rules import Split
from xtrace._src.core.shardings.sums import NO_SUMS, Sums

Rule = Callable[..., Any]


def _names(axes: frozenset[Any]) -> str:
    return ", ".join(sorted(map(str, axes)))


def _set_text(axes: frozenset[Any]) -> str:
    """Return the text of a set of names in a user's program."""
    return f"{{{', '.join(sorted([repr(str(axis)) for axis in axes]))}}}"


def _form(x: Split) -> str:
    """Return the expression that forms the sum of an operand."""
    if x.varying or x.mesh is None:
        return f"xtrace.lax.psum(x, {tuple(sorted(map(str, x.sums.unreduced)))})"
    return f"xtrace.reshard(x, xtrace.{PartitionSpec(*x.entries)})"


def _refuse_unreduced(name: str, operands: Sequence[Split], positions: Sequence[int]) -> None:
    """Raise NotImplementedError if an operand at one of `positions` is unreduced."""
    for i in positions:
        x = operands[i]
        if x.sums.unreduced:
            raise NotImplementedError(
                f"unreduced rule for {name} is not implemented: operand {i}, {x.show()}, is a sum over the mesh axes "
                f"{_names(x.sums.unreduced)} that has not been formed. Form it first with {_form(x)}"
            )


def _common_reduced(name: str, operands: Sequence[Split], unreduced: frozenset[Any] = frozenset()) -> frozenset[Any]:
    """Return the common reduced axes of all operands, without the axes `unreduced`.

    Raises ShardingTypeError if an operand has other reduced axes. Scalars may have none, and so may indices and masks,
    which have no cotangents.
    """
    named = {x.sums.reduced - unreduced for x in operands if x.sums.reduced - unreduced}
    if not named:
        return frozenset()
    shown = ", ".join([x.show() for x in operands])
    reduced, kinds = frozenset().union(*named), [x.aval.dtype for x in operands if x.sums.reduced]
    if len(named) > 1:
        raise ShardingTypeError(
            f"{name}: all operands should be reduced along the same mesh axes, got {shown}. Make them alike with "
            f"xtrace.reshard(x, xtrace.P(..., reduced={_set_text(reduced)}))"
        )
    for x in operands:
        split = x.varying.union(*[get_entry_axes(p) for p in x.entries]) & reduced
        if split:
            raise ShardingTypeError(
                f"{name}: {x.show()} is split along the mesh axes {_names(split)}, along which another operand is "
                f"reduced, got {shown}. Split that one likewise with xtrace.reshard(x, xtrace.P(...)) first"
            )
        matters = is_inexact(x.aval.dtype) or x.aval.dtype in kinds
        if x.is_placed and x.aval.ndim and not x.sums.reduced - unreduced and matters:
            raise ShardingTypeError(
                f"{name}: {x.show()} is replicated along the mesh axes {_names(reduced)}, along which another operand "
                f"is reduced, got {shown}. Make them alike with xtrace.reshard: with or without "
                f"reduced={_set_text(reduced)}"
            )
    return reduced


def nonlinear(name: str, operands: Sequence[Split], requested: Sums | None, **_: object) -> Sums:
    """The rule of nonlinear operations: operands cannot be unreduced; the result has their reduced axes."""
    _refuse_unreduced(name, operands, range(len(operands)))
    return Sums(reduced=_common_reduced(name, operands)) if requested is None else requested


def linear_in(*positions: int) -> Rule:
    """Return the rule of operations that are linear in the operands at `positions` jointly; by default in all.

    These operands must be unreduced along the same axes.
    """

    def rule(name: str, operands: Sequence[Split], requested: Sums | None, **_: object) -> Sums:
        chosen = positions or tuple(range(len(operands)))
        _refuse_unreduced(name, operands, [i for i in range(len(operands)) if i not in chosen])
        unreduced = frozenset().union(*[operands[i].sums.unreduced for i in chosen])
        for i in chosen:
            own = operands[i].sums.unreduced
            if own != unreduced:
                term = next(operands[j] for j in chosen if operands[j].sums.unreduced)
                shown = ", ".join([x.show() for x in operands])
                raise ShardingTypeError(
                    f"{name}: operands must be unreduced along the same mesh axes, got {shown}: {term.show()} is a sum "
                    f"that has not been formed, and operand {i} is not along the same axes. Form it first with "
                    f"{_form(term)}"
                )
        reduced = _common_reduced(name, [operands[i] for i in chosen])
        return Sums(unreduced, reduced) if requested is None else requested

    return rule


def product(name: str, operands: Sequence[Split], requested: Sums | None, **_: object) -> Sums:
    """The rule of products: one factor may be unreduced, if the others are reduced along the same axes."""
    terms = [x for x in operands if x.sums.unreduced]
    shown = ", ".join([x.show() for x in operands])
    if len(terms) > 1:
        raise ShardingTypeError(
            f"{name} is bilinear: of its operands one at most can be a sum that has not been formed, got {shown}. Form "
            f"one first with {_form(terms[0])}"
        )
    unreduced = terms[0].sums.unreduced if terms else frozenset()
    for x in operands:
        is_constant = not x.sums.reduced and (not x.aval.ndim or not x.is_placed)
        if x not in terms and not is_constant and not unreduced <= x.sums.reduced:
            raise ShardingTypeError(
                f"{name}: {x.show()} should be reduced along the mesh axes {_names(unreduced)}, along which the other "
                f"operand is unreduced, got {shown}. Write xtrace.reshard(x, xtrace.P(..., "
                f"reduced={_set_text(unreduced)})), or form the sum with {_form(terms[0])}"
            )
    reduced = _common_reduced(name, [x for x in operands if x not in terms or x.sums.reduced], unreduced)
    return Sums(unreduced, reduced) if requested is None else requested


def quotient(name: str, operands: Sequence[Split], requested: Sums | None, **_: object) -> Sums:
    """The rule of quotients: the numerator may be unreduced, if the denominator is reduced along the same axes."""
    _refuse_unreduced(name, operands, (1,))
    return product(name, operands, requested)


def contract(
    name: str, operands: Sequence[Split], requested: Sums | None, *, dimension_numbers: Any, **_: object
) -> Sums:
    """The rule of `dot_general`: on request a result is unreduced along the mesh axes of contracted dimensions."""
    for x in operands[:2]:
        if x.sums.unreduced:
            raise ShardingTypeError(
                f"{name}: operands cannot be unreduced, got {operands[0].show()} and {operands[1].show()}. Form the "
                f"sum first with {_form(x)}"
            )
    if requested is None or not requested.unreduced:
        return NO_SUMS
    left, right = operands[0], operands[1]
    shown = f"{left.show()} and {right.show()}"
    entries = [[x.entries[i] for i in axes] for x, axes in zip((left, right), dimension_numbers[0], strict=True)]
    if entries[0] != entries[1]:
        raise ShardingTypeError(
            f"{name}: contracting dimensions should be split identically where out_sharding has unreduced axes, got "
            f"{shown}. Split one otherwise with xtrace.reshard(x, xtrace.P(...)) first"
        )
    contracted = frozenset([axis for entry in entries[0] for axis in get_entry_axes(entry)])
    if contracted != requested.unreduced:
        advice = f"Write unreduced={_set_text(contracted)}" if contracted else "Split these with xtrace.reshard"
        raise ShardingTypeError(
            f"{name}: the unreduced axes of out_sharding should be those that the contracting dimensions are split "
            f"over, got unreduced={_set_text(requested.unreduced)} and the operands {shown}. {advice}"
        )
    return Sums(requested.unreduced)


def summation(
    name: str, operands: Sequence[Split], requested: Sums | None, *, axes: Sequence[int], **_: object
) -> Sums:
    """The rule of `reduce_sum`: on request a result is unreduced along the mesh axes of summed dimensions."""
    (x,) = operands
    if requested is None:
        return x.sums
    summed = x.sums.unreduced.union(*[get_entry_axes(x.entries[i]) for i in axes])
    if not requested.unreduced <= summed:
        raise ShardingTypeError(
            f"{name}: the unreduced axes of out_sharding should be among those that the summed dimensions are split "
            f"over, got unreduced={_set_text(requested.unreduced)} for {x.show()} summed over {tuple(axes)}"
        )
    return requested


def each_own(name: str, operands: Sequence[Split], requested: Sums | None, **_: object) -> list[Sums]:
    """The rule of operations whose results have the sums of the operands, one by one."""
    return [x.sums for x in operands]


def linear_from(first: int) -> Rule:
    """Return the rule of operations that are linear in the operands from `first` on jointly."""

    def rule(name: str, operands: Sequence[Split], requested: Sums | None, **parameters: Any) -> Sums:
        return linear_in(*range(first, len(operands)))(name, operands, requested, **parameters)  # type: ignore[no-any-return]

    return rule


linear_in_all = linear_in()
