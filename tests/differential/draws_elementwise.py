"""Rows of elementwise functions."""

from __future__ import annotations

import functools
from typing import Any

from hypothesis import strategies as st

from tests.differential.arguments import EVERY, FORMS, PAIRS, family, given_as, operand, sampled
from tests.support.draws import Row
from tests.support.elementwise_operations import OPERATIONS, NamedOperation, Operation


@st.composite
def paired(draw: Any, dtypes: Any = EVERY, kind: str = "quarters", forms: Any = FORMS, count: int = 2) -> Any:
    """Draw operands whose shapes broadcast, mostly; of one dtype half of the time."""
    shapes = draw(st.sampled_from(PAIRS))
    first = draw(st.sampled_from(dtypes))
    same = draw(st.booleans())
    chosen = [first] if same else dtypes
    return tuple([draw(operand(chosen, [shapes[i % 2]], kind, forms)) for i in range(count)]), {}


def unary(dtypes: Any = EVERY, kind: str = "any", **changes: Any) -> Row:
    """Return the row of a function of one operand."""
    return Row(given_as(operand(dtypes, kind=kind)), **changes)


def binary(dtypes: Any = EVERY, kind: str = "any", **changes: Any) -> Row:
    """Return the row of a function of two operands that broadcast."""
    return Row(paired(dtypes, kind), **changes)


# How many roundings of 1 results may be apart besides: shares of complex numbers may be small where parts are not.
_FLOORS = {"logaddexp": 1.0, "logaddexp2": 1.0}


def _row(name: str, operation: Operation) -> Row:
    kinds: dict[str, Any] = {"kind": operation.drawn, "floor": _FLOORS.get(name, 0.0)}
    if operation.reference is not None:
        kinds["function"] = lambda package: functools.partial(NamedOperation(name, operation).call, package.numpy)
    row = binary(**kinds) if operation.operands == 2 else unary(**kinds)
    return row._replace(rounding=max(row.rounding, operation.rounding))


NUMPY: dict[str, Row] = {
    **{
        name: _row(name, operation)
        for operation in OPERATIONS if operation.numpy and operation.operands < 3 for name in operation.numpy.split()
    },
    **family("isrealobj iscomplexobj isscalar", unary()),
    **family("gcd lcm", binary()),
    # Under this name jax wraps negative weak integers to the unsigned type beside them.
    "atan2": binary(kind="positive"),
    **family("round around", Row(given_as(operand(kind="any"), decimals=sampled(0, 1, 2, -1)))),
    "clip": Row(paired(count=3)),
    "where": Row(paired(count=3)),
}
