"""Prints and logs of values from running programs."""

from __future__ import annotations

import functools
import logging
import string
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of, is_array_like
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.positions import resolve, user_position
from xtrace._src.core.dtypes import ExtendedDType
from xtrace._src.core.jaxprs.effects import debug_effect, ordered_debug_effect
from xtrace._src.core.jaxprs.ir import ALWAYS_PRINTED
from xtrace._src.ops.host.callback_lowering import emit_host_call
from xtrace._src.ops.host.callbacks import debug_primitive, merge_static, split_static
from xtrace._src.runtime.callbacks import inside_callback
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.xla.pytree_registry import PyTreeDef

_logger = logging.getLogger("xtrace.debug")


class _FormatChecker(string.Formatter):
    """A check of a format string's fields against the types of values, without the values."""

    def format_field(self, value: Array, format_spec: str) -> str:
        if not format_spec:
            return ""
        if not is_array_like(value):
            return format(value, format_spec)
        aval = aval_of(value)
        if isinstance(aval.dtype, ExtendedDType) or aval.shape:
            raise TypeError(
                f"the format {abbreviate(format_spec)} is for numbers; the value is {aval.str_short()}. Use "
                "{} or {!r}, and numpy.printoptions for the format of arrays"
            )
        # A format fits all numbers of a dtype or none, so any number tells.
        return format(np.ones((), aval.dtype)[()], format_spec)

    def convert_field(self, value: Array, conversion: str | None) -> Any:
        if conversion is None:
            return value
        if conversion not in "rsa":
            raise ValueError(
                f"unknown conversion {abbreviate(conversion)} in a replacement field; there are !r, !s and !a"
            )
        return ""

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused = [x for i, x in enumerate(args) if i not in used_args]
        if unused:
            raise ValueError(
                f"Unused positional arguments to `debug.print`: {unused}. Give each a {{}} in the format"
            )
        names = [name for name in kwargs if name not in used_args]
        if names:
            raise ValueError(
                f"Unused keyword arguments to `debug.print`: {names}. The format string may be an f-string, which "
                'shows the value at tracing time: write debug.print("{x}", x=x), without f'
            )


def _check(fmt: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise now, at the user's line, the error that formatting would raise at run time."""
    try:
        _FormatChecker().vformat(fmt, args, kwargs)
    except IndexError as error:
        raise IndexError(
            f"debug.print: {abbreviate(fmt)} refers to more positional arguments than the {len(args)} given: {error}"
        ) from None
    except KeyError as error:
        raise KeyError(
            f"debug.print: {abbreviate(fmt)} refers to {error}, which is not among the arguments "
            f"({', '.join(kwargs) or 'none are named'})"
        ) from None
    except (TypeError, ValueError, AttributeError) as error:
        raise type(error)(f"debug.print: {abbreviate(fmt)}: {error}") from None


def _show(
    *leaves: Array, fmt: str, in_tree: PyTreeDef, static_args: Any, np_printoptions: Any, logging_record: Any, **_: Any
) -> list[Any]:
    args, kwargs = merge_static(in_tree, static_args, leaves)
    with np.printoptions(**dict(np_printoptions)):
        text = fmt.format(*args, **kwargs)
    if logging_record is None:
        sys.stdout.write(text + "\n")
    else:
        file, line, function = logging_record
        record = _logger.makeRecord(_logger.name, logging.INFO, file, line, text, (), None, function)
        if _logger.isEnabledFor(logging.INFO):
            _logger.handle(record)
    return []


def _emit(builder: FunctionBuilder, *values: Value, ordered: bool, **parameters: Any) -> list[Value]:
    effect = ordered_debug_effect if ordered else debug_effect
    key = tuple(parameters.items())
    show, partitioned = functools.partial(_show, **parameters), parameters["partitioned"]
    return emit_host_call(builder, values, key, "debug.print", show, effect, partitioned=partitioned)


def _evaluate(*arrays: Array, ordered: bool, **parameters: Any) -> list[Any]:
    with inside_callback(ordered):
        return _show(*arrays, **parameters)


debug_print_p = debug_primitive(
    "debug_print",
    (
        "fmt", "has_placeholders", "in_tree", "logging_record", "np_printoptions", "ordered", "partitioned",
        "static_args",
    ),
    emit=_emit, evaluate=_evaluate, unprinted={"logging_record": ALWAYS_PRINTED},
    effects=lambda *, ordered, **_: frozenset((ordered_debug_effect if ordered else debug_effect,)),
)


def debug_print(
    fmt: str | None = None, *args: ArrayLike, ordered: bool = False, partitioned: bool = False,
    skip_format_check: bool = False, _use_logging: bool = False, **kwargs: object,
) -> Any:
    """Print a text each time the program runs.

    Under `vmap` it prints once for each element, under `jvp` and `grad` the primal values. NumPy's print options at
    tracing time apply to arrays.

    Args:
        fmt: a format string; its fields may access attributes, as in ``{x.shape}``. Without it, a function with the
            other arguments is returned.
        args: the values of positional fields, trees of arrays and other objects.
        ordered: whether to keep the order among ordered prints.
        partitioned: whether each device of a mesh prints its shards, instead of one device the whole arrays.
        skip_format_check: whether to skip the check of `fmt` at tracing time.
        _use_logging: leave it at False.
        kwargs: the values of named fields.

    Raises:
        IndexError: a field by position has no value.
        KeyError: a field by name has no value.
        TypeError: `fmt` is no string, or a format does not fit its value.
        ValueError: an argument has no field.

    Example:
        >>> xtrace.jit(lambda x: xtrace.debug.print("x is {x:.2f}", x=x))(1.0)
        x is 1.00
        >>> xtrace.effects_barrier()
    """
    if fmt is None:
        if args or kwargs:
            raise TypeError(
                f"debug.print: without a format it takes ordered, partitioned and skip_format_check only; got "
                f'{", ".join([*map(abbreviate, args), *kwargs])}. Give the format first, debug.print("{{x}}", x=x)'
            )
        return functools.partial(
            debug_print, ordered=ordered, partitioned=partitioned, skip_format_check=skip_format_check,
            _use_logging=_use_logging,
        )
    if not isinstance(fmt, str):
        raise TypeError(
            f"debug.print: the first argument is the format, a string; got {type(fmt).__name__} {abbreviate(fmt)}. "
            'Write debug.print("{}", x)'
        )
    if not skip_format_check:
        _check(fmt, args, kwargs)
    leaves, tree, static = split_static((args, kwargs))
    record = None
    if _use_logging:
        place = user_position()
        at = resolve(place) if place is not None else None
        record = (at.file, at.line, at.function) if at is not None else ("<unknown>", 0, "")
    options = tuple(np.get_printoptions().items())
    placeholders = bool(args or kwargs)
    debug_print_p.bind_positional(
        leaves, (fmt, placeholders, tree, record, options, bool(ordered), bool(partitioned), static)
    )
    return None


def debug_log(
    fmt: str | None = None, *args: ArrayLike, ordered: bool = False, partitioned: bool = False,
    skip_format_check: bool = False, _use_logging: bool = True, **kwargs: object,
) -> Any:
    """Write a text to the logger ``xtrace.debug`` at level INFO each time the program runs.

    Args:
        fmt: a format string, as in `debug.print`.
        args: the values of positional fields.
        ordered: whether to keep the order among ordered prints.
        partitioned: whether each device of a mesh logs its shards, instead of one device the whole arrays.
        skip_format_check: whether to skip the check of `fmt` at tracing time.
        _use_logging: leave it at True.
        kwargs: the values of named fields.

    Raises:
        IndexError: a field by position has no value.
        KeyError: a field by name has no value.
        TypeError: `fmt` is no string.
        ValueError: an argument has no field.

    Example:
        >>> xtrace.debug.log("x is {}", 1)
    """
    return debug_print(
        fmt, *args, ordered=ordered, partitioned=partitioned, skip_format_check=skip_format_check,
        _use_logging=_use_logging, **kwargs,
    )
