"""`checkify`: errors of a function, found while it runs, as a value that it returns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import concrete
from xtrace._src.checkify.checks import Error, state_check
from xtrace._src.checkify.errors import DivisionByZeroError, FailedCheckError, JaxException, NaNError, OOBError
from xtrace._src.checkify.trace import run_checked
from xtrace._src.core import dtypes, pytree
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of, is_array_like, short_repr
from xtrace._src.core.callables import check_callable, function_name
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.runtime.transfer import as_value

ErrorCategory = type[JaxException]

user_checks: frozenset[ErrorCategory] = frozenset({FailedCheckError})
nan_checks: frozenset[ErrorCategory] = frozenset({NaNError})
index_checks: frozenset[ErrorCategory] = frozenset({OOBError})
div_checks: frozenset[ErrorCategory] = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


def checkify(f: Callable[..., Any], errors: Iterable[ErrorCategory] = user_checks) -> Callable[..., tuple[Error, Any]]:
    """Return a function of the same arguments that gives a pair: what went wrong first, and the result of `f`.

    errors: what is looked for, a union of `user_checks` (conditions stated with `check`), `nan_checks`, `index_checks`
    and `div_checks`. All is computed whether something went wrong or not; ``err.get()`` has the message or None,
    ``err.throw()`` raises. The function can be transformed and jitted, and so can functions called by `f`. TypeError if
    `f` is not callable or returns what is no array, or `errors` is no set of categories.
    """
    check_callable("checkify", f)
    enabled = _categories(errors)

    @boundary
    @functools.wraps(f)
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        error, result = run_checked(f, enabled, *args, **kwargs)
        leaves, tree = pytree.tree_flatten(result)
        for leaf in leaves:
            if not is_array_like(leaf):
                raise TypeError(
                    f"checkify: {function_name(f)} returned {short_repr(leaf)} of type {type(leaf)}, which is not a "
                    "valid JAX type: return arrays or numbers, or None for nothing"
                )
        return error, pytree.tree_unflatten(tree, [concrete(as_value(x)) for x in leaves])

    return checked


def _categories(errors: Any) -> frozenset[ErrorCategory]:
    known = isinstance(errors, Iterable) and not isinstance(errors, (str, type))
    categories = frozenset(errors) if known else frozenset({errors})
    if not known or not all(isinstance(c, type) and issubclass(c, JaxException) for c in categories):
        raise TypeError(
            f"checkify: errors must be a set of categories, such as checkify.index_checks | checkify.nan_checks or "
            f"checkify.all_checks; got {short_repr(errors)}"
        )
    return categories


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """State that `pred`, a boolean scalar, holds; otherwise it is an error, with the message ``msg.format(...)``.

    fmt_args, fmt_kwargs: trees of arrays, which may be traced. Outside of compiled functions JaxRuntimeError is raised
    at once; inside, the function has to be made to return its errors by `checkify`, ValueError if it is not. A `debug`
    check does nothing where nobody looks for errors. TypeError if `pred` is no boolean scalar, or an argument of the
    message no array.
    """
    if not isinstance(pred, (bool, np.bool_)) and not (
        isinstance(pred, (Array, np.ndarray)) and not aval_of(pred).shape and dtypes.is_boolean(aval_of(pred).dtype)
    ):
        raise TypeError(
            f"check takes a scalar pred as argument, got {short_repr(pred)}: one boolean. Reduce an array with "
            "xtrace.numpy.all or any, compare a number with another"
        )
    if not isinstance(msg, str):
        raise TypeError(f"check: msg must be a string, a format of the arguments after it; got {short_repr(msg)}")
    for leaf in pytree.tree_leaves((fmt_args, fmt_kwargs)):
        if not isinstance(leaf, (Array, np.ndarray, np.generic)):
            raise TypeError(
                "Formatting arguments to checkify.check need to be PyTrees of arrays, but got "
                f"{short_repr(leaf)} of type {type(leaf)}. Put what is known while tracing into the message itself, "
                "with an f-string"
            )
    state_check(pred, msg, (fmt_args, fmt_kwargs), bool(debug))


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """`check` where errors are looked for, nothing elsewhere."""
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)
