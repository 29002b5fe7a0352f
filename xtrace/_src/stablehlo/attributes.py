"""StableHLO attribute text: dense constants, integer arrays, strings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from xtrace._src.core import dtypes
from xtrace._src.core.tables import Table


def integers(values: Iterable[int]) -> str:
    """An ``array<i64: …>`` attribute."""
    items = ", ".join(map(str, values))
    return f"array<i64: {items}>" if items else "array<i64>"


def booleans(values: Iterable[bool]) -> str:
    """An ``array<i1: …>`` attribute."""
    items = ", ".join("true" if v else "false" for v in values)
    return f"array<i1: {items}>" if items else "array<i1>"


def list_text(values: Iterable[int]) -> str:
    """A bare list, ``[0, 1]``, as the readable forms of operations write dimensions."""
    return f"[{', '.join(map(str, values))}]"


def string(text: str) -> str:
    """A quoted string with MLIR's escapes."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    out = []
    for character in text:
        if character in '"\\':
            out.append("\\" + character)
        elif character.isprintable() and ord(character) < 128:
            out.append(character)
        else:
            out.extend(f"\\{byte:02X}" for byte in character.encode())
    return f'"{"".join(out)}"'


def axis_name(axis: object) -> str:
    """A quoted name of a mesh axis, without backslashes and other characters at which XLA aborts the process."""
    return string("".join([c if " " <= c <= "~" and c not in "<\\" else f"<{ord(c):X}>" for c in str(axis)]))


def string_of_bytes(data: bytes) -> str:
    """A quoted string of any bytes."""
    return f'"{"".join([f"{chr(92)}{byte:02X}" for byte in data])}"'


def dense(array: Any) -> str:
    """The ``dense<…>`` text of a NumPy array, exact to the bit; equal elements are written once."""
    array = np.asarray(array)
    if array.size == 0:
        return "dense<>"
    flat = np.ascontiguousarray(array).reshape(-1)
    if array.ndim == 0 or _all_same(flat):
        return f"dense<{_element(flat[0])}>"
    return f"dense<{_format_nested(array)}>"


def scalar(value: Any, dtype: np.dtype[Any]) -> str:
    """The ``dense<…>`` text of a scalar, cached because literals repeat."""
    if value != value:
        # NaNs differ in their bits, and equal no key.
        return dense(dtypes.cast(value, dtype))
    # The key has to distinguish 0.0 from -0.0, also in a part of a complex number.
    key = (str(value) if value == 0 or dtype.kind == "c" else value, type(value), dtype)
    text = _scalars.get(key)
    if text is None:
        text = dense(dtypes.cast(value, dtype))
        _scalars.remember(key, text)
    return text


_scalars = Table()


def _all_same(flat: np.ndarray[Any, Any]) -> bool:
    raw = flat.view(np.uint8).reshape(flat.size, -1)
    return bool((raw == raw[0]).all())


def _format_nested(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 0:
        return _element(array[()])
    return f"[{', '.join(map(_format_nested, array))}]" if array.ndim > 1 else f"[{', '.join(map(_element, array))}]"


def _element(value: Any) -> str:
    kind = value.dtype.kind
    if kind == "b":
        return "true" if value else "false"
    if kind in "iu":
        return str(int(value))
    if kind == "c":
        return f"({_float(value.real)}, {_float(value.imag)})"
    if kind == "f" or "float" in value.dtype.name:
        return _float(value)
    return str(int(value))  # ml_dtypes integers


def _float(value: Any) -> str:
    number = float(value)
    if math.isinf(number) or math.isnan(number):
        bits = int.from_bytes(value.tobytes(), "little")
        return f"0x{bits:0{2 * value.dtype.itemsize}X}"
    # MLIR reads a decimal as a double and then narrows it: the short form is exact if this gives the value back.
    short = f"{number:e}"
    text = short if type(value)(float(short)) == value else repr(number)
    mantissa, exponent, power = text.partition("e")
    return text if "." in mantissa else f"{mantissa}.0{exponent}{power}"
