"""Errors of conversions of traced values by Python, NumPy or shapes: event, place, reason and correction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xtrace._src.core import errors
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import check_truth, is_array_like, not_an_array
from xtrace._src.core.diagnostics import advice
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.provenance import find_provenance
from xtrace._src.core.diagnostics.sites import Site
from xtrace._src.core.dtypes import is_integer
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.settings import config

if TYPE_CHECKING:
    from xtrace._src.core.trace import Tracer


def check_operands(name: str, operands: Sequence[Any]) -> None:
    """Raise TypeError if an operand is of a type that no operation accepts."""
    for position, value in enumerate(operands):
        if not isinstance(value, Literal) and not is_array_like(value):
            raise TypeError(f"{name}: argument {position}: {not_an_array(value)}")


def _message(head: str, tracer: Tracer | None, fixes: Callable[[advice.Case], list[str]]) -> str:
    """Return `head`, the user's expression, the origin of the tracer, and the correction."""
    try:
        site = Site.here()
        provenance = find_provenance(tracer) if tracer is not None else None
        origin = provenance.text(site) if provenance is not None else ""
        parts = [head, site.excerpt(), origin, advice.text(fixes(advice.Case(site, tracer, provenance)))]
    except Exception:
        # A failure of the explanation must not replace the error.
        if config.enable_checks.value:
            raise
        return head
    return "\n".join(part for part in parts if part)


def boolean_conversion(tracer: Tracer) -> errors.TracerBoolConversionError:
    """The error of a tracer used as a condition."""
    head = f"Attempted boolean conversion of traced array with shape {tracer.aval.str_short(True)}."
    return errors.TracerBoolConversionError(_message(head, tracer, advice.for_condition))


def ambiguous_truth(tracer: Tracer) -> ValueError:
    """The error of a tracer of several elements used as a condition."""
    try:
        check_truth(tracer.aval)
    except ValueError as error:
        return ValueError(_message(str(error), tracer, advice.for_several_truths))
    raise AssertionError(tracer.aval)


def concretization(tracer: Tracer, asked_by: str) -> errors.ConcretizationTypeError:
    """The error of a tracer whose value a Python function needs."""
    head = (
        f"Abstract tracer value encountered where concrete value is expected: {tracer!r}\n"
        f"The problem arose with the `{asked_by}` function."
    )
    return errors.ConcretizationTypeError(_message(head, tracer, lambda case: advice.for_value(case, asked_by)))


def integer_conversion(tracer: Tracer) -> TypeError:
    """The error of a tracer used as a Python integer; one of another dtype or several elements is never one."""
    if not is_integer(tracer.aval.dtype) or tracer.aval.shape:
        head = f"Only a scalar of an integer type can be an index; the traced array is {tracer.aval.str_short()}."
        return TypeError(_message(head, tracer, advice.for_no_integer))
    head = (
        f"The __index__() method was called on traced array with shape {tracer.aval.str_short(True)}: Python needed "
        "its value as an integer (range(), a list index, a shape, a slice bound)."
    )
    return errors.TracerIntegerConversionError(_message(head, tracer, advice.for_integer))


def array_conversion(tracer: Tracer) -> errors.TracerArrayConversionError:
    """The error of a tracer given to NumPy."""
    head = (
        "The numpy.ndarray conversion method __array__() was called on traced array with shape "
        f"{tracer.aval.str_short(True)}: a NumPy function was given a traced value."
    )
    return errors.TracerArrayConversionError(_message(head, tracer, advice.for_array))


def boolean_index(tracer: Tracer) -> errors.NonConcreteBooleanIndexError:
    """The error of a traced mask used as an index."""
    head = (
        f"Array boolean indices must be concrete; got {tracer.aval!r}\n"
        "The number of elements that a mask selects, and so the shape of the result, depends on values."
    )
    return errors.NonConcreteBooleanIndexError(_message(head, tracer, advice.for_mask))


def slice_entry(tracer: Tracer, entry: slice, position: int) -> IndexError:
    """The error of a traced bound of a slice, the item `position` of an index."""
    head = (
        f"Slice entries must be static integers. Got {entry} at position {position}\n"
        "The shape of the result would depend on a traced value."
    )
    return IndexError(_message(head, tracer, advice.for_slice))


def traced_shape(tracer: Tracer, entries: Sequence[Any], *, function: str = "") -> TypeError:
    """The error of a shape with a tracer among its entries, passed to `function`, by default the public one."""
    head = (
        "Shapes must be 1D sequences of concrete values of integer type, got "
        f"[{', '.join(map(repr, entries))}].\n"
        "If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions.\n"
        f"{function or called_function()} needs a shape that is known while tracing."
    )
    return TypeError(_message(head, tracer, advice.for_shape))


def unhashable(tracer: Tracer) -> TypeError:
    """The error of a tracer used as a key."""
    head = (
        f"unhashable type: {type(tracer).__name__}. A traced array cannot be a dictionary key, a set member or a "
        "static argument."
    )
    return TypeError(_message(head, tracer, advice.for_key))


def format_specification(tracer: Tracer, specification: str) -> TypeError:
    """The error of a tracer formatted as a number."""
    head = f"the format {specification!r} needs a value, and the traced array {tracer!r} has none while Python runs"
    return TypeError(_message(head, tracer, advice.for_format))


def no_data(tracer: Tracer, what: str) -> errors.ConcretizationTypeError:
    """The error of using a method or an attribute, `what`, that needs the data or the place of a tracer."""
    head = (
        f"Abstract tracer value encountered where concrete value is expected: the {what} is not available on traced "
        f"array with shape {tracer.aval.str_short(True)}, which has no data while Python runs."
    )
    return errors.ConcretizationTypeError(_message(head, tracer, advice.for_data))


def no_such_attribute(tracer: Tracer, what: str) -> AttributeError:
    """The error of reading an attribute of a tracer that only concrete arrays have."""
    return AttributeError(
        f"the {what} is not available on traced array with shape {tracer.aval.str_short(True)}, which is on no device "
        "while Python runs. Use it outside the traced function; xtrace.typeof(x) says what is known of a traced array"
    )


def item_assignment(array: Array) -> TypeError:
    """The error of assigning to an item of an array, concrete or traced."""
    head = (
        f"'{type(array)}' object does not support item assignment. Arrays are immutable. Instead of "
        "``x[idx] = y``, use ``x = x.at[idx].set(y)`` or another .at[] method"
    )
    return TypeError(_message(head, None, advice.for_item_assignment))


def iteration(array: Any) -> TypeError:
    """The error of iterating over an array without axes, concrete or traced."""
    tracer = array if hasattr(array, "owner") else None
    fixes = advice.for_iteration if is_integer(array.dtype) else advice.for_iteration_of_no_count
    return TypeError(_message("iteration over a 0-d array", tracer, fixes))
