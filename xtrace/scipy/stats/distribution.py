"""Makes the functions of a distribution from formulas: promotes operands and adds documentation."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol

import numpy as np

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.core.annotations import RealLike
from xtrace._src.core.arrays import Array
from xtrace.numpy.elementwise.ufuncs import exp, log
from xtrace.scipy.special.primitive import promote_operands

P = ParamSpec("P")

_PARAMETERS = {
    "x": "points; an array of real numbers.", "k": "counts; an array of numbers.",
    "q": "probabilities; an array of numbers from 0 to 1.", "loc": "the shift of the distribution.",
    "scale": "the factor by which the distribution is stretched.",
}
_CONTRACTS = {
    "pdf": "Return the density.", "logpdf": "Return the logarithm of the density.",
    "pmf": "Return the probability of `k`.", "cdf": "Return the probability of a value up to `x`.",
    "logcdf": "Return the logarithm of `cdf`.", "sf": "Return the probability of a value above `x`, 1 - `cdf`.",
    "logsf": "Return the logarithm of `sf`.",
}


def from_standard(z: Any, loc: RealLike, scale: RealLike, *, mirrored: bool = False) -> Array:
    """Return the value at location `loc` and scale `scale` for a standardized value; `mirrored` about `loc`."""
    offset: Any = scale * z
    value: Array = loc - offset if mirrored else loc + offset
    return value


class LocationScale(Protocol):
    """A function of points, and of the location and the scale of a distribution."""

    def __call__(self, x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array: ...


class Distribution:
    """A distribution of numbers, which makes the public functions of its module from formulas.

    Args:
        name: the name of its module in `scipy.stats`.
        arguments: the arguments of the examples in the documentation, as source.
        parameters: the meaning of each of its own parameters.
    """

    def __init__(self, name: str, arguments: str, **parameters: str) -> None:
        self.name, self.arguments, self.parameters = name, arguments, _PARAMETERS | parameters

    def defines(
        self, shown: str, arguments: str | None = None, *, strong: bool = True
    ) -> Callable[[Callable[P, Array]], Callable[P, Array]]:
        """Decorate the formula of a function, whose operands are arrays of one floating dtype.

        Args:
            shown: the result of the example, or its number if it is a weakly typed float32 scalar.
            arguments: the arguments of the example; None for the distribution's.
            strong: whether the result is strongly typed if the first operand is an array, as constants in JAX's
                formulas make it.
        """

        return lambda formula: self._make(formula, formula, formula.__name__, shown, arguments, strong)

    def function(
        self, name: str, formula: Callable[P, Array], shown: str, *, strong: bool = True
    ) -> Callable[P, Array]:
        """Return the function called `name` with an undocumented formula; other arguments as for `defines`."""
        return self._make(formula, formula, name, shown, None, strong)

    def standard(
        self, name: str, formula: Callable[[RealLike], Array], shown: str, *, strong: bool = True,
        mirrored: bool = False,
    ) -> LocationScale:
        """Return a function of location and scale from its formula for loc 0 and scale 1; `mirrored` negates it."""

        def shifted(x: RealLike, loc: RealLike = 0, scale: RealLike = 1) -> Array:
            return formula((loc - x) / scale if mirrored else (x - loc) / scale)

        return self.function(name, shifted, shown, strong=strong)

    def exponential(
        self, logarithm: Callable[P, Array], shown: str, arguments: str | None = None
    ) -> Callable[P, Array]:
        """Return the exponential of a function: ``pdf`` from ``logpdf``."""
        return self._compose(exp, logarithm, logarithm.__name__.removeprefix("log"), shown, arguments)

    def logarithm(self, function: Callable[P, Array], shown: str, arguments: str | None = None) -> Callable[P, Array]:
        """Return the logarithm of a function: ``logcdf`` from ``cdf``."""
        return self._compose(log, function, f"log{function.__name__}", shown, arguments)

    def _compose(
        self, outer: Callable[..., Array], inner: Callable[P, Array], name: str, shown: str, arguments: str | None
    ) -> Callable[P, Array]:
        def formula(*operands: Any) -> Array:
            return outer(inner(*operands))  # type: ignore[call-arg]

        return self._make(formula, inner, name, shown, arguments, False)

    def _make(
        self, formula: Callable[..., Array], like: Callable[P, Array], name: str, shown: str, arguments: str | None,
        strong: bool,
    ) -> Callable[P, Array]:
        """Return the public function called `name` of a formula, with the parameters of the function `like`."""
        signature = inspect.signature(like)

        @functools.wraps(like)
        def function(*args: P.args, **kwargs: P.kwargs) -> Array:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            result = formula(*promote_operands(*bound.args, function=f"{self.name}.{name}"))
            weak = result.aval.weak_type and not (strong and np.ndim(bound.args[0]))
            return convert_to(result, result.dtype, weak)

        if not formula.__doc__:
            function.__doc__ = _CONTRACTS[name]
        function.__name__ = function.__qualname__ = name
        self._document(function, shown, arguments)
        return inline_jit(function, public=True)

    def _document(self, function: Any, shown: str, arguments: str | None) -> None:
        names = list(inspect.signature(function).parameters)
        if not shown.startswith("Array"):
            shown = f"Array({shown}, dtype=float32, weak_type=True)"
        entries = "\n".join(f"    {name}: {self.parameters[name]}" for name in names)
        function.__doc__ = f"""{inspect.cleandoc(function.__doc__)}

Args:
{entries}

Returns:
    An array of the broadcast shape and the promoted floating dtype.

Raises:
    TypeError: an argument is neither an array nor a number.
    ValueError: the shapes do not broadcast.

Example:
    >>> scipy.stats.{self.name}.{function.__name__}({arguments or self.arguments})
    {shown}
"""
