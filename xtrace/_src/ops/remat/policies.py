"""Policies of `checkpoint`: functions of an equation that return whether its results are saved or recomputed."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.tables import memoize
from xtrace._src.ops.contractions.contraction import dot_general
from xtrace._src.ops.remat.checkpoint_name import checkpoint_name

Policy = Callable[..., Any]


class SaveableType:
    """The result of a policy for a saved value; equivalent to True."""

    def __repr__(self) -> str:
        return "Saveable"


class RecomputeType:
    """The result of a policy for a recomputed value; equivalent to False."""

    def __repr__(self) -> str:
        return "Recompute"


class Offloadable(NamedTuple):
    """The result of a policy for a value to save in another kind of memory.

    Args:
        src: the kind of memory of the value, such as ``"device"``.
        dst: the kind of memory in which to save it, such as ``"pinned_host"``.

    Example:
        >>> xtrace.ad_checkpoint.Offloadable("device", "pinned_host")
        Offloadable(src='device', dst='pinned_host')
    """

    src: str
    dst: str


Saveable, Recompute = SaveableType(), RecomputeType()


def everything_saveable(*_: object, **__: object) -> bool:
    """Keep every value, as without `checkpoint`."""
    return True


def nothing_saveable(*_: object, **__: object) -> bool:
    """Keep no value, as without a policy."""
    return False


def dots_saveable(primitive: Primitive, *_: ShapedArray, **__: object) -> bool:
    """Keep the results of contractions and convolutions."""
    return primitive is dot_general or primitive.name == "conv_general_dilated"


def dots_with_no_batch_dims_saveable(primitive: Primitive, *_: ShapedArray, **parameters: Any) -> bool:
    """Keep the results of contractions without batch dimensions: products with weights."""
    return primitive is dot_general and not any(parameters["dimension_numbers"][1])


# Memoized policies are the same object for the same arguments, so compiled programs are found again.
@memoize(1024)
def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Callable[..., Any]:
    """Keep the results of contractions without batch dimensions, in the memory `offload_dst`."""

    def policy(primitive: Primitive, *_: object, **parameters: object) -> Any:
        kept = dots_with_no_batch_dims_saveable(primitive, **parameters)
        return Offloadable(offload_src, offload_dst) if kept else Recompute

    return policy


@memoize(1024)
def save_anything_except_these_names(*names_not_to_save: str) -> Callable[..., bool]:
    """Keep every value except those with one of these names, from `checkpoint_name`."""
    names = frozenset(names_not_to_save)

    def policy(primitive: Primitive, *_: ShapedArray, **parameters: object) -> bool:
        return primitive is not checkpoint_name or parameters["name"] not in names

    return policy


@memoize(1024)
def save_any_names_but_these(*names_not_to_save: str) -> Callable[..., bool]:
    """Keep the values with names from `checkpoint_name`, except these names."""
    names = frozenset(names_not_to_save)

    def policy(primitive: Primitive, *_: object, **parameters: object) -> bool:
        return primitive is checkpoint_name and parameters["name"] not in names

    return policy


@memoize(1024)
def save_only_these_names(*names_which_can_be_saved: str) -> Callable[..., bool]:
    """Keep the values with one of these names, from `checkpoint_name`."""
    names = frozenset(names_which_can_be_saved)

    def policy(primitive: Primitive, *_: ShapedArray, **parameters: object) -> bool:
        return primitive is checkpoint_name and parameters["name"] in names

    return policy


@memoize(1024)
def save_from_both_policies(policy_1: Callable[..., bool], policy_2: Callable[..., bool]) -> Callable[..., bool]:
    """Keep the values that either policy keeps."""

    def policy(primitive: Primitive, *avals: ShapedArray, **parameters: object) -> bool:
        return policy_1(primitive, *avals, **parameters) or policy_2(primitive, *avals, **parameters)

    return policy


def save_and_offload_only_these_names(
    *, names_which_can_be_saved: Sequence[str], names_which_can_be_offloaded: Sequence[str], offload_src: str,
    offload_dst: str,
) -> Callable[..., Any]:
    """Keep the values with some names, and offload the values with other names to the memory `offload_dst`.

    Raises ValueError for a name in both.
    """
    saved, offloaded = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    if saved & offloaded:
        raise ValueError(
            "save_and_offload_only_these_names: names_which_can_be_saved and names_which_can_be_offloaded must have "
            f"nothing in common; both have {sorted(saved & offloaded)}"
        )

    def policy(primitive: Primitive, *_: ShapedArray, **parameters: object) -> Any:
        if primitive is checkpoint_name and parameters["name"] in saved:
            return True
        if primitive is checkpoint_name and parameters["name"] in offloaded:
            return Offloadable(offload_src, offload_dst)
        return Recompute

    return policy


# The policies by name; two also have older names.
checkpoint_policies = types.SimpleNamespace(
    **{
        policy.__name__: policy
        for policy in (
            everything_saveable, nothing_saveable, dots_saveable, dots_with_no_batch_dims_saveable,
            offload_dot_with_no_batch_dims, save_anything_except_these_names, save_any_names_but_these,
            save_only_these_names, save_from_both_policies, save_and_offload_only_these_names,
        )
    },
    checkpoint_dots=dots_saveable,
    checkpoint_dots_with_no_batch_dims=dots_with_no_batch_dims_saveable,
)
