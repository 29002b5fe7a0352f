"""`jet`: the derivatives of all orders of a function along a curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_to, materialize_literal, zeros
from xtrace._src.api.differentiation.grad import Flat
from xtrace._src.api.operators.promotion import as_inexact
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, aval_of, is_array_like
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.sentinels import Sentinel
from xtrace._src.core.settings import config
from xtrace._src.core.tangents import is_differentiable
from xtrace._src.jet.trace import expand
from xtrace._src.ops.collectives.collectives import scale
from xtrace._src.runtime.transfer import as_value


class _Zero(Sentinel):
    """A constant for zero derivatives."""

    __slots__ = ()


# One zero derivative, and zeros for all derivatives of a value.
zero_term = _Zero("zero_term")
zero_series = _Zero("zero_series")


def jet(
    fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any], factorial_scaled: bool = True, **_: Any
) -> tuple[Any, Any]:
    """Return ``fun(*primals)`` and its derivatives of all orders along a curve through `primals`.

    Every operation with a jvp rule has a Taylor series. The work grows with the square of the order. A function with a
    custom jvp rule is differentiated by its rule; a custom vjp rule is not used.

    Args:
        fun: a function of pytrees of arrays.
        primals: the arguments, a tuple or a list: the point of the curve at time zero. An integer with derivatives
            becomes a float.
        series: for each argument the derivatives of the curve at time zero, from the first on: a list or tuple of
            arrays of the argument's shape, or of scalars; for a pytree, a tree with a list at each leaf. All lists
            have one length, the order. A derivative may be `zero_term`, a whole list `zero_series`; zeros cost nothing.
        factorial_scaled: True for derivatives; False for coefficients of the Taylor polynomial, the derivative of
            order k divided by k!.
        _: other keywords, not used.

    Returns:
        A pair of the result of `fun` and its derivatives: the tree of the result with a list of arrays, of the order's
        length, at each leaf.

    Raises:
        TypeError: an argument is no array; a derivative of a real argument is complex; `fun` cannot be called, or
            returns something other than arrays.
        ValueError: the numbers of arguments and of series, the lengths of series, or shapes differ.

    Example:
        >>> from xtrace.experimental.jet import jet
        >>> y, (first, second) = jet(jnp.sin, (0.0,), ((1.0, 0.0),))
        >>> print(y, first, second)
        0.0 1.0 -0.0

    Reference:
        A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed. (2008), chapter 13.
    """
    for name, given in (("primals", primals), ("series", series)):
        if not isinstance(given, (tuple, list)):
            raise TypeError(
                f"jet: {name} must be a tuple or a list with an item for each argument, got {abbreviate(given)}; for "
                f"one argument write ({abbreviate(given)},)"
            )
    flat = Flat("jet", fun, tuple(primals), False)
    if len(primals) != len(series):
        raise ValueError(
            f"jet: there are {len(primals)} primals and {len(series)} series; series must have one item for each "
            f"argument of {flat.name}, the list of its derivatives"
        )
    avals = flat.avals()
    given, order = _list_terms(flat, _flatten_series(flat, primals, series))
    values, terms = [], []
    for i, (x, aval, own) in enumerate(zip(flat.leaves, avals, given, strict=True)):
        if any(t is not None for t in own) and not is_differentiable(aval):
            aval = ShapedArray(aval.shape, *as_inexact(aval.dtype, aval.weak_type))
            x = convert_to(x, aval.dtype, aval.weak_type)
        converted = [_to_term(flat, i, aval, k, t) for k, t in enumerate(own)]
        values.append(as_value(x))
        terms.append(converted if factorial_scaled else scale_terms(converted, math.factorial))
    results, out = expand(flat, values, terms, order, lambda: flat.info)
    out = [[_zeros_like(x) if t is None else t for t in own] for x, own in zip(results, out, strict=True)]
    if not factorial_scaled:
        out = [scale_terms(own, lambda k: 1 / math.factorial(k)) for own in out]
    trees = [[materialize_literal(t) for t in own] for own in out]
    return flat.results([materialize_literal(as_value(x)) for x in results]), flat.results(trees)


def _flatten_series(flat: Flat, primals: Sequence[Any], series: Sequence[Any]) -> list[Any]:
    """Return the user's derivatives of each leaf of the arguments."""
    leaves = []
    for number, (primal, own) in enumerate(zip(primals, series, strict=True)):
        tree = pytree.tree_structure(primal)
        if own is zero_series:
            leaves += [zero_series] * tree.num_leaves
            continue
        try:
            leaves += tree.flatten_up_to(own)
        except (TypeError, ValueError):
            raise TypeError(
                f"jet: series[{number}] must have the structure of argument {number} of {flat.name}, {tree}, with a "
                f"list of derivatives at each leaf; got {abbreviate(own)}"
            ) from None
    return leaves


def _list_terms(flat: Flat, series: Sequence[Any]) -> tuple[list[list[Any]], int]:
    """Return the derivatives of each leaf as a list, None for zero, and their number."""
    terms: list[list[Any] | None] = []
    for position, own in enumerate(series):
        if not (own is zero_series or isinstance(own, (tuple, list)) or (is_array_like(own) and aval_of(own).ndim)):
            raise TypeError(
                f"jet: the series of {flat.path(position)} must be a list or a tuple of its derivatives, from the "
                f"first on, got {abbreviate(own)}; for a single derivative write ({abbreviate(own)},)"
            )
        terms.append(None if own is zero_series else [None if t is zero_term else t for t in own])
    lengths = {len(own): flat.path(i) for i, own in enumerate(terms) if own is not None}
    if len(lengths) > 1:
        by_leaf = ", ".join([f"{n} for {path}" for n, path in lengths.items()])
        raise ValueError(
            f"jet: the series of all arguments must have one length, the order of the derivatives; got {by_leaf}. Pad "
            "the shorter ones with zero_term, or write zero_series for an argument without derivatives"
        )
    order = max(lengths, default=0)
    return [[None] * order if own is None else own for own in terms], order


def _to_term(flat: Flat, position: int, aval: ShapedArray, index: int, term: Any) -> Any:
    """Convert the derivative at `index` in the series of a leaf to the leaf's type `aval`; None for zero."""
    if term is None:
        return None
    where = f"jet: the derivative at index {index} in the series of {flat.path(position)}"
    if not is_array_like(term):
        raise TypeError(f"{where} must be an array or a number, got {abbreviate(term)}; write zero_term for zero")
    own = aval_of(term)
    if own.shape not in (aval.shape, ()):
        raise ValueError(f"{where} has shape {own.shape}; it must have the shape {aval.shape} of the argument")
    if dtypes.is_complex(own.dtype) and not dtypes.is_complex(aval.dtype):
        raise TypeError(
            f"{where} is complex, {own.str_short(True)}, and the argument real, {aval.str_short(True)}; convert the "
            f"argument with astype({own.dtype.name}) if the function takes complex numbers"
        )
    term = materialize_literal(convert_to(term, aval.dtype, aval.weak_type))
    return term if own.shape == aval.shape else broadcast_in_dim(term, aval.shape, ())


def scale_terms(terms: Sequence[Any], factor: Callable[[int], float]) -> list[Any]:
    """Return the derivatives from the first on, each times ``factor(order)``."""
    return [None if t is None else scale(t, factor(k)) for k, t in enumerate(terms, 1)]


def _zeros_like(x: Any) -> Any:
    """Return the zero derivative of a value; integers have the default floating dtype."""
    aval = aval_of(x)
    if is_differentiable(aval):
        return zeros(aval)
    return zeros(ShapedArray(aval.shape, dtypes.default_float(config.enable_x64.value), True))
