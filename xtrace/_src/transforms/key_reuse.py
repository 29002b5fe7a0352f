"""Checking that random keys are used once: a jaxpr followed with the accounts of the keys among its operands.

What an operation does with keys its rule `keys` says; one without a rule uses all that it is given, and what it returns
is new. Loops are followed as often as it takes for keys that their carry exchanges to come again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xtrace._src.core.ir import ClosedJaxpr, JaxprEqn, Var
from xtrace._src.core.key_uses import KeyUses, consume, has_keys, unused
from xtrace._src.core.source import describe, user_position
from xtrace._src.runtime.arrays import ConcreteArray

Accounts = list["KeyUses | None"]


def check(closed: ClosedJaxpr) -> None:
    """Raise KeyReuseError if a key is used twice in a jaxpr whose operands are not."""
    follow(closed, new_accounts(closed.in_avals))


def new_accounts(avals: Sequence[Any]) -> Accounts:
    """Return accounts for the keys among values of these types."""
    return [unused(a.shape) if has_keys(a) else None for a in avals]


def follow(closed: ClosedJaxpr, operands: Sequence[KeyUses | None]) -> Accounts:
    """Return the accounts of a jaxpr's results, those of operands being given, which change with what it uses.

    KeyReuseError if a key is used that was used before.
    """
    jaxpr = closed.jaxpr
    consts = [account_of(c) if isinstance(c, ConcreteArray) else new_accounts([v.aval])[0]
              for c, v in zip(closed.consts, jaxpr.constvars, strict=True)]
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *operands], strict=True))
    for equation in jaxpr.eqns:
        given = [known.get(x) if isinstance(x, Var) else None for x in equation.invars]
        known.update(zip(equation.outvars, _results(equation, given), strict=True))
    return [known.get(x) if isinstance(x, Var) else None for x in jaxpr.outvars]


def _results(equation: JaxprEqn, given: Accounts) -> Sequence[KeyUses | None]:
    primitive = equation.primitive
    rule = primitive.keys
    found = None
    if rule is not None:
        found = rule(given, **equation.params)
    elif any(x is not None for x in given):
        source = equation.source if equation.source is not None else user_position()
        consume(primitive.name, f"{primitive.name} on line {describe(source)}", given)
    return new_accounts([v.aval for v in equation.outvars]) if found is None else found


def in_call(name: str) -> Callable[..., Accounts]:
    """Return the rule of an operation that calls the jaxpr which its parameter `name` is."""
    return lambda operands, **parameters: follow(parameters[name], operands)


def follow_one_of(branches: Sequence[ClosedJaxpr], operands: Sequence[KeyUses | None]) -> Accounts:
    """Return the accounts of the results of one of several jaxprs: used is what one of them uses."""
    tables = list({id(x.users): x.users for x in operands if x is not None}.values())
    before = [t.copy() for t in tables]
    together = [t.copy() for t in tables]
    outcomes = []
    for branch in branches:
        found = follow(branch, operands)
        outcomes.append([None if x is None else (x, x.user()) for x in found])
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
    found = unused(first.places.shape)
    for keys, user in pairs:
        if user is not None:
            found.note(user)
        elif keys.user() is None:
            keys.note("cond, which may have returned it")
    return found


def rounds_of(carry: Sequence[KeyUses | None]) -> int:
    """Return how many rounds of a loop show whether a key comes again that was used: it may pass through the carry."""
    return max(2, 1 + sum(x is not None for x in carry))


# Concrete arrays


def account_of(array: ConcreteArray) -> KeyUses | None:
    """Return the account of an array, begun if it has none; None for an array of numbers."""
    if not has_keys(array.aval):
        return None
    found: KeyUses | None = getattr(array, "key_uses", None)
    if found is None:
        found = array.key_uses = unused(array.shape)
    return found


@contextlib.contextmanager
def _all_or_nothing(accounts: Sequence[KeyUses | None]) -> Iterator[None]:
    before = [(x.users, x.users.copy()) for x in accounts if x is not None]
    try:
        yield
    except BaseException:
        for table, values in before:
            table[:] = values
        raise


def checked(run: Callable[..., Any], closed: ClosedJaxpr, written_here: bool = False) -> Callable[..., Any]:
    """Return `run`, which computes a jaxpr on concrete values and returns a list of arrays, with its keys checked.

    Before it runs, KeyReuseError is raised if it would use a key that was used before; nothing counts as used then, nor
    if `run` fails. Of programs that are `written_here`, what uses a key is the line that calls them.
    """
    if not any(has_keys(a) for a in [*closed.in_avals, *closed.out_avals, *[v.aval for v in closed.jaxpr.constvars]]):
        return run

    if written_here:
        jaxpr = closed.jaxpr
        closed = ClosedJaxpr(jaxpr.replace(eqns=[e.replace(source=None) for e in jaxpr.eqns]), closed.consts)

    def run_checked(values: Sequence[Any], *details: Any) -> Any:
        accounts = [account_of(x) if type(x) is ConcreteArray else None for x in values]
        consts = [account_of(c) for c in closed.consts if isinstance(c, ConcreteArray)]
        with _all_or_nothing([*accounts, *consts]):
            found = follow(closed, accounts)
            results = run(values, *details)
        for array, keys in zip(results, found, strict=True):
            if keys is not None:
                array.key_uses = keys
        return results

    return run_checked
