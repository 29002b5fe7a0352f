"""Attributes that users give to calls of composite and foreign functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from xtrace._src.core import dtypes
from xtrace._src.core.abbreviation import abbreviated
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.errors import UnexpectedTracerError
from xtrace._src.core.trace import Tracer
from xtrace._src.stablehlo import attributes as mlir


class CallAttribute:
    """An attribute's value, which prints as it is and hashes by its text: it may be an array or a dict."""

    __slots__ = ("value", "text")

    def __init__(self, function: str, name: str, value: Any) -> None:
        self.value, self.text = value, _text(function, name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallAttribute) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return repr(self.value)


def _text(function: str, name: str, value: Any) -> str:
    """Return an attribute of a call as MLIR text; TypeError for values that XLA cannot hand over."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, float)) or (isinstance(value, np.generic) and _is_real(value.dtype)):
        dtype = value.dtype if isinstance(value, np.generic) else np.dtype(type(value))
        return f"{mlir.scalar(value, dtype).removeprefix('dense<')[:-1]} : {dtypes.mlir_name(dtype)}"
    if isinstance(value, str):
        return mlir.string(value)
    if isinstance(value, bytes):
        return mlir.string(value.decode())
    if isinstance(value, np.dtype):
        return dtypes.mlir_name(value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        aval = ShapedArray(value.shape, value.dtype)
        return f"{mlir.dense(value)} : {aval.mlir_type}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{mlir.string(k)} = {_text(function, k, v)}" for k, v in sorted(value.items())) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_text(function, name, v) for v in value)}]"
    if isinstance(value, Tracer) and function == "composite":
        raise UnexpectedTracerError(
            f"{function}: attribute {name} is the traced value {abbreviated(value)}; attributes are constants of "
            "the program. Pass arrays by position, also those that the decomposition closes over"
        )
    raise TypeError(
        f"{function}: attribute {name} is {abbreviated(value)} of type {type(value)}; attributes are booleans, "
        "numbers, strings, NumPy arrays and dtypes, and sequences and dicts of these"
    )


def _is_real(dtype: Any) -> bool:
    return dtypes.is_integer(dtype) or dtypes.is_floating(dtype)
