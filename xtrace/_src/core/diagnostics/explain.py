"""Errors about tracers: the place of the use, the origin of the tracer, and the correction.

Their modules load at the first such error.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xtrace._src.core.diagnostics.conversions import (
        ambiguous_truth,
        array_conversion,
        boolean_conversion,
        boolean_index,
        check_operands,
        concretization,
        format_specification,
        integer_conversion,
        item_assignment,
        iteration,
        no_data,
        no_such_attribute,
        slice_entry,
        traced_shape,
        unhashable,
    )
    from xtrace._src.core.diagnostics.leaks import check_leaks, unexpected_tracer
    from xtrace._src.core.diagnostics.provenance import Provenance, provenance_under

__all__ = [
    "Provenance", "ambiguous_truth", "array_conversion", "boolean_conversion", "boolean_index", "check_leaks",
    "check_operands", "concretization", "format_specification", "integer_conversion", "item_assignment", "iteration",
    "no_data", "no_such_attribute", "provenance_under", "slice_entry", "traced_shape", "unexpected_tracer",
    "unhashable",
]

# The modules of the names that are not in `conversions`.
_elsewhere = {
    "Provenance": "provenance", "check_leaks": "leaks", "provenance_under": "provenance", "unexpected_tracer": "leaks",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _elsewhere.get(name, "conversions")
    globals()[name] = value = getattr(importlib.import_module(f"xtrace._src.core.diagnostics.{module}"), name)
    return value
