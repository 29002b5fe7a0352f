"""Checking that random keys are used once: by a jaxpr, and by all programs that run on the same arrays of keys."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xtrace._src.core.arrays import Array
from xtrace._src.core.ir import ClosedJaxpr
from xtrace._src.key_reuse.accounts import Accounts, account_of, has_keys, new_accounts
from xtrace._src.key_reuse.rules import follow
from xtrace._src.runtime.arrays import ConcreteArray


def check(closed: ClosedJaxpr) -> None:
    """Raise KeyReuseError if a key is used twice in a jaxpr whose operands are not."""
    follow(closed, new_accounts(closed.in_avals))


@contextlib.contextmanager
def _all_or_nothing(accounts: Accounts) -> Iterator[None]:
    before = [(x.users, x.users.copy()) for x in accounts if x is not None]
    try:
        yield
    except BaseException:
        for table, values in before:
            table[:] = values
        raise


def check_keys(run: Callable[..., Any], closed: ClosedJaxpr, written_here: bool = False) -> Callable[..., Any]:
    """Return `run`, which computes a jaxpr on concrete values and returns a list of arrays, with its keys checked.

    Before it runs, KeyReuseError is raised if it would use a key that was used before; nothing counts as used then, nor
    if `run` fails. For programs that are `written_here`, the line of a use is the line of the call.
    """
    if not any(has_keys(a) for a in [*closed.in_avals, *closed.out_avals, *[v.aval for v in closed.jaxpr.constvars]]):
        return run

    if written_here:
        jaxpr = closed.jaxpr
        closed = ClosedJaxpr(jaxpr.replace(eqns=[e.replace(source=None) for e in jaxpr.eqns]), closed.consts)

    def run_checked(values: Sequence[Any], *details: object) -> list[Array]:
        accounts = [account_of(x) if type(x) is ConcreteArray else None for x in values]
        consts = [account_of(c) for c in closed.consts if isinstance(c, ConcreteArray)]
        with _all_or_nothing([*accounts, *consts]):
            uses = follow(closed, accounts)
            results: list[Any] = run(values, *details)
        for array, keys in zip(results, uses, strict=True):
            if keys is not None:
                array.key_uses = keys
        return results

    return run_checked
