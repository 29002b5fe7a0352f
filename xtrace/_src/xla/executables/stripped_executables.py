"""Serialized programs without the HLO of their machine code, which load several times faster.

XLA parses the HLO of a program that it loads, fusion by fusion, but runs the machine code only. A stripped program has
a call without a body in place of each compiled fusion, and instructions without metadata. It lacks the computations
that only fusions call, and the buffers of their values. Descriptions of a program, such as its text, are read from the
whole one.

Source: the messages of ``xla/service/hlo.proto``, and of ``xla/service/cpu/executable.proto``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xtrace._src.xla.hlo.protobuf import fields, integers, read_varint, repeated, replace_fields, spans, write_field

# The fields on the path to the HLO module: in the serialized program, in its machine code, in the module with its
# configuration.
_PROGRAM, _MODULE_AND_CONFIGURATION, _MODULE = 1, 1, 1
_COMPUTATION, _ENTRY_ID, _SCHEDULE = 3, 6, 7
_INSTRUCTION, _COMPUTATION_ID = 2, 5
_NAME, _OPCODE, _SHAPE, _METADATA, _FUSION_KIND, _TARGET, _INSTRUCTION_ID, _CALLED = 1, 2, 3, 7, 11, 28, 35, 38
_OPERANDS, _CONTROL_PREDECESSORS = 36, 37
# The schedule maps the number of a computation to the order of its instructions.
_SEQUENCE, _MAP_KEY = 1, 1
# The assignment of buffers, in the machine code: values, which instructions define; allocations, to which values are
# assigned; and the values that are alive at each allocation's peak, which only descriptions show.
_BUFFER_ASSIGNMENT = 2
_VALUE, _ALLOCATION, _PEAK = 1, 3, 5
_VALUE_ID, _DEFINED_AT, _DEFINING_INSTRUCTION = 1, 3, 4
_ASSIGNED, _ASSIGNED_VALUE = 9, 1
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

    def get_compiled_memory_stats(self) -> Any:
        """Return the sizes of the buffers of the whole program."""
        return self._whole().get_compiled_memory_stats()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.running, name)


def strip_executable(code: bytes) -> bytes | None:
    """Return a serialized CPU program without the HLO of its machine code; None for other bytes."""
    try:
        size, start = read_varint(code, 0)
        header, program = code[: start + size], code[start + size :]
        stripped = replace_fields(program, _PROGRAM, _strip_machine_code)
    except (KeyError, TypeError, ValueError):  # A number stands where bytes are expected, or names no computation.
        return None
    return header + stripped if len(stripped) < len(program) else None


def _strip_machine_code(code: bytes) -> bytes:
    instructions: set[int] = set()

    def strip_module(module: bytes) -> bytes:
        stripped = _strip_module(module)
        for computation in repeated(stripped, _COMPUTATION):
            instructions.update(_field(item, _INSTRUCTION_ID, 0) for item in repeated(computation, _INSTRUCTION))
        return stripped

    code = replace_fields(
        code, _MODULE_AND_CONFIGURATION, lambda module: replace_fields(module, _MODULE, strip_module)
    )
    return replace_fields(code, _BUFFER_ASSIGNMENT, lambda assignment: _strip_buffers(assignment, instructions))


def _strip_module(module: bytes) -> bytes:
    computations = {_field(item, _COMPUTATION_ID, 0): item for item in repeated(module, _COMPUTATION)}
    # Those that the entry calls, directly or not.
    stripped: dict[int, bytes] = {}
    pending = [_field(module, _ENTRY_ID, 0)]
    while pending:
        number = pending.pop()
        if number not in stripped:
            stripped[number] = replace_fields(computations[number], _INSTRUCTION, _strip_instruction)
            for instruction in repeated(stripped[number], _INSTRUCTION):
                pending += [called for value in repeated(instruction, _CALLED) for called in integers(value)]

    def strip_schedule(schedule: bytes) -> bytes:
        return replace_fields(schedule, _SEQUENCE, lambda item: item if _field(item, _MAP_KEY, 0) in stripped else None)

    module = replace_fields(module, _COMPUTATION, lambda item: stripped.get(_field(item, _COMPUTATION_ID, 0)))
    return replace_fields(module, _SCHEDULE, strip_schedule)


def _strip_instruction(instruction: bytes) -> bytes:
    """Return an instruction without metadata; for a compiled fusion, a call with its operands that computes nothing."""
    if _field(instruction, _FUSION_KIND, b"") not in _COMPILED_FUSIONS:
        return replace_fields(instruction, _METADATA, lambda _: None)
    kept = (_NAME, _SHAPE, _INSTRUCTION_ID, _OPERANDS, _CONTROL_PREDECESSORS)
    return b"".join([
        *(write_field(number, value) for number, value in fields(instruction) if number in kept),
        write_field(_OPCODE, b"custom-call"), write_field(_TARGET, b"stripped"),
    ])


def _strip_buffers(assignment: bytes, instructions: set[int]) -> bytes:
    """Return an assignment of buffers without the values of other instructions; all allocations keep their numbers."""
    values = {
        _field(value, _VALUE_ID, 0) for value in repeated(assignment, _VALUE)
        if _field(_field(value, _DEFINED_AT, b""), _DEFINING_INSTRUCTION, 0) in instructions
    }

    def select(number: int, message: bytes) -> bytes | None:
        return message if _field(message, number, 0) in values else None

    def strip_allocation(allocation: bytes) -> bytes:
        return replace_fields(allocation, _ASSIGNED, functools.partial(select, _ASSIGNED_VALUE))

    assignment = replace_fields(assignment, _VALUE, functools.partial(select, _VALUE_ID))
    assignment = replace_fields(assignment, _ALLOCATION, strip_allocation)
    return replace_fields(assignment, _PEAK, lambda _: None)


def _field(message: bytes, wanted: int, default: Any) -> Any:
    """Return the first value of a field."""
    for number, value, start, end in spans(message):
        if number == wanted:
            return message[start:end] if value is None else value
    return default
