"""The instructions of an optimised program, read from the text of its HLO."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from xtrace._src.xla.hlo.hlo_types import ArrayType, read_array_types

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.-]+)(?: \(.*\) -> .*)? \{(?:, .*)?$")
_INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.-]+) = ")
# Most types have no parentheses; in types of tuples, parentheses are counted.
_PLAIN = re.compile(r"(\S+) ([\w-]+)\(")
_OPCODE = re.compile(r" ([\w-]+)\(")
_NAME = re.compile(r"%([\w.-]+)")
_CALLED = re.compile(
    r"\b(?:calls|to_apply|body|condition|true_computation|false_computation|select|scatter)=%?([\w.-]+)"
)
_CALLED_LISTS = re.compile(r"\b(?:branch_computations|called_computations|calls)=\{([^}]*)\}")
_OPERATION_NAME = re.compile(r'\bop_name="((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")
_METADATA = re.compile(r', metadata=\{(?:[^"{}]|"(?:[^"\\]|\\.)*"|\{[^{}]*\})*\}')


@dataclasses.dataclass(slots=True)
class PrintedInstruction:
    """An instruction in the text of HLO.

    line: the number of its line, from 0. operands, called: the names of its operands and of the computations that it
    calls. attributes: the text behind the operands. operation: the ``op_name`` in its metadata, empty without one.
    """

    line: int
    name: str
    opcode: str
    type: str
    operands: list[str]
    called: list[str]
    attributes: str
    operation: str
    is_root: bool
    text: str

    def arrays(self) -> list[ArrayType]:
        """Return the arrays of the result: one, or those of a tuple."""
        return read_array_types(self.type)


@dataclasses.dataclass(slots=True)
class PrintedComputation:
    """A computation: its name, the lines of its head and its end, and its instructions by name, in order."""

    name: str
    line: int
    is_entry: bool
    instructions: dict[str, PrintedInstruction]
    end: int = 0


def without_metadata(line: str) -> str:
    """Return a line of HLO without the metadata of its instruction: names and lines of the user's program."""
    return _METADATA.sub("", line) if "metadata={" in line else line


def read_computations(lines: list[str]) -> list[PrintedComputation]:
    """Return the computations of a module, in the order of its text."""
    return list(_read(lines))


def _read(lines: list[str]) -> Iterator[PrintedComputation]:
    current: PrintedComputation | None = None
    for number, line in enumerate(lines):
        if current is not None:
            if line.startswith("}"):
                current.end = number
                yield current
                current = None
                continue
            match = _INSTRUCTION.match(line)
            if match is not None:
                instruction = _read_instruction(number, line, match)
                if instruction is not None:
                    current.instructions[instruction.name] = instruction
        elif line.endswith("{") or ("{, " in line and not line.startswith(" ")):
            match = _COMPUTATION.match(line)
            if match is not None and not line.startswith("HloModule"):
                current = PrintedComputation(match[2], number, match[1] is not None, {})


def _read_instruction(number: int, line: str, head: re.Match[str]) -> PrintedInstruction | None:
    start = head.end()
    plain = _PLAIN.match(line, start) if line[start : start + 1] != "(" else None
    if plain is not None:
        kind, opcode, after = plain[1], plain[2], plain.end()
    else:
        end = _closing(line, start)
        match = _OPCODE.match(line, end)
        if match is None:
            return None
        kind, opcode, after = line[start:end], match[1], match.end()
    end = _closing(line, after - 1)
    operands = [] if opcode == "constant" else _NAME.findall(line, after, end)
    attributes = line[end:]
    metadata = attributes.find("metadata={")
    operation = _OPERATION_NAME.search(attributes, metadata) if metadata >= 0 else None
    called: list[str] = []
    if "=" in attributes:
        called = _CALLED.findall(attributes)
        for listed in _CALLED_LISTS.findall(attributes):
            called += [name.strip().lstrip("%") for name in listed.split(",") if name.strip()]
    return PrintedInstruction(
        number, head[2], opcode, kind, operands, called, attributes,
        _ESCAPE.sub(r"\1", operation[1]) if operation else "",
        head[1] is not None, line,
    )


_PARENTHESES = re.compile(r"[()]")


def _closing(line: str, start: int) -> int:
    """Return the place behind the parenthesis that closes the one at `start`."""
    depth = 0
    for match in _PARENTHESES.finditer(line, start):
        depth += 1 if match[0] == "(" else -1
        if not depth:
            return match.end()
    return len(line)
