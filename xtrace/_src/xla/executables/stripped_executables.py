"""Serialized programs without the HLO of their machine code, which load several times faster.

XLA parses the HLO of a program that it loads, fusion by fusion, but runs the machine code only. A stripped program has
fusions without instructions and instructions without metadata; the rest is unchanged. Descriptions of a program, such
as its text, are read from the whole one.

Source: the messages of ``xla/service/hlo.proto``, and of ``xla/service/cpu/executable.proto``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xtrace._src.xla.hlo.protobuf import fields, integers, read_varint, replace_fields, spans, write_field

# The fields on the path to the HLO module: in the serialized program, in its machine code, in the module with its
# configuration.
_PROGRAM, _MODULE_AND_CONFIGURATION, _MODULE = 1, 1, 1
_COMPUTATION = 3
_INSTRUCTION, _COMPUTATION_ID, _ROOT_ID = 2, 5, 6
_NAME, _OPCODE, _SHAPE, _METADATA, _FUSION_KIND, _TARGET, _INSTRUCTION_ID, _CALLED = 1, 2, 3, 7, 11, 28, 35, 38
# XLA compiles fusions of these kinds to machine code. It interprets fusions of the kind kCustom.
_COMPILED_FUSIONS = frozenset((b"kLoop", b"kInput", b"kOutput"))


class StrippedExecutable:
    """A loaded program that was stripped; the whole program is loaded on demand, for descriptions."""

    def __init__(self, running: Any, load_whole: Callable[[], Any]) -> None:
        self.running = running
        self._whole = functools.cache(load_whole)

    def hlo_modules(self) -> list[Any]:
        """Return the whole optimised HLO."""
        return list(self._whole().hlo_modules())

    def cost_analysis(self) -> Any:
        """Return XLA's estimate of the program's cost, from the whole HLO."""
        return self._whole().cost_analysis()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.running, name)


def strip_executable(code: bytes) -> bytes | None:
    """Return a serialized CPU program without the HLO of its machine code; None for other bytes."""
    try:
        size, start = read_varint(code, 0)
        header, program = code[: start + size], code[start + size :]
        stripped = replace_fields(program, _PROGRAM, _strip_machine_code)
    except (TypeError, ValueError):  # A field of another kind is a number where bytes are expected, or vice versa.
        return None
    return header + stripped if len(stripped) < len(program) else None


def _strip_machine_code(code: bytes) -> bytes:
    return replace_fields(
        code, _MODULE_AND_CONFIGURATION, lambda module: replace_fields(module, _MODULE, _strip_module)
    )


def _strip_module(module: bytes) -> bytes:
    fused = {
        called
        for number, computation in fields(module) if number == _COMPUTATION
        for field, instruction in fields(computation) if field == _INSTRUCTION
        if _field(instruction, _OPCODE, b"") == b"fusion"
        and _field(instruction, _FUSION_KIND, b"") in _COMPILED_FUSIONS
        for called in integers(_field(instruction, _CALLED, b""))
    }
    return replace_fields(module, _COMPUTATION, functools.partial(_strip_computation, fused))


def _strip_computation(fused: set[int], computation: bytes) -> bytes:
    is_fused = _field(computation, _COMPUTATION_ID, 0) in fused
    root = _field(computation, _ROOT_ID, 0)

    def strip_instruction(instruction: bytes) -> bytes | None:
        if is_fused and _field(instruction, _OPCODE, b"") != b"parameter":
            is_root = _field(instruction, _INSTRUCTION_ID, 0) == root
            return _write_placeholder(instruction, root) if is_root else None
        return replace_fields(instruction, _METADATA, lambda _: None)

    return replace_fields(computation, _INSTRUCTION, strip_instruction)


def _write_placeholder(instruction: bytes, root: int) -> bytes:
    """Return an instruction of the same name, shape and number that computes nothing."""
    return b"".join([
        write_field(_NAME, _field(instruction, _NAME, b"")), write_field(_OPCODE, b"custom-call"),
        write_field(_SHAPE, _field(instruction, _SHAPE, b"")), write_field(_TARGET, b"stripped"),
        write_field(_INSTRUCTION_ID, root),
    ])


def _field(message: bytes, wanted: int, default: Any) -> Any:
    """Return the first value of a field."""
    for number, value, start, end in spans(message):
        if number == wanted:
            return message[start:end] if value is None else value
    return default
