"""Flags: parameters whose default is True or False. Programs depend on them, so arrays and lists are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.errors import StaticArgumentError
from xtrace._src.core.trace import Tracer

# Flags of NumPy and SciPy that no program depends on: they are ignored here, or only Python reads them.
_UNCHECKED = frozenset(("check_finite", "copy", "debug", "inplace", "overwrite_a", "overwrite_b", "overwrite_c"))


def find_flags(function: Callable[..., Any]) -> dict[str, int | None]:
    """Return the names of the flags of a plain function, each with its position (None: by keyword only)."""
    code, defaults = function.__code__, function.__defaults__ or ()
    first = code.co_argcount - len(defaults)
    flags: dict[str, int | None] = {
        code.co_varnames[first + i]: first + i for i, value in enumerate(defaults) if type(value) is bool
    }
    flags |= {name: None for name, value in (function.__kwdefaults__ or {}).items() if type(value) is bool}
    return {name: position for name, position in flags.items() if name not in _UNCHECKED}


def check_flags(
    function: str, flags: Mapping[str, int | None], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Raise StaticArgumentError for a flag that does not hash. A traced array raises its own error at its use."""
    for name, position in flags.items():
        if name in kwargs:
            value = kwargs[name]
        elif position is not None and position < len(args):
            value = args[position]
        else:
            continue
        if type(value) is not bool and not isinstance(value, Tracer):
            check_hashable(function, name, value)


def check_hashable(function: str, argument: str, value: object) -> None:
    """Raise StaticArgumentError if an argument that decides what is compiled does not hash."""
    try:
        hash(value)
    except TypeError:
        raise StaticArgumentError(
            f"{function}: the argument {argument} decides what is compiled, so it must be hashable and no array; got "
            f"{type(value).__name__} {abbreviate(value)}. Give a Python number, a string or a tuple."
        ) from None
