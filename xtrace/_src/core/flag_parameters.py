"""Flags: parameters whose default is True or False. Programs depend on them, so arrays and lists are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.errors import StaticArgumentError
from xtrace._src.core.trace import Tracer

# Flags of NumPy and SciPy that no program depends on: they are ignored here, or only Python reads them.
_UNCHECKED = frozenset(("check_finite", "copy", "debug", "inplace", "overwrite_a", "overwrite_b", "overwrite_c"))

# Flags that functions of JAX read outside of compiled programs: whatever has a truth value is accepted.
_ANY_VALUE = frozenset((
    "allow_negative_indices", "approximate", "array_equal.equal_nan", "assume_unique_indices", "boundary",
    "custom_root.has_aux", "detrend", "disp", "exact", "include_initial", "independent", "index_in_dim.keepdims",
    "indices_are_sorted", "input_onesided", "is_causal", "numpy_resid", "padded", "qr_multiply.pivoting", "repetition",
    "replace", "return_counts", "return_index", "return_inverse", "return_onesided", "return_residual", "return_sign",
    "reverse", "scale_and_translate.antialias", "sorted", "sparse", "strip_zeros", "symmetric", "tiled",
    "transpose_kernel", "trim_leading_zeros", "unique_indices", "wrap_negative_indices",
))


def find_flags(function: Callable[..., Any]) -> dict[str, int | None]:
    """Return the names of the flags of a plain function, each with its position (None: by keyword only)."""
    code, defaults = function.__code__, function.__defaults__ or ()
    first = code.co_argcount - len(defaults)
    flags: dict[str, int | None] = {
        code.co_varnames[first + i]: first + i for i, value in enumerate(defaults) if type(value) is bool
    }
    flags |= {name: None for name, value in (function.__kwdefaults__ or {}).items() if type(value) is bool}
    unchecked = _UNCHECKED | _ANY_VALUE
    return {n: i for n, i in flags.items() if unchecked.isdisjoint((n, f"{function.__name__}.{n}"))}


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
