"""Random numbers that several loops read, such as the mask of a dropout: forward and backward.

XLA fuses the cipher of a large array into the loop that reads it. Where several loops read the numbers, each would
compute all of them again. A call that XLA must not inline ends the fusion: the numbers are computed once and stored.
The bits are the same.
"""

from __future__ import annotations

import heapq
import re

from xtrace._src.stablehlo.builder import FunctionBuilder, ModuleBuilder, Value
from xtrace._src.stablehlo.repeated_calls import is_small

_ATTRIBUTES = '{mhlo.frontend_attributes = {inlineable = "false"}}'
# Operations that XLA computes in the loop that reads their result.
_FUSED = frozenset((
    "add", "subtract", "multiply", "divide", "remainder", "power", "atan2", "maximum", "minimum", "and", "or", "xor",
    "not", "negate", "abs", "sign", "floor", "ceil", "round_nearest_afz", "round_nearest_even", "shift_left",
    "shift_right_logical", "shift_right_arithmetic", "select", "compare", "clamp", "convert", "bitcast_convert",
    "reshape", "broadcast_in_dim", "transpose", "slice", "pad", "reverse", "concatenate", "exponential",
    "exponential_minus_one", "log", "log_plus_one", "sqrt", "rsqrt", "cbrt", "sine", "cosine", "tan", "tanh",
    "logistic", "is_finite", "real", "imag", "complex", "erf_inv", "erf", "erfc",
))

_DEFINED = re.compile(r'\s*%(\w+)(?::\d+)? = "?(?:stablehlo|chlo|func)\.(\w+)')
_NAMES = re.compile(r"%(\w+)")
_TYPES = re.compile(r"tensor<(?:[^<>]|<[^<>]*>)*>")


def store_shared_draws(module: ModuleBuilder, name: str) -> None:
    """Store the values made of calls of the functions `name`, ``name_1`` and so on that several loops read."""
    call = f"func.call @{name}"
    for function in list(module.functions):
        if any(call in line for line in function.lines):
            for i, operation in enumerate(function.lines):
                if "\n" in operation and call in operation:
                    # An operation with regions, such as a loop.
                    inner = operation.split("\n")
                    _store_in(module, inner, call)
                    function.lines[i] = "\n".join(inner)
            for place in _store_in(module, function.lines, call):
                function.places.insert(place, function.places[place])


def _store_in(module: ModuleBuilder, lines: list[str], call: str) -> list[int]:
    """Store values in a list of operations, and return the places behind which lines are new, the last ones first."""
    # To store small arrays takes longer than to compute them again.
    calls = [i for i, line in enumerate(lines) if call in line and "\n" not in line and not is_small(line)]
    uses = _find_uses(lines) if calls else {}
    added: dict[int, str] = {}
    for i in calls:
        place = _find_last_origin(lines, i, uses)
        if place != i and place not in added:  # Several calls may lead to one value.
            _store(module, lines, place, uses, added)
    places = sorted(added, reverse=True)
    for place in places:
        lines.insert(place + 1, added[place])
    return places


def _find_uses(lines: list[str]) -> dict[str, list[int]]:
    """Return the numbers of the lines that read each value."""
    uses: dict[str, list[int]] = {}
    for i, line in enumerate(lines):
        read = _NAMES.findall(line[line.find(" = ") + 1 :])
        for value in dict.fromkeys(read):
            uses.setdefault(value, []).append(i)
    return uses


def _store(
    module: ModuleBuilder, lines: list[str], place: int, uses: dict[str, list[int]], added: dict[int, str]
) -> None:
    """Let the readers of the value of line `place` read a stored one, if several loops do; add the line to `added`."""
    value, _ = _read_definition(lines[place])
    (*_, kind) = _TYPES.findall(lines[place])
    if "?" in kind or len(_find_loops(lines, value, uses)) < 2:
        return
    stored = f"%stored{value}"
    read = re.compile(rf"%{value}\b")
    for i in uses[value]:
        lines[i] = read.sub(stored, lines[i])
    call = f"func.call @{_add_identity(module, kind)}(%{value}) {_ATTRIBUTES}"
    added[place] = f"{stored} = {call} : ({kind}) -> {kind}"


def _find_last_origin(lines: list[str], start: int, uses: dict[str, list[int]]) -> int:
    """Return the line of the last value, before one leaves its loop, from which all later ones come."""
    value, _ = _read_definition(lines[start])
    # The values that lines still to come read, with the number of these lines.
    live, waiting, last = {value: len(uses.get(value, ()))}, list(uses.get(value, ())), start
    while waiting:
        place = heapq.heappop(waiting)
        value, operation = _read_definition(lines[place])
        if operation not in _FUSED:
            break
        for name in dict.fromkeys(_NAMES.findall(lines[place])):
            if name in live:
                live[name] -= 1
                if not live[name]:
                    del live[name]
        if readers := uses.get(value):
            live[value] = len(readers)
            for i in readers:
                if i not in waiting:
                    heapq.heappush(waiting, i)
        if list(live) == [value]:
            last = place
    return last


def _read_definition(line: str) -> tuple[str, str]:
    """Return the value that a line defines and the operation; empty strings for other lines."""
    defined = _DEFINED.match(line)
    return (defined[1], defined[2]) if defined is not None else ("", "")


def _find_loops(lines: list[str], value: str, uses: dict[str, list[int]]) -> set[str]:
    """Return the values that loops compute from `value`: each is read by an operation that XLA does not fuse."""
    loops, seen, waiting = set(), {value}, [value]
    while waiting:
        current = waiting.pop()
        for i in uses.get(current, ()):
            defined, operation = _read_definition(lines[i])
            if operation not in _FUSED:
                loops.add(current)
            elif defined not in seen:
                seen.add(defined)
                waiting.append(defined)
    return loops


class _Argument(Value):
    """An argument whose type is known as text."""

    __slots__ = ("text",)

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text

    @property
    def type(self) -> str:
        return self.text


def _add_identity(module: ModuleBuilder, kind: str) -> str:
    """Return the name of a private function that returns its argument, of the type `kind`."""
    function = FunctionBuilder(module, "store", "")
    function.arguments, function.argument_attributes = [_Argument("%arg0", kind)], [""]
    function.lines, function.places = [f"return %arg0 : {kind}"], [None]
    function.result_types, function.result_attributes = [kind], [""]
    return module.add_private(function, "store")
