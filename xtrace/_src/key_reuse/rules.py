"""What operations do with the random keys among their operands, and jaxprs followed with the accounts of their keys.

A rule is ``rule(accounts, **parameters) -> accounts`` of the results, or None where their keys are new. Without a rule,
an operation that calls its only jaxpr does what the jaxpr does, one that compares leaves keys alone, and any other one
uses all that it is given. Loops are followed as often as it takes for keys that their carry exchanges to come again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, reshape, transpose
from xtrace._src.core import dtypes
from xtrace._src.core.ir import ClosedJaxpr, JaxprEqn, Var, called_jaxpr
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.source import describe, user_position
from xtrace._src.key_reuse.accounts import (
    Accounts,
    KeyUses,
    account_of,
    consume,
    make_unused,
    new_accounts,
    refuse_reuse,
)
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice
from xtrace._src.ops.arrays.gathering import gather
from xtrace._src.ops.arrays.shape import copy, rev, squeeze
from xtrace._src.ops.arrays.slicing import slice as slice_p
from xtrace._src.ops.control_flow.cond import cond_p
from xtrace._src.ops.control_flow.scan import scan_p
from xtrace._src.ops.control_flow.scan_parts import Loop
from xtrace._src.ops.control_flow.while_loop import WhileLoop, while_p
from xtrace._src.ops.device_put import device_put_p, place_result_p
from xtrace._src.ops.host.callbacks import debug_callback_p
from xtrace._src.ops.host.debug_printing import debug_print_p
from xtrace._src.ops.metadata import xla_metadata_value_p
from xtrace._src.ops.random.keys import random_clone, random_fold_in, random_unwrap
from xtrace._src.ops.remat.rematerialization import remat_call
from xtrace._src.ops.shard_map import shard_map_p
from xtrace._src.ops.solvers import linear_solve
from xtrace._src.runtime.arrays import ConcreteArray

_Rule = Callable[..., "Accounts | None"]


def follow(closed: ClosedJaxpr, accounts: Accounts) -> Accounts:
    """Return the accounts of a jaxpr's results, those of operands being given, which change with what it uses.

    KeyReuseError if a key is used that was used before.
    """
    jaxpr = closed.jaxpr
    consts = [
        account_of(c) if isinstance(c, ConcreteArray) else new_accounts([v.aval])[0]
        for c, v in zip(closed.consts, jaxpr.constvars, strict=True)
    ]
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *accounts], strict=True))
    for equation in jaxpr.eqns:
        given = [known.get(x) if isinstance(x, Var) else None for x in equation.invars]
        known.update(zip(equation.outvars, _results(equation, given), strict=True))
    return [known.get(x) if isinstance(x, Var) else None for x in jaxpr.outvars]


def _results(equation: JaxprEqn, given: Accounts) -> Accounts:
    """Return the accounts of an equation's results."""
    primitive, account = equation.primitive, None
    rule = RULES.get(primitive)
    if rule is not None:
        account = rule(given, **equation.params)
    elif (called := called_jaxpr(primitive, equation.parameters, [x.aval for x in equation.invars])) is not None:
        account = follow(called, given)
    elif any(x is not None for x in given) and not _compares(equation):
        source = equation.source if equation.source is not None else user_position()
        consume(primitive.name, f"{primitive.name} on line {describe(source)}", given)
    return new_accounts([v.aval for v in equation.outvars]) if account is None else account


def _compares(equation: JaxprEqn) -> bool:
    return not equation.primitive.multiple_results and dtypes.is_boolean(equation.outvars[0].aval.dtype)


def _leaving_alone(accounts: Accounts, **parameters: object) -> None:
    """The rule of an operation that may look at the same keys again; those among its results are new."""


def _on_pieces(accounts: Accounts, **parameters: object) -> None:
    """The rule of a computation on pieces of arrays: each key is used by it, on one device or on several."""
    consume("shard_map", "shard_map", accounts)


def _choosing(accounts: Accounts, **parameters: object) -> None:
    """The rule of an operation that takes some keys, which ones only its other operands say: not all may be used."""
    keys = accounts[0]
    if keys is not None and keys.all_used():
        refuse_reuse("indexing", 0, keys)


def _moving(move: Callable[..., Any]) -> _Rule:
    """Return the rule of an operation whose result has keys of its operand: the keys at ``move(places)``."""

    def rule(accounts: Accounts, **parameters: object) -> Accounts:
        keys = accounts[0]
        return [None if keys is None else KeyUses(keys.users, move(keys.places, **parameters))]

    return rule


def _broadcast(places: Any, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...], **_: Any) -> Any:
    inner = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, places.shape, strict=True):
        inner[axis] = size
    return np.broadcast_to(places.reshape(inner), shape)


def _slice(
    places: Any, *, start_indices: tuple[int, ...], limit_indices: tuple[int, ...], strides: tuple[int, ...] | None
) -> Any:
    return places[tuple(map(slice, start_indices, limit_indices, strides or (1,) * len(start_indices)))]


def _remat(accounts: Accounts, *, jaxpr: ClosedJaxpr, differentiated: bool, **_: object) -> Accounts | None:
    # What is computed once more draws the same numbers on purpose.
    return None if differentiated else follow(jaxpr, accounts)


def _merge_branches(branches: Sequence[ClosedJaxpr], accounts: Accounts) -> Accounts:
    """Return the accounts of the results of one of several jaxprs: a key that one of them uses is used."""
    tables = list({id(x.users): x.users for x in accounts if x is not None}.values())
    before = [t.copy() for t in tables]
    together = [t.copy() for t in tables]
    outcomes = []
    for branch in branches:
        results = follow(branch, accounts)
        outcomes.append([None if x is None else (x, x.user()) for x in results])
        for table, start, union in zip(tables, before, together, strict=True):
            for place, user in enumerate(table):
                union[place] = union[place] if user is None else user
            table[:] = start
    for table, union in zip(tables, together, strict=True):
        table[:] = union
    return [_either(cases) for cases in zip(*outcomes, strict=True)]


def _either(cases: Sequence[tuple[KeyUses, str | None] | None]) -> KeyUses | None:
    """Return the account of keys that are one of those given, each with who had used them."""
    pairs = [c for c in cases if c is not None]
    if not pairs:
        return None
    first = pairs[0][0]
    if all(keys.users is first.users and (keys.places == first.places).all() for keys, _ in pairs):
        return first
    account = make_unused(first.places.shape)
    for keys, user in pairs:
        if user is not None:
            account.note(user)
        elif keys.user() is None:
            keys.note("cond, which may have returned it")
    return account


def _run_rounds(body: Callable[[Accounts], Accounts], carry: Accounts, length: int | None) -> Accounts:
    """Follow a loop of `length` rounds, None if unknown, until each key has passed through all places of the carry."""
    given = [x.users for x in carry if x is not None]
    rounds = max(2, 1 + sum(x.places.size for x in carry if x is not None))
    seen: set[Any] = set()
    for _ in range(rounds if length is None else min(rounds, length)):
        carry = body(carry)
        state = tuple([x and _state(x, given) for x in carry])
        if state in seen:
            break
        seen.add(state)
    return carry


def _state(keys: KeyUses, given: Sequence[Any]) -> tuple[Any, ...]:
    """Return which of the keys of a loop's first carry, or new ones, these are, in which order, and who used each."""
    origin = next((number for number, users in enumerate(given) if users is keys.users), None)
    return origin, keys.places.tobytes(), tuple(keys.users)


def _scan(accounts: Accounts, *, jaxpr: ClosedJaxpr, **details: Any) -> Accounts:
    loop = Loop(**details)
    consts, carry, xs = loop.split(accounts)
    elements = new_accounts(jaxpr.in_avals[loop.num_consts + loop.num_carry :])
    steps: list[Any] = new_accounts(jaxpr.out_avals[loop.num_carry :])

    def body(carry: Accounts) -> Accounts:
        elements[:] = new_accounts(jaxpr.in_avals[loop.num_consts + loop.num_carry :])
        results = follow(jaxpr, [*consts, *carry, *elements])
        steps[:] = results[loop.num_carry :]
        return results[: loop.num_carry]

    carry = _run_rounds(body, carry, loop.length)
    for position, (keys, element) in enumerate(zip(xs, elements, strict=True)):
        if keys is not None and element is not None:
            for number, user in enumerate(element.users):
                if user is not None:
                    column = keys.places.reshape(loop.length, -1)[:, number]
                    consume(f"scan, operand {position} of xs", user, [KeyUses(keys.users, column)])
    return [*carry, *[None if y is None else _stack_steps(y, elements, xs, loop.length) for y in steps]]


def _stack_steps(step: KeyUses, elements: Accounts, xs: Accounts, length: int) -> KeyUses:
    """Return the account of the keys that steps give: elements of an operand, or new ones."""
    for keys, element in zip(xs, elements, strict=True):
        if keys is not None and element is not None and element.users is step.users:
            return KeyUses(keys.users, keys.places.reshape(length, -1)[:, step.places])
    account = make_unused((length, *step.places.shape))
    account.users[:] = np.broadcast_to(step.users[step.places], (length, *step.places.shape)).ravel()
    return account


def _while(accounts: Accounts, **parameters: Any) -> Accounts:
    loop = WhileLoop(**parameters)
    own, consts, carry = loop.split(accounts)
    follow(loop.cond_jaxpr, [*own, *carry])

    def body(carry: Accounts) -> Accounts:
        carry = follow(loop.body_jaxpr, [*consts, *carry])
        follow(loop.cond_jaxpr, [*own, *carry])
        return carry

    return _run_rounds(body, carry, None)


RULES: dict[Primitive, _Rule] = {
    broadcast_in_dim: _moving(_broadcast), copy: _moving(lambda places: places),
    reshape: _moving(lambda places, *, new_sizes, dimensions, **_: places.transpose(dimensions).reshape(new_sizes)),
    rev: _moving(lambda places, *, dimensions: np.flip(places, dimensions)), slice_p: _moving(_slice),
    squeeze: _moving(lambda places, *, dimensions: places.squeeze(dimensions)),
    transpose: _moving(lambda places, *, permutation: places.transpose(permutation)),
    place_result_p: _moving(lambda places, **_: places), xla_metadata_value_p: _moving(lambda places, **_: places),
    device_put_p: lambda accounts, **_: list(accounts), dynamic_slice: _choosing, gather: _choosing,
    debug_callback_p: _leaving_alone, debug_print_p: _leaving_alone, linear_solve: _leaving_alone,
    random_clone: _leaving_alone, random_fold_in: _leaving_alone, random_unwrap: _leaving_alone,
    cond_p: lambda accounts, *, branches, **_: _merge_branches(branches, accounts[1:]),
    remat_call: _remat, scan_p: _scan, shard_map_p: _on_pieces, while_p: _while,
}
