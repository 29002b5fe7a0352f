"""The elementwise operations of lax and numpy, a row each.

Tests of values and types (tests/ops, tests/numpy), of derivatives and batching (tests/rules), of drawn calls and hard
values (tests/differential) and of costs (tests/experimental/test_roofline.py) take their parameters from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from tests.support.operands import ALL, COMPLEX, FLOAT, INTEGER, SIGNED

INEXACT = [*FLOAT, *COMPLEX]
NUMBER = [*INTEGER, *INEXACT]
REAL = [*INTEGER, *FLOAT]
BITS = [np.dtype(bool), *INTEGER]
ORDERED = [np.dtype(bool), *REAL]
PART = [np.dtype(np.float32)]


class Operation(NamedTuple):
    """An elementwise operation.

    lax: its name there, if any. numpy: the function of numpy that is this operation with promotion, and then other
    names of that function. dtypes: those that lax accepts, of all of `ALL`; the others must be refused. low, high: the
    interval of the values that it is tried on; without it floats include zeros of both signs, infinities and NaN.
    differentiated: for each operand the interval in which derivatives are compared; batched forms alone are without it.
    flat: whether the derivative is zero, or there is none since the result is no floating-point number. complex:
    whether derivatives by complex numbers are compared, too. rounding: how many roundings results may be apart.
    drawn: the kind of numbers that calls are drawn with (`tests/support/draws.py`). reference: a formula for an
    operation that jax lacks, called with jax's lax or numpy and the operands.
    """

    lax: str = ""
    numpy: str = ""
    operands: int = 1
    dtypes: Sequence[Any] = ()
    low: float | None = None
    high: float | None = None
    differentiated: Sequence[tuple[float, float]] = ()
    flat: bool = False
    complex: bool = False
    keywords: dict[str, Any] = {}  # noqa: RUF012
    rounding: float = 4
    drawn: str = "quarters"
    reference: Callable[..., Any] | None = None


class NamedOperation(NamedTuple):
    """An operation under its name in one of the two modules."""

    name: str
    operation: Operation

    def __str__(self) -> str:
        return "-".join([self.name, *[f"{k}={v}" for k, v in self.operation.keywords.items()]])

    def __getattr__(self, field: str) -> Any:
        return getattr(self.operation, field)

    def call(self, package: Any, *operands: Any) -> Any:
        """Apply the operation as it is in `package`, the module lax or numpy of jax or of xtrace."""
        if self.reference is not None and package.__name__.startswith("jax."):
            if package.__name__ == "jax.lax" and any(jax.dtypes.result_type(x) not in self.dtypes for x in operands):
                raise TypeError("the formula may accept more dtypes than the operation does")
            return self.reference(package, *operands, **self.keywords)
        function = getattr(package, self.name)
        return function.bind(*operands) if self.name.endswith("_p") else function(*operands, **self.keywords)


def _smooth(
    lax: str, numpy: str, interval: tuple[float, float], dtypes: Sequence[Any] = INEXACT, **more: Any
) -> Operation:
    """Return the row of a function of one operand that is differentiated in an interval."""
    fields: dict[str, Any] = {"complex": dtypes is not FLOAT, **more}
    return Operation(lax, numpy, dtypes=dtypes, differentiated=[interval], **fields)


def _flat(lax: str, numpy: str, dtypes: Sequence[Any] = FLOAT, **more: Any) -> Operation:
    """Return the row of a function of one operand whose derivative is zero."""
    return Operation(lax, numpy, dtypes=dtypes, differentiated=[(-3, 3)], flat=True, **{"drawn": "any", **more})


def _plain(lax: str, numpy: str, operands: int, dtypes: Sequence[Any] = (), **more: Any) -> Operation:
    """Return the row of an operation on any numbers."""
    return Operation(lax, numpy, operands, dtypes, **{"drawn": "any", **more})


OPERATIONS = [
    # One operand, differentiated.
    _smooth("neg", "negative", (-3, 3), NUMBER, drawn="any"),
    _smooth("square", "square", (-3, 3), NUMBER, drawn="any"),
    _smooth("abs", "abs absolute", (-3, 3), [*SIGNED, *INEXACT], drawn="any"),
    _smooth("exp", "exp", (-2, 2)),
    _smooth("exp2", "exp2", (-2, 2)),
    _smooth("expm1", "expm1", (-2, 2)),
    _smooth("log", "log", (0.1, 4)),
    _smooth("log1p", "log1p", (-0.9, 4)),
    _smooth("logistic", "", (-3, 3)),
    _smooth("sqrt", "sqrt", (0.1, 4)),
    _smooth("rsqrt", "", (0.1, 4)),
    _smooth("cbrt", "cbrt", (0.1, 4), FLOAT),
    _smooth("reciprocal", "reciprocal", (0.5, 3)),
    _smooth("sin", "sin", (-3, 3)),
    _smooth("cos", "cos", (-3, 3)),
    _smooth("tan", "tan", (-1.4, 1.4)),
    _smooth("asin", "arcsin asin", (-0.9, 0.9)),
    _smooth("acos", "arccos acos", (-0.9, 0.9)),
    _smooth("atan", "arctan atan", (-4, 4)),
    _smooth("sinh", "sinh", (-2, 2)),
    _smooth("cosh", "cosh", (-2, 2)),
    _smooth("tanh", "tanh", (-2, 2)),
    _smooth("asinh", "arcsinh asinh", (-4, 4)),
    _smooth("acosh", "arccosh acosh", (1.1, 4)),
    _smooth("atanh", "arctanh atanh", (-0.9, 0.9)),
    _smooth("erf", "", (-2, 2), FLOAT),
    _smooth("erfc", "", (-2, 2), FLOAT),
    _smooth("erf_inv", "", (-0.9, 0.9), FLOAT),
    _smooth("lgamma", "", (0.5, 5), FLOAT),
    _smooth("digamma", "", (0.5, 5), FLOAT),
    # Both sum a Chebyshev series of some twenty terms, each of its own coefficients.
    _smooth("bessel_i0e", "", (-4, -2), FLOAT, low=-40, high=40, rounding=8),
    _smooth("bessel_i1e", "", (2, 4), FLOAT),
    _smooth("conj", "conj", (-3, 3), [*PART, *COMPLEX], drawn="any"),
    # One operand, with a derivative that is zero, or none.
    _flat("sign", "sign", NUMBER, complex=True),
    _flat("floor", "floor"),
    _flat("ceil", "ceil"),
    _flat("round", ""),
    _flat("is_finite", "isfinite"),
    _plain("round", "", 1, FLOAT, keywords={"rounding_method": 1}),
    _plain("real", "real", 1, COMPLEX, complex=True),
    _plain("imag", "imag", 1, COMPLEX, complex=True),
    _plain("bitwise_not", "invert bitwise_invert bitwise_not", 1, BITS),
    _plain("population_count", "bitwise_count", 1, INTEGER),
    _plain("clz", "", 1, INTEGER),
    _plain("reduce_precision", "", 1, FLOAT, keywords={"exponent_bits": 5, "mantissa_bits": 4}),
    *[_plain("integer_pow", "", 1, NUMBER, keywords={"y": y}) for y in (0, 1, 2, 3, 7)],
    *[_plain("integer_pow", "", 1, INEXACT, keywords={"y": y}) for y in (-1, -2, -5)],
    # Several operands, differentiated.
    _plain("add", "add", 2, NUMBER, differentiated=[(-3, 3), (-3, 3)]),
    _plain("sub", "subtract", 2, NUMBER, differentiated=[(-3, 3), (-3, 3)]),
    _plain("mul", "multiply", 2, NUMBER, differentiated=[(-3, 3), (-3, 3)]),
    _plain("mul", "", 2, NUMBER, low=-20, high=20, keywords={"out_dtype": np.dtype(np.complex64)}),
    _plain("div", "", 2, NUMBER, differentiated=[(-3, 3), (0.5, 3)]),
    _plain("rem", "", 2, REAL, differentiated=[(-3, 3), (0.5, 3)]),
    _plain("pow", "", 2, INEXACT, differentiated=[(0.5, 3), (-3, 3)]),
    _plain("atan2", "arctan2 atan2", 2, FLOAT, differentiated=[(-3, 3), (0.5, 3)], drawn="quarters"),
    _plain("max", "maximum", 2, ALL, differentiated=[(-3, 3), (0.5, 3)]),
    _plain("min", "minimum", 2, ALL, differentiated=[(-3, 3), (0.5, 3)]),
    _plain("complex", "", 2, PART, differentiated=[(-3, 3), (0.5, 3)]),
    _plain("clamp", "", 3, REAL, differentiated=[(-1, 1), (-3, 3), (0.5, 3)]),
    # Several operands, without derivatives.
    _plain("nextafter", "nextafter", 2, FLOAT),
    _plain("mulhi", "", 2, INTEGER),
    _plain("polygamma", "", 2, FLOAT, low=0.5, high=4),
    _plain("zeta", "", 2, FLOAT, low=1.5, high=8),
    *[_plain(name, name, 2, BITS) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")],
    *[
        _plain(name, "", 2, INTEGER, low=low, high=40)
        for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic") for low in (None, 0)
    ],
    _plain("eq", "equal", 2, ALL),
    _plain("ne", "not_equal", 2, ALL),
    _plain("lt", "less", 2, ORDERED),
    _plain("le", "less_equal", 2, ORDERED),
    _plain("gt", "greater", 2, ORDERED),
    _plain("ge", "greater_equal", 2, ORDERED),
    *[_plain(name, "", 2, ORDERED) for name in ("eq_to_p", "lt_to_p", "le_to_p")],
    # Functions of numpy that are several operations, or none of lax.
    *[
        _plain("", name, 1)
        for name in (
            "fabs", "positive", "trunc", "rint", "round", "modf", "conjugate", "angle", "iscomplex", "isreal", "isinf",
            "isnan", "isposinf", "isneginf", "nan_to_num", "signbit", "frexp", "spacing", "logical_not",
        )
    ],
    *[Operation("", name) for name in ("log2", "log10", "deg2rad radians", "rad2deg degrees", "sinc")],
    # exp(|x|) multiplies what the series leaves of rounding.
    Operation("", "i0", low=-4, high=4, rounding=8),
    _plain("", "round", 1, low=-100, high=100, keywords={"decimals": 1}),
    _plain("", "round", 1, low=-100, high=100, keywords={"decimals": 2}),
    _plain("", "angle", 1, keywords={"deg": True}),
    _plain("", "nan_to_num", 1, keywords={"nan": 3.0, "posinf": 2, "neginf": -1.0}),
    *[
        Operation("", name, 2)
        for name in (
            "divide", "true_divide", "floor_divide", "remainder mod", "fmod", "divmod", "power pow", "float_power",
            "hypot", "logaddexp", "logaddexp2",
        )
    ],
    *[
        _plain("", name, 2)
        for name in (
            "fmax", "fmin", "heaviside", "copysign", "ldexp", "isclose", "left_shift bitwise_left_shift",
            "right_shift bitwise_right_shift", "logical_and", "logical_or", "logical_xor",
        )
    ],
    _plain("", "isclose", 2, low=-2, high=2, keywords={"rtol": 0.5, "atol": 0.1, "equal_nan": True}),
    _plain("", "clip", 3),
    _plain("", "where", 3),
]
LAX = [NamedOperation(operation.lax, operation) for operation in OPERATIONS if operation.lax]
NUMPY = [NamedOperation(operation.numpy.split()[0], operation) for operation in OPERATIONS if operation.numpy]
ALIASES = {
    alias: name for operation in OPERATIONS for name, *aliases in [operation.numpy.split() or [""]] for alias in aliases
}
_OWN = [operation for operation in OPERATIONS if operation.reference is not None]
# By module the names of operations that jax has not.
OWN_OPERATIONS = {
    "xtrace.lax": {name for o in _OWN if o.lax for name in (o.lax, f"{o.lax}_p")},
    "xtrace.extend.core.primitives": {f"{o.lax}_p" for o in _OWN if o.lax},
    "xtrace.numpy": {name for o in _OWN for name in o.numpy.split()},
}


def in_jax(rows: Iterable[NamedOperation]) -> list[NamedOperation]:
    """Return the rows of operations that jax has, too."""
    return [row for row in rows if row.reference is None]


def plain_names(rows: Iterable[NamedOperation], operands: int) -> list[str]:
    """Return the names of the rows of public functions of so many operands, called without keywords."""
    found = [r.name for r in rows if r.operands == operands and not r.keywords and not r.name.endswith("_p")]
    return list(dict.fromkeys(found))
