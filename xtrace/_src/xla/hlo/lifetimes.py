"""The lifetimes of values in a compiled program: their memory, and the first and the last step that needs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xtrace._src.xla.hlo.buffer_assignment import BufferAssignment, Slot
from xtrace._src.xla.hlo.hlo_programs import Computation, HloProgram, Instruction, Shape
from xtrace._src.xla.source_locations import Place

ARGUMENT, LITERAL, RESULT, TEMPORARY = "argument", "literal", "result", "temporary"

# The allocations of values if XLA's assignment is not known.
_OF_ITS_OWN, _OF_A_RESULT = -1, -2

# Instructions that only rename existing values.
_NAMES_ONLY = frozenset((
    "tuple", "get-tuple-element", "bitcast", "optimization-barrier", "add-dependency", "domain",
))
# Instructions whose result overwrites the first operand, if no later instruction needs that.
_UPDATES = frozenset(("dynamic-update-slice", "scatter"))
_ELEMENTWISE = frozenset((
    "abs", "add", "and", "ceil", "clamp", "compare", "convert", "cosine", "divide", "exponential",
    "exponential-minus-one", "floor", "is-finite", "log", "log-plus-one", "logistic", "maximum", "minimum", "multiply",
    "negate", "not", "or", "power", "remainder", "round-nearest-afz", "round-nearest-even", "rsqrt", "select",
    "shift-left", "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "sqrt", "subtract", "tan", "tanh",
    "xor",
))


class Value:
    """An array that a program keeps in memory from its step `first` to its step `last`.

    instruction: the instruction that made it. parameter, results: its number among the parameters, and its positions
    among the results. slot: its memory. Values with the same slot follow one another.
    """

    __slots__ = ("instruction", "shape", "kind", "parameter", "results", "first", "last", "slot")

    def __init__(self, instruction: Instruction, shape: Shape, step: int, slot: Slot) -> None:
        self.instruction, self.shape, self.kind, self.slot = instruction, shape, TEMPORARY, slot
        self.parameter: int | None = None
        self.results: tuple[int, ...] = ()
        self.first = self.last = step


class Lifetimes:
    """The values of a program, and its steps: the instructions in execution order.

    An inner computation occurs once, at the instruction that calls it. `places` are the users' lines of the steps,
    `temporaries` the bytes of temporaries in each step, without those in the memory of results.
    """

    def __init__(self, program: HloProgram, assignment: BufferAssignment | None) -> None:
        self._program, self._assignment = program, assignment
        self.steps: list[Instruction] = []
        self.places: list[Place | None] = []
        self._values: list[Value] = []
        # Values that are one array, such as the state of a loop, lead to the first of them.
        self._leads_to: list[int] = []
        entry = program.computations[program.entry]
        results = self._walk(entry, None)
        self._find_kinds(results)
        self.values = [value for number, value in enumerate(self._values) if self._leads_to[number] == number]
        if assignment is None:
            self._place_in_results()
        self.temporaries = self._count_temporaries()

    @property
    def fullest(self) -> int:
        """The step in which the temporaries take the most memory."""
        return max(range(len(self.steps)), key=self.temporaries.__getitem__, default=0)

    def _walk(self, computation: Computation, parameters: Sequence[list[int]] | None) -> list[int]:
        """Record the steps of a computation; `parameters` and the result are numbers of values."""
        known: dict[int, list[int]] = {}
        by_number = {one.number: one for one in computation.instructions}
        last_use = {n: i for i, one in enumerate(computation.instructions) for n in one.operands}
        for position, instruction in enumerate(computation.instructions):
            step = len(self.steps)
            self.steps.append(instruction)
            self.places.append(instruction.place or (self.places[-1] if self.places else None))
            operands = [known[n] for n in instruction.operands]
            opcode = instruction.opcode
            if opcode == "parameter" and parameters is not None:
                known[instruction.number] = parameters[instruction.position]
                continue
            if opcode in _NAMES_ONLY:
                known[instruction.number] = _find_renamed_values(instruction, operands, by_number)
                continue
            self._use(operands, step)
            if opcode in ("while", "conditional", "call") and instruction.called:
                known[instruction.number] = self._call(instruction, operands)
                self._use([*operands, known[instruction.number]], len(self.steps) - 1)
            elif opcode.endswith("-done"):
                known[instruction.number] = self._find_finished_values(instruction, operands[0])
            else:
                dying = [
                    known[n] for n in instruction.operands
                    if last_use[n] == position and n != computation.root
                ]
                known[instruction.number] = self._make(instruction, operands, dying, step)
        return known[computation.root]

    def _use(self, operands: Iterable[Iterable[int]], step: int) -> None:
        for numbers in operands:
            for number in numbers:
                self._values[self._find_leader(number)].last = step

    def _call(self, instruction: Instruction, operands: list[list[int]]) -> list[int]:
        """Record the computations of a loop, a conditional or a call; their results are joined with its own."""
        computations = [self._program.computations[number] for number in instruction.called]
        if instruction.opcode == "while":
            body, condition = computations
            self._walk(condition, operands)
            results = self._walk(body, operands)
            self._join(operands[0], results)
            return operands[0]
        if instruction.opcode == "call":
            return self._walk(computations[0], operands)
        branches = [self._walk(one, [operand]) for one, operand in zip(computations, operands[1:], strict=False)]
        for branch in branches[1:]:
            self._join(branches[0], branch)
        return branches[0]

    def _find_finished_values(self, instruction: Instruction, started: list[int]) -> list[int]:
        """Return the values of a finished operation: the part of the started one that has its type."""
        wanted = [leaf.text for leaf in instruction.shape.leaves]
        texts = [self._values[number].shape.text for number in started]
        # Operands come before results, but a copy has its result first.
        starts = [i for i in range(len(started)) if texts[i : i + len(wanted)] == wanted]
        if not starts:
            return [number for number, _ in zip(started, wanted, strict=False)]
        first = starts[0] if instruction.opcode == "copy-done" else starts[-1]
        return started[first : first + len(wanted)]

    def _make(
        self, instruction: Instruction, operands: list[list[int]], dying: list[list[int]], step: int
    ) -> list[int]:
        """Return the numbers of an instruction's new values."""
        numbers = []
        carried = self._find_carried_operands(instruction, [number for operand in operands for number in operand])
        for leaf, (shape, path) in enumerate(zip(instruction.shape.leaves, _paths(instruction.shape), strict=True)):
            if leaf in carried:
                numbers.append(carried[leaf])
                continue
            number = len(self._values)
            value = Value(instruction, shape, step, Slot(_OF_ITS_OWN, number, shape.size))
            slot = self._assignment.slots.get((instruction.number, path)) if self._assignment is not None else None
            value.slot = slot or self._find_overwritten_slot(instruction, shape, dying) or value.slot
            if instruction.opcode == "constant":
                value.kind = LITERAL
            elif instruction.opcode == "parameter":
                value.kind, value.parameter = ARGUMENT, instruction.position
            self._values.append(value)
            self._leads_to.append(number)
            numbers.append(number)
        return numbers

    def _find_carried_operands(self, instruction: Instruction, operands: list[int]) -> dict[int, int]:
        """Return the operands that a started operation repeats in its result, by their positions in it."""
        if not instruction.opcode.endswith("-start"):
            return {}
        if instruction.opcode == "copy-start":
            return {1: operands[0]}
        texts = [leaf.text for leaf in instruction.shape.leaves]
        same = [self._values[number].shape.text for number in operands] == texts[: len(operands)]
        return dict(enumerate(operands)) if same and len(texts) > len(operands) else {}

    def _find_overwritten_slot(self, instruction: Instruction, shape: Shape, dying: list[list[int]]) -> Slot | None:
        """Return the slot of an operand that XLA overwrites with a value; None if XLA's assignment is known."""
        if self._assignment is not None:
            return None
        root = instruction
        if instruction.opcode == "fusion" and instruction.called:
            fused = self._program.computations[instruction.called[0]]
            root = next(one for one in fused.instructions if one.number == fused.root)
        if root.opcode not in _UPDATES and instruction.opcode not in _ELEMENTWISE and instruction.kind != "kLoop":
            return None
        for numbers in dying:
            values = [self._values[self._find_leader(number)] for number in numbers]
            if len(values) == 1 and values[0].kind == TEMPORARY and values[0].shape.size == shape.size > 0:
                return values[0].slot
        return None

    def _find_leader(self, number: int) -> int:
        while self._leads_to[number] != number:
            number = self._leads_to[number]
        return number

    def _join(self, one: Iterable[int], other: Iterable[int]) -> None:
        """Record that values are pairwise the same arrays."""
        for a, b in zip(one, other, strict=True):
            first, second = sorted((self._find_leader(a), self._find_leader(b)))
            if first != second:
                self._leads_to[second] = first
                kept, gone = self._values[first], self._values[second]
                kept.first, kept.last = min(kept.first, gone.first), max(kept.last, gone.last)

    def _find_kinds(self, results: Sequence[int]) -> None:
        """Set the kinds of arguments and results, and extend their lifetimes."""
        end = max(len(self.steps) - 1, 0)
        parameters = {value.parameter: value for value in self._values if value.kind == ARGUMENT}
        donated = {parameters[n].parameter for n in self._program.donated.values() if n in parameters}
        for value in parameters.values():
            value.first = 0
            if value.parameter not in donated:
                value.last = end
        for position, number in enumerate(results):
            value = self._values[self._find_leader(number)]
            value.results += (position,)
            value.last = end
            if value.kind == TEMPORARY:
                value.kind = RESULT
            taken = parameters.get(self._program.donated.get(position, -1))
            if taken is not None:
                value.slot = taken.slot

    def _place_in_results(self) -> None:
        """Place temporaries in the memory of later results, the largest first, as XLA does."""
        results = [value for value in self.values if value.kind == RESULT and value.shape.space == 0]
        parameters = {value.parameter: value for value in self.values if value.kind == ARGUMENT}
        donors = [{self._program.donated[i] for i in one.results if i in self._program.donated} for one in results]
        held: dict[Slot, list[Value]] = {}
        for value in self.values:
            if value.kind == TEMPORARY and value.shape.space == 0:
                held.setdefault(value.slot, []).append(value)
        taken = [[result, *[parameters[n] for n in numbers]] for result, numbers in zip(results, donors, strict=True)]
        for slot, values in sorted(held.items(), key=lambda item: -item[0].size):
            for result, others in zip(results, taken, strict=True):
                if slot.size <= result.shape.size and not _meet(values, others):
                    others += values
                    for value in values:
                        value.slot = Slot(_OF_A_RESULT, slot.offset, slot.size)
                    break

    def temporaries_in(self, step: int) -> list[Value]:
        """Return the temporaries in a step; for several in one slot, the last."""
        alive = [v for v in self.values if v.first <= step <= v.last and self.is_temporary(v)]
        return list({value.slot: value for value in sorted(alive, key=lambda v: v.first)}.values())

    def _count_temporaries(self) -> list[int]:
        """Return the bytes of temporaries in each step; a slot counts once."""
        starts: dict[int, list[Slot]] = {}
        ends: dict[int, list[Slot]] = {}
        for value in self.values:
            if self.is_temporary(value):
                starts.setdefault(value.first, []).append(value.slot)
                ends.setdefault(value.last + 1, []).append(value.slot)
        count: dict[Slot, int] = {}
        total, totals = 0, []
        for step in range(len(self.steps)):
            for slot in starts.get(step, ()):
                count[slot] = count.get(slot, 0) + 1
                total += slot.size if count[slot] == 1 else 0
            for slot in ends.get(step, ()):
                count[slot] -= 1
                total -= slot.size if count[slot] == 0 else 0
            totals.append(total)
        return totals

    def is_temporary(self, value: Value) -> bool:
        """Whether a value takes memory of the device, outside of arguments and results, while the program runs."""
        if value.kind != TEMPORARY or value.shape.space != 0:
            return False
        if self._assignment is None:
            return value.slot.allocation != _OF_A_RESULT
        return value.slot.allocation in self._assignment.temporary


def _meet(values: Iterable[Value], others: Iterable[Value]) -> bool:
    """Whether a value and one of the others are needed in the same step."""
    return any(a.first <= b.last and b.first <= a.last for a in values for b in others)


def _find_renamed_values(
    instruction: Instruction, operands: list[list[int]], by_number: dict[int, Instruction]
) -> list[int]:
    """Return the values that an instruction renames; `operands` are the values of each operand."""
    if instruction.opcode == "tuple":
        return [number for operand in operands for number in operand]
    if instruction.opcode != "get-tuple-element":
        return operands[0]
    start = by_number[instruction.operands[0]].shape.leaf_before(instruction.position)
    return operands[0][start : start + len(instruction.shape.leaves)]


def _paths(shape: Shape) -> list[tuple[int, ...]]:
    """Return the index of each array in a shape."""
    if shape.parts is None:
        return [()]
    return [(i, *path) for i, part in enumerate(shape.parts) for path in _paths(part)]
