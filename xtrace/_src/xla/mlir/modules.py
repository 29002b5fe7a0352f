"""StableHLO modules as MLIR objects: parsing, verification, and the portable form.

The import of this module loads jaxlib's MLIR bindings, which takes tens of milliseconds, so it belongs in a block of
`late_modules`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _mlirHlo, _sdy, _stablehlo

# The recursive parser overflows the stack at a few thousand nested regions.
_DEEPEST_NESTING = 1000
_LONGEST_QUOTE = 160

_PLACE = re.compile(r'"(?P<file>(?:[^"\\]|\\.)*)":(?P<line>\d+):(?P<column>\d+)')
_LOCATION_USE = re.compile(r" loc\(#loc\d*\)")
_LOCATION_DEFINITION = re.compile(r"^#loc\d* = .*$", re.MULTILINE)

_lock = threading.RLock()


class InvalidModuleError(ValueError):
    """Module text that MLIR does not parse or verify.

    `diagnostics` are MLIR's messages. `line` and `column` of the text count from 1, and are None if MLIR does not
    report them; `source` is the text of the line.
    """

    def __init__(
        self, message: str, *, diagnostics: tuple[str, ...] = (), line: int | None = None, column: int | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics
        self.line = line
        self.column = column
        self.source = source


class JaxIrContext(ir.Context):  # type: ignore[misc]
    """An MLIR context for a program's own modules; it has only the builtin dialect.

    Args:
        load_on_create_dialects: the names of dialects to load; None for none.
        thread_pool: the threads for passes; None for those of the context.
        args: further arguments of MLIR's own context.
        kwargs: further arguments by name.

    Example:
        >>> context = xtrace.extend.lowering.JaxIrContext()
        >>> context.append_dialect_registry(xtrace.extend.lowering.upstream_dialects)
        >>> context.load_all_available_dialects()
        >>> context.is_registered_operation("arith.addi")
        True
    """


@cache
def upstream_dialects() -> ir.DialectRegistry:
    """Return the registry of the dialects that are part of MLIR."""
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    return registry


@cache
def _new_context() -> ir.Context:
    # Multi-threading stays on, because without it MLIR does not lock the data that modules of a context share.
    context = JaxIrContext()
    context.append_dialect_registry(upstream_dialects())
    context.load_all_available_dialects()
    for register in (
        _stablehlo.register_dialect, _chlo.register_dialect, _sdy.register_dialect, _mlirHlo.register_mhlo_dialect
    ):
        register(context)
    return context


def context() -> ir.Context:
    """Return the MLIR context of every parsed module, with StableHLO, CHLO, Shardy, MHLO and func loaded."""
    with _lock:
        return _new_context()


def parse(text: str | bytes) -> ir.Module:
    """Return `text` as a verified ``ir.Module``, which its operations keep alive.

    Raises TypeError for an argument that is no text, and InvalidModuleError with the line, the operation and MLIR's
    messages for invalid text.
    """
    data = _encode(text)
    within = context()
    # The lock keeps the diagnostics of two threads apart.
    with _lock:
        try:
            return ir.Module.parse(data, context=within)
        except ir.MLIRError as error:
            raise _describe_error(data, error, within) from None


def verify(text: str | bytes) -> None:
    """Raise InvalidModuleError unless `text` is a valid module."""
    parse(text)


def write_text(module: object, debug_info: bool = False) -> str:
    """Return MLIR's text of a module, with source locations if `debug_info`."""
    if not isinstance(module, ir.Module):
        raise TypeError(f"a module is an ir.Module or its text, not {type(module).__name__}")
    return str(module.operation.get_asm(enable_debug_info=debug_info))


def current_version() -> str:
    """Return the StableHLO version of this jaxlib, such as ``1.14.0``."""
    return str(_stablehlo.get_current_version())


def serialize(module: object, version: str | None = None) -> bytes:
    """Return the portable StableHLO artifact of a module, or its text, in `version` (default: the newest).

    Releases of StableHLO from `version` on can read it. CHLO operations are expanded to StableHLO first. Raises
    InvalidModuleError for invalid text, and ValueError with MLIR's messages for an unknown version or an operation
    without a portable form.
    """
    target = version or current_version()
    # A copy, because the expansion works in place.
    copy = parse(module if isinstance(module, (str, bytes)) else write_text(module, debug_info=True))
    with collect_diagnostics() as messages:
        try:
            run_passes(copy, "builtin.module(func.func(chlo-legalize-to-stablehlo))")
            return bytes(_stablehlo.serialize_portable_artifact(copy, target))
        except (ValueError, RuntimeError, ir.MLIRError) as error:
            why = _shorten("; ".join(messages) or str(error))
    raise ValueError(f"the module has no portable artifact of StableHLO {target}: {why}")


def run_passes(module: ir.Module, passes: str) -> None:
    """Run StableHLO's passes, given as MLIR's pipeline, on a module; ir.MLIRError or ValueError if one fails."""
    _register_passes()
    passmanager.PassManager.parse(passes, context=module.context).run(module.operation)


@cache
def _register_passes() -> None:
    _stablehlo.register_stablehlo_passes()


@contextmanager
def collect_diagnostics() -> Iterator[list[str]]:
    """Collect MLIR's messages, instead of writing them to stderr; other threads wait for the context."""
    messages: list[str] = []

    def collect(diagnostic: Any) -> bool:
        messages.append(str(diagnostic.message).strip())
        return True

    with _lock:
        handler: Any = _new_context().attach_diagnostic_handler(collect)
        try:
            yield messages
        finally:
            handler.detach()


def _encode(text: str | bytes) -> bytes:
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"a module is given as text, not as {type(text).__name__}")
    try:
        data = text.encode() if isinstance(text, str) else text
        data.decode()
    except UnicodeError as error:
        raise InvalidModuleError(f"invalid module: the text is not UTF-8: {error}") from None
    # MLIR would stop at a null character and accept the text before it.
    if b"\0" in data:
        raise InvalidModuleError("invalid module: the text holds a null character")
    for opening, closing in (b"{}", b"[]", b"<>"):
        if data.count(opening) > _DEEPEST_NESTING and _depth(data, opening, closing) > _DEEPEST_NESTING:
            raise InvalidModuleError(
                f"invalid module: {chr(opening)!r} is nested more than {_DEEPEST_NESTING} deep, "
                "which overflows the stack of MLIR's parser"
            )
    return data


def _depth(data: bytes, opening: int, closing: int) -> int:
    symbols = np.frombuffer(data, np.uint8)
    steps = (symbols == opening).astype(np.int32) - (symbols == closing)
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


def _describe_error(data: bytes, error: ir.MLIRError, within: ir.Context) -> InvalidModuleError:
    """Return MLIR's error with the line of the text to which it refers."""
    text = data.decode()
    lines = text.split("\n")
    origin = ""
    diagnostics = list(error.error_diagnostics)
    place = _place(diagnostics[0]) if diagnostics else None
    if place is not None and place[0] != "-":
        # The operation has the user's location; without locations, MLIR reports the line of the text.
        origin = f" (from {place[0]}:{place[1]})"
        text = _LOCATION_DEFINITION.sub("", _LOCATION_USE.sub("", text))
        lines = text.split("\n")
        try:
            ir.Module.parse(text, context=within)
        except ir.MLIRError as again:
            diagnostics = list(again.error_diagnostics) or diagnostics
        place = _place(diagnostics[0])
    messages = tuple(str(d.message).strip() for d in diagnostics) or (str(error).strip(),)
    line, column, source = _in_text(place, lines)
    shown = [f"invalid module: {_shorten(messages[0])}{origin}"]
    if source is not None and line is not None and column is not None:
        shown += _quote(line, column, source)
    shown += [f"  {_shorten(message)}" for message in messages[1:]]
    for diagnostic in diagnostics:
        for note in diagnostic.notes:
            at, _, _ = _in_text(_place(note), lines)
            where = f"line {at}: " if at not in (None, line) else ""
            shown.append(f"  note: {where}{_shorten(str(note.message))}")
    return InvalidModuleError("\n".join(shown), diagnostics=messages, line=line, column=column, source=source)


def _place(diagnostic: Any) -> tuple[str, int, int] | None:
    match = _PLACE.search(str(diagnostic.location))
    return (match["file"], int(match["line"]), int(match["column"])) if match else None


def _in_text(place: tuple[str, int, int] | None, lines: list[str]) -> tuple[int | None, int | None, str | None]:
    """Return the line, the column and the source of a place in the text; (None, None, None) for another place."""
    if place is None or place[0] != "-" or not 1 <= place[1] <= len(lines):
        return None, None, None
    return place[1], place[2], lines[place[1] - 1]


def _quote(line: int, column: int, source: str) -> list[str]:
    """Return the part of a line around a column, and a caret below that column."""
    indent = len(source) - len(source.lstrip())
    start = max(min(indent, column - 1), column - 1 - _LONGEST_QUOTE // 2)
    part = source[start : start + _LONGEST_QUOTE]
    head = f"  line {line}: "
    return [head + part, " " * (len(head) + column - 1 - start) + "^"]


def _shorten(message: str) -> str:
    # A note may print a whole operation, constants included.
    message = message.strip()
    return message if len(message) <= 4 * _LONGEST_QUOTE else message[: 4 * _LONGEST_QUOTE] + " ..."
