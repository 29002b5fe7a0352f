"""The dtypes that users give by name, which may have 64 bits where the settings have no such dtypes."""

from __future__ import annotations

from typing import Any

from xtrace._src.core import dtypes
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.settings import config

_PYTHON_TYPES = frozenset((bool, int, float, complex))


def requested_dtype(dtype: object, *, function: str = "") -> Any:
    """Return the dtype of arrays for a user's argument `dtype`; None for None.

    Where a 64-bit dtype becomes its 32-bit form, the setting ``jax_explicit_x64_dtypes`` decides whether there is a
    warning or a ValueError, or whether the dtype is kept. Raises TypeError for an argument that is no dtype.
    """
    if dtype is None:
        return None
    x64 = config.enable_x64.value
    try:
        canonical = dtypes.canonicalize(dtype, x64)
    except TypeError as error:
        raise type(error)(f"{function or called_function()}: {error}") from None
    if x64 or dtypes.canonicalize(dtype, True) == canonical or dtype in _PYTHON_TYPES:
        return canonical
    wanted, handling = dtypes.resolve(dtype), config.explicit_x64_dtypes.value
    if handling == "allow":
        return wanted
    problem = f"Explicitly requested dtype {wanted.name} requested in {function or called_function()} is not available"
    advice = "To enable more dtypes, set the jax_enable_x64 configuration option"
    if handling == "error":
        raise ValueError(f"{problem}. {advice}, or jax_explicit_x64_dtypes='allow'.")
    warn_user(
        f"{problem}, and will be truncated to dtype {canonical.name}. {advice} or the XTRACE_ENABLE_X64 environment "
        "variable."
    )
    return canonical
