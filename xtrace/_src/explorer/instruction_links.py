"""From which equations and arguments each instruction of an optimised program comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from xtrace._src.explorer.origins import ORIGINS, Origin
from xtrace._src.xla.hlo_frames import Frames
from xtrace._src.xla.hlo_text import PrintedComputation, PrintedInstruction
from xtrace._src.xla.source_locations import Location

# How an instruction was linked, the surest first.
METADATA, ARGUMENT, FUSED, CALLER, USERS, OPERANDS, NONE = (
    "metadata", "argument", "fused", "caller", "users", "operands", "none"
)
# Instructions that serve the ones that read them.
_SERVING = frozenset(("constant", "broadcast", "iota", "bitcast", "copy", "partition-id", "replica-id"))
_MANY = 64


class Link(NamedTuple):
    """The origins of an instruction, and how they are known."""

    origins: tuple[int, ...]
    how: str


def link_instructions(
    computations: Sequence[PrintedComputation], frames: Frames, origins: Sequence[Origin],
    places: Sequence[Sequence[int]],
) -> dict[tuple[str, str], Link]:
    """Return the link of each instruction, by the names of its computation and itself.

    places: the origins of each numbered place. A program that was compiled without numbers is linked by the names
    of operations and their expressions in the user's code.
    """
    by_expression = _by_expression(origins)
    arguments = {origin.name: i for i, origin in enumerate(origins) if origin.kind == "argument"}
    links: dict[tuple[str, str], Link] = {}
    for computation in computations:
        for instruction in computation.instructions.values():
            own = _own_origins(instruction, frames, places, by_expression)
            if own:
                links[computation.name, instruction.name] = Link(own, METADATA)
            elif computation.is_entry and instruction.opcode == "parameter" and instruction.operation in arguments:
                links[computation.name, instruction.name] = Link((arguments[instruction.operation],), ARGUMENT)
    _LinkPropagation(computations, links).propagate()
    return links


def _own_origins(
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
    place = _expression(frame)
    return tuple(by_expression.get((name, *place)) or by_expression.get(place) or ())


def _by_expression(origins: Sequence[Origin]) -> dict[tuple[object, ...], list[int]]:
    """Return origins by their name and expression, and by their expression alone."""
    by_expression: dict[tuple[object, ...], list[int]] = {}
    for i, origin in enumerate(origins):
        if origin.span is not None and origin.kind != "argument":
            place = _expression(origin.span)
            # The first one stands for all that are alike.
            by_expression.setdefault((origin.name, *place), [i])
            alike = by_expression.setdefault(place, [])
            if all(origins[other].name != origin.name for other in alike):
                alike.append(i)
    return by_expression


def _expression(at: Location) -> tuple[object, ...]:
    """Return an expression without its function, whose name XLA may write otherwise."""
    return at.file, at.line, at.end_line, at.column, at.end_column


class _LinkPropagation:
    """Gives instructions without metadata of their own the origins of those that they belong to."""

    def __init__(self, computations: Sequence[PrintedComputation], links: dict[tuple[str, str], Link]) -> None:
        self.computations, self.links = computations, links
        self.by_name = {c.name: c for c in computations}
        self.callers: dict[str, list[tuple[str, PrintedInstruction]]] = {}
        for computation in computations:
            for instruction in computation.instructions.values():
                for called in instruction.called:
                    self.callers.setdefault(called, []).append((computation.name, instruction))
        self.users = {c.name: _users(c) for c in computations}

    def propagate(self) -> None:
        """Link what the surest ways reach first, until nothing changes."""
        self._join_fused()
        ways: tuple[
            tuple[str, Callable[[str, PrintedInstruction], set[int]], Callable[[PrintedInstruction], bool]], ...
        ] = (
            (CALLER, self._of_callers, lambda i: i.opcode == "parameter"),
            (USERS, self._of_users, lambda i: i.opcode in _SERVING),
            (OPERANDS, self._of_operands, lambda i: i.opcode != "parameter"),
            (USERS, self._of_users, lambda i: True),
            (CALLER, self._of_callers, lambda i: True),
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
        # Chains of operands go forwards through the text, chains of users backwards.
        for computation, instruction in reversed(left) if how == OPERANDS else left:
            origins = find(computation, instruction) if applies(instruction) else set()
            if origins:
                self.links[computation, instruction.name] = Link(tuple(sorted(origins)), how)
            else:
                rest.append((computation, instruction))
        return rest[::-1] if how == OPERANDS else rest

    def _join_fused(self) -> None:
        """Give each fusion the origins of all instructions inside of it, besides its own."""
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
            if link is not None and len(origins) < _MANY:
                origins.update(link.origins)
        return origins

    def _of_callers(self, computation: str, instruction: PrintedInstruction) -> set[int]:
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

    def _of_users(self, computation: str, instruction: PrintedInstruction) -> set[int]:
        return self._union([(computation, name) for name in self.users[computation].get(instruction.name, ())])

    def _of_operands(self, computation: str, instruction: PrintedInstruction) -> set[int]:
        return self._union([(computation, name) for name in instruction.operands])


def _users(computation: PrintedComputation) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for instruction in computation.instructions.values():
        for operand in instruction.operands:
            users.setdefault(operand, []).append(instruction.name)
    return users


def _parameter_number(instruction: PrintedInstruction) -> int:
    start = instruction.text.find(" parameter(")
    digits = instruction.text[start + 11 : instruction.text.find(")", start)] if start >= 0 else ""
    return int(digits) if digits.isdigit() else 0
