"""`checkify`: run-time errors of a function as a value that it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from xtrace._src.algebra.vector_space import materialize_literal
from xtrace._src.checkify.checks import Error, state_check
from xtrace._src.checkify.errors import DivisionByZeroError, FailedCheckError, JaxException, NaNError, OOBError
from xtrace._src.checkify.trace import run_checked
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of, is_array_like, short_repr
from xtrace._src.core.callables import check_callable, function_name, wraps
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.pytrees import pytree
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
    """Transform a function to one that returns its first error and its result.

    Args:
        f: a function of trees of arrays.
        errors: a union of `user_checks` (the conditions of `check`), `nan_checks`, `index_checks` and `div_checks`.

    Returns:
        A function of the same arguments that returns a pair: an `Error` and the result of `f`. The error's ``get()``
        returns the message or None, and its ``throw()`` raises. The result is computed even after an error.

    Raises:
        TypeError: `f` cannot be called or returns something other than arrays, or `errors` is no set of categories.

    Example:
        >>> checkify = xtrace.experimental.checkify
        >>> error, _ = xtrace.jit(checkify.checkify(jnp.log, checkify.nan_checks))(-1.0)
        >>> error.get() is None
        False
    """
    check_callable(f)
    enabled = _categories(errors)

    @boundary
    @wraps(f)
    def checked(*args: object, **kwargs: object) -> tuple[Error, Any]:
        error, result = run_checked(f, enabled, *args, **kwargs)
        leaves, tree = pytree.tree_flatten(result)
        for leaf in leaves:
            if not is_array_like(leaf):
                raise TypeError(
                    f"checkify: {function_name(f)} returned {short_repr(leaf)} of type {type(leaf)}, which is not a "
                    "valid JAX type: return arrays or numbers, or None for nothing"
                )
        return error, pytree.tree_unflatten(tree, [materialize_literal(as_value(x)) for x in leaves])

    return checked


def _categories(errors: Any) -> frozenset[ErrorCategory]:
    known = isinstance(errors, Iterable) and not isinstance(errors, (str, type))
    categories: frozenset[Any] = frozenset(errors) if known else frozenset({errors})
    if not known or not all(isinstance(c, type) and issubclass(c, JaxException) for c in categories):
        raise TypeError(
            f"checkify: errors must be a set of categories, such as checkify.index_checks | checkify.nan_checks or "
            f"checkify.all_checks; got {short_repr(errors)}"
        )
    return categories


def check(pred: ArrayLike, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Check that a condition holds; `checkify` returns a failure as an error.

    Args:
        pred: a boolean scalar; False is an error.
        msg: the message, a format.
        fmt_args: the values of its fields, trees of arrays.
        debug: whether the check does nothing outside of `checkify`.
        fmt_kwargs: the values of its named fields.

    Raises:
        JaxRuntimeError: `pred` is False outside of compiled functions.
        TypeError: `pred` is no boolean scalar, or a value of the message is no array.
        ValueError: the check is in a compiled function without `checkify`.

    Example:
        >>> checkify = xtrace.experimental.checkify
        >>> error, _ = checkify.checkify(lambda x: checkify.check(x > 0, "x is {}", x))(jnp.float32(-1))
        >>> error.get().split(" (")[0]
        'x is -1.0'
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
                f"{short_repr(leaf)} of type {type(leaf)}. Put values known while tracing into the message itself, "
                "with an f-string"
            )
    state_check(pred, msg, (fmt_args, fmt_kwargs), bool(debug))


def debug_check(pred: ArrayLike, msg: str, *fmt_args: object, **fmt_kwargs: object) -> None:
    """Check that a condition holds inside of `checkify`; do nothing elsewhere.

    Args:
        pred: a boolean scalar; False is an error.
        msg: the message, a format.
        fmt_args, fmt_kwargs: the values of its fields, trees of arrays.

    Raises:
        TypeError: `pred` is no boolean scalar, or a value of the message is no array.

    Example:
        >>> xtrace.experimental.checkify.debug_check(False, "not checked here")
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)
