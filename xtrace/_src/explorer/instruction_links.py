"""Links from the instructions of an optimised program to equations and arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from xtrace._src.explorer.origins import ORIGINS, Origin
from xtrace._src.xla.hlo.hlo_frames import Frames
from xtrace._src.xla.hlo.hlo_text import PrintedComputation, PrintedInstruction
from xtrace._src.xla.source_locations import Location

# The evidence of a link, strongest first.
METADATA, ARGUMENT, FUSED, CALLER, USERS, OPERANDS, NONE = (
    "metadata", "argument", "fused", "caller", "users", "operands", "none"
)
# Instructions with the origins of their users.
_SERVING = frozenset(("constant", "broadcast", "iota", "bitcast", "copy", "partition-id", "replica-id"))
_MAX_ORIGINS = 64


class Link(NamedTuple):
    """The origins of an instruction, and the evidence for them."""

    origins: tuple[int, ...]
    how: str


def link_instructions(
    computations: Sequence[PrintedComputation], frames: Frames, origins: Sequence[Origin],
    places: Sequence[Sequence[int]],
) -> dict[tuple[str, str], Link]:
    """Return the link of each instruction, by the names of its computation and of the instruction.

    places: the origins of each numbered place. A program compiled without numbers is linked by the names of operations
    and their expressions in the user's code.
    """
    by_expression = _group_by_expression(origins)
    arguments = {origin.name: i for i, origin in enumerate(origins) if origin.kind == "argument"}
    links: dict[tuple[str, str], Link] = {}
    for computation in computations:
        for instruction in computation.instructions.values():
            own = _find_own_origins(instruction, frames, places, by_expression)
            if own:
                links[computation.name, instruction.name] = Link(own, METADATA)
            elif computation.is_entry and instruction.opcode == "parameter" and instruction.operation in arguments:
                links[computation.name, instruction.name] = Link((arguments[instruction.operation],), ARGUMENT)
    _LinkPropagation(computations, links).propagate()
    return links


def _find_own_origins(
    instruction: PrintedInstruction, frames: Frames, places: Sequence[Sequence[int]],
    by_expression: dict[tuple[object, ...], list[int]],
) -> tuple[int, ...]:
    stack = frames.stack(instruction.attributes) if "metadata={" in instruction.attributes else []
    for frame in stack:
        if frame.file == ORIGINS and 0 < frame.line <= len(places):
            return tuple(places[frame.line - 1])
    if not stack:
        return ()
    frame, name = stack[0], instruction.operation.rpartition("/")[2]
    place = _expression_key(frame)
    return tuple(by_expression.get((name, *place)) or by_expression.get(place) or ())


def _group_by_expression(origins: Sequence[Origin]) -> dict[tuple[object, ...], list[int]]:
    """Return origins by their name and expression, and by their expression alone."""
    by_expression: dict[tuple[object, ...], list[int]] = {}
    for i, origin in enumerate(origins):
        if origin.span is not None and origin.kind != "argument":
            place = _expression_key(origin.span)
            # The first origin represents all with this name.
            by_expression.setdefault((origin.name, *place), [i])
            alike = by_expression.setdefault(place, [])
            if all(origins[other].name != origin.name for other in alike):
                alike.append(i)
    return by_expression


def _expression_key(at: Location) -> tuple[object, ...]:
    """Return a key of an expression, without its function: XLA may change the function's name."""
    return at.file, at.line, at.end_line, at.column, at.end_column


class _LinkPropagation:
    """Links instructions without metadata by their callers, users and operands."""

    def __init__(self, computations: Sequence[PrintedComputation], links: dict[tuple[str, str], Link]) -> None:
        self.computations, self.links = computations, links
        self.by_name = {c.name: c for c in computations}
        self.callers: dict[str, list[tuple[str, PrintedInstruction]]] = {}
        for computation in computations:
            for instruction in computation.instructions.values():
                for called in instruction.called:
                    self.callers.setdefault(called, []).append((computation.name, instruction))
        self.users = {c.name: _find_users(c) for c in computations}

    def propagate(self) -> None:
        """Apply the rules in the order of their strength until no instruction gains a link."""
        self._merge_fused()
        ways: tuple[
            tuple[str, Callable[[str, PrintedInstruction], set[int]], Callable[[PrintedInstruction], bool]], ...
        ] = (
            (CALLER, self._find_callers_origins, lambda i: i.opcode == "parameter"),
            (USERS, self._find_users_origins, lambda i: i.opcode in _SERVING),
            (OPERANDS, self._find_operands_origins, lambda i: i.opcode != "parameter"),
            (USERS, self._find_users_origins, lambda i: True),
            (CALLER, self._find_callers_origins, lambda i: True),
        )
        left = [
            (c.name, i) for c in reversed(self.computations) for i in reversed(c.instructions.values())
            if (c.name, i.name) not in self.links
        ]
        while left:
            count = len(left)
            for how, find, applies in ways:
                left = self._link(left, how, find, applies)
                if len(left) < count:
                    break
            else:
                break
        for computation, instruction in left:
            self.links[computation, instruction.name] = Link((), NONE)

    def _link(
        self, left: list[tuple[str, PrintedInstruction]], how: str, find: Callable[[str, PrintedInstruction], set[int]],
        applies: Callable[[PrintedInstruction], bool],
    ) -> list[tuple[str, PrintedInstruction]]:
        rest = []
        # Origins of operands spread forwards through the text, origins of users backwards.
        for computation, instruction in reversed(left) if how == OPERANDS else left:
            origins = find(computation, instruction) if applies(instruction) else set()
            if origins:
                self.links[computation, instruction.name] = Link(tuple(sorted(origins)), how)
            else:
                rest.append((computation, instruction))
        return rest[::-1] if how == OPERANDS else rest

    def _merge_fused(self) -> None:
        """Add to each fusion the origins of the instructions inside of it."""
        for computation in self.computations:
            for instruction in computation.instructions.values():
                if instruction.opcode != "fusion" or not instruction.called:
                    continue
                key = (computation.name, instruction.name)
                own = self.links.get(key)
                origins = set(own.origins) if own is not None else set()
                inner = self.by_name.get(instruction.called[0])
                for each in inner.instructions if inner is not None else ():
                    link = self.links.get((instruction.called[0], each))
                    origins.update(link.origins if link is not None else ())
                if origins:
                    self.links[key] = Link(tuple(sorted(origins)), own.how if own is not None else FUSED)

    def _union(self, keys: Sequence[tuple[str, str]]) -> set[int]:
        origins: set[int] = set()
        for key in keys:
            link = self.links.get(key)
            if link is not None and len(origins) < _MAX_ORIGINS:
                origins.update(link.origins)
        return origins

    def _find_callers_origins(self, computation: str, instruction: PrintedInstruction) -> set[int]:
        callers = self.callers.get(computation, [])
        if instruction.opcode == "parameter":
            number = _parameter_number(instruction)
            origins = self._union([
                (caller, call.operands[number]) for caller, call in callers
                if call.opcode in ("fusion", "call") and number < len(call.operands)
            ])
            if origins:
                return origins
        return self._union([(caller, call.name) for caller, call in callers])

    def _find_users_origins(self, computation: str, instruction: PrintedInstruction) -> set[int]:
        return self._union([(computation, name) for name in self.users[computation].get(instruction.name, ())])

    def _find_operands_origins(self, computation: str, instruction: PrintedInstruction) -> set[int]:
        return self._union([(computation, name) for name in instruction.operands])


def _find_users(computation: PrintedComputation) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for instruction in computation.instructions.values():
        for operand in instruction.operands:
            users.setdefault(operand, []).append(instruction.name)
    return users


def _parameter_number(instruction: PrintedInstruction) -> int:
    start = instruction.text.find(" parameter(")
    digits = instruction.text[start + 11 : instruction.text.find(")", start)] if start >= 0 else ""
    return int(digits) if digits.isdigit() else 0
