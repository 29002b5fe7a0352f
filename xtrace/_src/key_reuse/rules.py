"""Rules for the use of random keys by operations, and their application to jaxprs.

A rule is ``rule(accounts, **parameters) -> accounts`` of the results, or None if the keys among the results are new.
Without a rule, an operation with one jaxpr uses the keys that the jaxpr uses, a comparison uses none, and any other
operation uses all of its operands. Loops are followed until the accounts of their carry repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import broadcast_in_dim, reshape, transpose
from xtrace._src.core import dtypes
from xtrace._src.core.diagnostics.positions import describe, user_position
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, JaxprEqn, Var, called_jaxpr
from xtrace._src.core.primitive import Primitive
from xtrace._src.key_reuse.accounts import (
    Accounts,
    KeyUses,
    consume,
    get_account,
    make_accounts,
    make_unused,
    refuse_reuse,
)
from xtrace._src.ops.arrays.dynamic_slicing import dynamic_slice
from xtrace._src.ops.arrays.gather_scatter import gather
from xtrace._src.ops.arrays.shape import copy, rev, squeeze
from xtrace._src.ops.arrays.slicing import slice as slice_p
from xtrace._src.ops.calls.metadata import xla_metadata_value_p
from xtrace._src.ops.collectives.shard_map import shard_map_p
from xtrace._src.ops.control_flow.cond import cond_p
from xtrace._src.ops.control_flow.scan import scan_p
from xtrace._src.ops.control_flow.scan_parts import Loop
from xtrace._src.ops.control_flow.while_loop import WhileLoop, while_p
from xtrace._src.ops.host.callbacks import debug_callback_p
from xtrace._src.ops.host.debug_printing import debug_print_p
from xtrace._src.ops.random.keys import random_clone, random_fold_in, random_unwrap
from xtrace._src.ops.remat.rematerialization import remat_call
from xtrace._src.ops.shardings.device_put import device_put_p, place_result_p
from xtrace._src.ops.solvers import linear_solve
from xtrace._src.runtime.arrays import ConcreteArray

_Rule = Callable[..., "Accounts | None"]


def follow_keys(closed: ClosedJaxpr, accounts: Accounts) -> Accounts:
    """Return the accounts of a jaxpr's results, and record its uses in the operands' accounts.

    KeyReuseError if it uses a key that was used before.
    """
    jaxpr = closed.jaxpr
    consts = [
        get_account(c) if isinstance(c, ConcreteArray) else make_accounts([v.aval])[0]
        for c, v in zip(closed.consts, jaxpr.constvars, strict=True)
    ]
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *accounts], strict=True))
    for equation in jaxpr.eqns:
        given = [known.get(x) if isinstance(x, Var) else None for x in equation.invars]
        known.update(zip(equation.outvars, _follow_equation(equation, given), strict=True))
    return [known.get(x) if isinstance(x, Var) else None for x in jaxpr.outvars]


def _follow_equation(equation: JaxprEqn, given: Accounts) -> Accounts:
    """Return the accounts of an equation's results, and record its uses in the operands' accounts."""
    primitive, account = equation.primitive, None
    rule = RULES.get(primitive)
    if rule is not None:
        account = rule(given, **equation.params)
    elif (called := called_jaxpr(primitive, equation.parameters, [x.aval for x in equation.invars])) is not None:
        account = follow_keys(called, given)
    elif any(x is not None for x in given) and not _is_comparison(equation):
        source = equation.source if equation.source is not None else user_position()
        consume(primitive.name, f"{primitive.name} on line {describe(source)}", given)
    return make_accounts([v.aval for v in equation.outvars]) if account is None else account


def _is_comparison(equation: JaxprEqn) -> bool:
    return not equation.primitive.multiple_results and dtypes.is_boolean(equation.outvars[0].aval.dtype)


def _ignore(accounts: Accounts, **parameters: object) -> None:
    """The rule of an operation that uses no keys; keys among its results are new."""


def _shard_map(accounts: Accounts, **parameters: object) -> None:
    """The rule of a computation on shards: it uses each key, on one device or on several."""
    consume("shard_map", "shard_map", accounts)


def _select(accounts: Accounts, **parameters: object) -> None:
    """The rule of an operation that selects keys by run-time indices: at least one key must be unused."""
    keys = accounts[0]
    if keys is not None and keys.all_used():
        refuse_reuse("indexing", 0, keys)


def _make_move_rule(move: Callable[..., Any]) -> _Rule:
    """Return the rule of an operation that moves keys of its operand: the result has those at ``move(positions)``."""

    def rule(accounts: Accounts, **parameters: object) -> Accounts:
        keys = accounts[0]
        return [None if keys is None else KeyUses(keys.users, move(keys.positions, **parameters))]

    return rule


def _broadcast(positions: Any, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...], **_: Any) -> Any:
    inner = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, positions.shape, strict=True):
        inner[axis] = size
    return np.broadcast_to(positions.reshape(inner), shape)


def _slice(
    positions: Any, *, start_indices: tuple[int, ...], limit_indices: tuple[int, ...], strides: tuple[int, ...] | None
) -> Any:
    return positions[tuple(map(slice, start_indices, limit_indices, strides or (1,) * len(start_indices)))]


def _remat(accounts: Accounts, *, jaxpr: ClosedJaxpr, differentiated: bool, **_: object) -> Accounts | None:
    # A recomputation draws the same numbers on purpose.
    return None if differentiated else follow_keys(jaxpr, accounts)


def _merge_branches(branches: Sequence[ClosedJaxpr], accounts: Accounts) -> Accounts:
    """Return the accounts of the results of one of `branches`: a key is used if one of them uses it."""
    tables = list({id(x.users): x.users for x in accounts if x is not None}.values())
    before = [t.copy() for t in tables]
    together = [t.copy() for t in tables]
    outcomes = []
    for branch in branches:
        results = follow_keys(branch, accounts)
        outcomes.append([None if x is None else (x, x.find_user()) for x in results])
        for table, start, union in zip(tables, before, together, strict=True):
            for position, user in enumerate(table):
                union[position] = union[position] if user is None else user
            table[:] = start
    for table, union in zip(tables, together, strict=True):
        table[:] = union
    return [_merge_results(cases) for cases in zip(*outcomes, strict=True)]


def _merge_results(cases: Sequence[tuple[KeyUses, str | None] | None]) -> KeyUses | None:
    """Return the account of a result that is one of `cases`: keys, and their user in that branch."""
    pairs = [c for c in cases if c is not None]
    if not pairs:
        return None
    first = pairs[0][0]
    if all(keys.users is first.users and (keys.positions == first.positions).all() for keys, _ in pairs):
        return first
    account = make_unused(first.positions.shape)
    for keys, user in pairs:
        if user is not None:
            account.mark_used(user)
        elif keys.find_user() is None:
            keys.mark_used("cond, which may have returned it")
    return account


def _run_rounds(body: Callable[[Accounts], Accounts], carry: Accounts, length: int | None) -> Accounts:
    """Return the accounts of a loop's carry after `length` rounds, or after the first repeated state of the carry.

    length: None if unknown.
    """
    given = [x.users for x in carry if x is not None]
    rounds = max(2, 1 + sum(x.positions.size for x in carry if x is not None))
    seen: set[Any] = set()
    for _ in range(rounds if length is None else min(rounds, length)):
        carry = body(carry)
        state = tuple([x and _describe_state(x, given) for x in carry])
        if state in seen:
            break
        seen.add(state)
    return carry


def _describe_state(keys: KeyUses, given: Sequence[Any]) -> tuple[Any, ...]:
    """Return a hashable form of `keys`: the number of their table in `given` or None, the positions, and the users."""
    origin = next((number for number, users in enumerate(given) if users is keys.users), None)
    return origin, keys.positions.tobytes(), tuple(keys.users)


def _scan(accounts: Accounts, *, jaxpr: ClosedJaxpr, **details: Any) -> Accounts:
    loop = Loop(**details)
    consts, carry, xs = loop.split(accounts)
    elements = make_accounts(jaxpr.in_avals[loop.num_consts + loop.num_carry :])
    steps: list[Any] = make_accounts(jaxpr.out_avals[loop.num_carry :])

    def body(carry: Accounts) -> Accounts:
        elements[:] = make_accounts(jaxpr.in_avals[loop.num_consts + loop.num_carry :])
        results = follow_keys(jaxpr, [*consts, *carry, *elements])
        steps[:] = results[loop.num_carry :]
        return results[: loop.num_carry]

    carry = _run_rounds(body, carry, loop.length)
    for position, (keys, element) in enumerate(zip(xs, elements, strict=True)):
        if keys is not None and element is not None:
            for number, user in enumerate(element.users):
                if user is not None:
                    column = keys.positions.reshape(loop.length, -1)[:, number]
                    consume(f"scan, operand {position} of xs", user, [KeyUses(keys.users, column)])
    return [*carry, *[None if y is None else _stack_steps(y, elements, xs, loop.length) for y in steps]]


def _stack_steps(step: KeyUses, elements: Accounts, xs: Accounts, length: int) -> KeyUses:
    """Return the account of the stacked keys of all steps: elements of an operand, or new keys."""
    for keys, element in zip(xs, elements, strict=True):
        if keys is not None and element is not None and element.users is step.users:
            return KeyUses(keys.users, keys.positions.reshape(length, -1)[:, step.positions])
    account = make_unused((length, *step.positions.shape))
    account.users[:] = np.broadcast_to(step.users[step.positions], (length, *step.positions.shape)).ravel()
    return account


def _while(accounts: Accounts, **parameters: Any) -> Accounts:
    loop = WhileLoop(**parameters)
    own, consts, carry = loop.split(accounts)
    follow_keys(loop.cond_jaxpr, [*own, *carry])

    def body(carry: Accounts) -> Accounts:
        carry = follow_keys(loop.body_jaxpr, [*consts, *carry])
        follow_keys(loop.cond_jaxpr, [*own, *carry])
        return carry

    return _run_rounds(body, carry, None)


RULES: dict[Primitive, _Rule] = {
    broadcast_in_dim: _make_move_rule(_broadcast), copy: _make_move_rule(lambda positions: positions),
    reshape: _make_move_rule(
        lambda positions, *, new_sizes, dimensions, **_: positions.transpose(dimensions).reshape(new_sizes)
    ),
    rev: _make_move_rule(lambda positions, *, dimensions: np.flip(positions, dimensions)),
    slice_p: _make_move_rule(_slice),
    squeeze: _make_move_rule(lambda positions, *, dimensions: positions.squeeze(dimensions)),
    transpose: _make_move_rule(lambda positions, *, permutation: positions.transpose(permutation)),
    place_result_p: _make_move_rule(lambda positions, **_: positions),
    xla_metadata_value_p: _make_move_rule(lambda positions, **_: positions),
    device_put_p: lambda accounts, **_: list(accounts), dynamic_slice: _select, gather: _select,
    debug_callback_p: _ignore, debug_print_p: _ignore, linear_solve: _ignore,
    random_clone: _ignore, random_fold_in: _ignore, random_unwrap: _ignore,
    cond_p: lambda accounts, *, branches, **_: _merge_branches(branches, accounts[1:]),
    remat_call: _remat, scan_p: _scan, shard_map_p: _shard_map, while_p: _while,
}
