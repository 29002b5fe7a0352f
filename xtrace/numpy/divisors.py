"""Greatest common divisors and least common multiples."""

from __future__ import annotations

from typing import Any

from xtrace.api.promotion import check_broadcast, promote
from xtrace.api.units import unit
from xtrace.core import dtypes
from xtrace.numpy import reductions
from xtrace.numpy.arguments import spread_to, type_of
from xtrace.numpy.creation import as_array
from xtrace.numpy.ufuncs import abs, where
from xtrace.ops.control_flow.while_loop import while_loop
from xtrace.ops.elementwise import rem


def _integers(function: str, x1: Any, x2: Any, *, booleans: bool) -> None:
    for i, x in enumerate((x1, x2)):
        dtype = type_of(function, x, i).dtype
        if not (dtypes.is_integer(dtype) or (booleans and dtypes.is_boolean(dtype))):
            raise ValueError(f"{function}: arguments must be integers, got dtype {dtype.name}")


def _spread(function: str, x1: Any, x2: Any) -> list[Any]:
    found = [abs(x) for x in promote(function, as_array(function, x1), as_array(function, x2))]
    shape = check_broadcast(function, [x.shape for x in found])
    return [spread_to(function, x, x.shape, shape) for x in found]


@unit
def _common_divisor(x1: Any, x2: Any) -> Any:
    # Euclid's algorithm, for all elements until the last one is done.
    def step(pair: Any) -> Any:
        x, y = pair
        done = y == 0
        return where(done, x, y), where(done, y, rem(x, where(done, 1, y)))

    return while_loop(lambda pair: reductions.any(pair[1] != 0), step, tuple(_spread("gcd", x1, x2)))[0]


def gcd(x1: Any, x2: Any) -> Any:
    """Return the greatest common divisor, never negative, of integers; of zeros it is zero. ValueError for floats."""
    _integers("gcd", x1, x2, booleans=True)
    check_broadcast("gcd", [type_of("gcd", x).shape for x in (x1, x2)])
    return _common_divisor(x1, x2)


@unit
def _common_multiple(x1: Any, x2: Any) -> Any:
    x1, x2 = _spread("lcm", x1, x2)
    divisor = gcd(x1, x2)
    return where(divisor == 0, 0, x1 * (x2 // where(divisor == 0, 1, divisor)))


def lcm(x1: Any, x2: Any) -> Any:
    """Return the least common multiple, never negative, of integers; with a zero it is zero. ValueError for floats."""
    _integers("lcm", x1, x2, booleans=False)
    check_broadcast("lcm", [type_of("lcm", x).shape for x in (x1, x2)])
    return _common_multiple(x1, x2)
