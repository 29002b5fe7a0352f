"""Check that random keys are used once, by a jaxpr and by all programs on the same arrays of keys."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xtrace._src.core.arrays import Array
from xtrace._src.core.jaxprs.ir import ClosedJaxpr
from xtrace._src.key_reuse.accounts import Accounts, get_account, has_keys, make_accounts
from xtrace._src.key_reuse.rules import follow_keys
from xtrace._src.runtime.arrays import ConcreteArray


def check(closed: ClosedJaxpr) -> None:
    """Raise KeyReuseError if a jaxpr of unused keys uses a key twice."""
    follow_keys(closed, make_accounts(closed.in_avals))


@contextlib.contextmanager
def _restore_on_error(accounts: Accounts) -> Iterator[None]:
    before = [(x.users, x.users.copy()) for x in accounts if x is not None]
    try:
        yield
    except BaseException:
        for table, values in before:
            table[:] = values
        raise


def check_keys(run: Callable[..., Any], closed: ClosedJaxpr, written_here: bool = False) -> Callable[..., Any]:
    """Return `run` with a check of its keys: it computes `closed` on concrete values and returns a list of arrays.

    The check comes first and raises KeyReuseError if a key was used before; then no key counts as used. written_here:
    whether the program is the library's own, so that messages have the line of the call.
    """
    if not any(has_keys(a) for a in [*closed.in_avals, *closed.out_avals, *[v.aval for v in closed.jaxpr.constvars]]):
        return run

    if written_here:
        jaxpr = closed.jaxpr
        closed = ClosedJaxpr(jaxpr.replace(eqns=[e.replace(source=None) for e in jaxpr.eqns]), closed.consts)

    def run_checked(values: Sequence[Any], *details: object) -> list[Array]:
        accounts = [get_account(x) if type(x) is ConcreteArray else None for x in values]
        consts = [get_account(c) for c in closed.consts if isinstance(c, ConcreteArray)]
        with _restore_on_error([*accounts, *consts]):
            uses = follow_keys(closed, accounts)
            results: list[Any] = run(values, *details)
        for array, keys in zip(results, uses, strict=True):
            if keys is not None:
                array.key_uses = keys
        return results

    return run_checked
