"""What errors say about a tracer: where it was asked for, what it depends on, where it was made, what to write instead.

Nothing of it is loaded before the first such error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xtrace.core.late import late_names

if TYPE_CHECKING:
    from xtrace.core.conversions import (
        array_conversion,
        boolean_conversion,
        boolean_index,
        check_operands,
        concretization,
        formatted,
        integer_conversion,
        item_assignment,
        iteration,
        no_data,
        no_such_attribute,
        provenance,
        slice_entry,
        traced_shape,
        unhashable,
    )
    from xtrace.core.leaks import unexpected_tracer
    from xtrace.core.provenance import Provenance, provenance_under

__all__ = [
    "Provenance", "array_conversion", "boolean_conversion", "boolean_index", "check_operands", "concretization",
    "formatted", "integer_conversion", "item_assignment", "iteration", "no_data", "no_such_attribute", "provenance",
    "provenance_under", "slice_entry", "traced_shape", "unexpected_tracer", "unhashable",
]  # fmt: skip

_elsewhere = {
    "xtrace.core.leaks": ["unexpected_tracer"],
    "xtrace.core.provenance": ["Provenance", "provenance_under"],
}
_moved = [name for names in _elsewhere.values() for name in names]
_, __getattr__ = late_names(
    __name__, {"xtrace.core.conversions": [name for name in __all__ if name not in _moved], **_elsewhere}
)
