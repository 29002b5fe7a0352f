"""Calls of compiled functions with references, on the arrays in the references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.api.jit.jit_cache import CompiledCall
from xtrace._src.api.tracing import TracedFunction
from xtrace._src.core.pytrees import pytree
from xtrace._src.ops.references.binding import check_distinct


def call_on_arrays(traced: TracedFunction, function: Callable[..., list[Any]], leaves: Sequence[Any]) -> Any:
    """Call the function of arrays that `TracedFunction.make_array_function` makes of a function with references.

    These hold the arrays that it returns for them afterwards; if it fails they keep theirs. It writes to their memory,
    unless it may fail while it runs.
    """
    donates = traced.donates_references()
    operands = [*traced.consts, *leaves]
    places = traced.locate_references()
    cells = [operands[i] for i in places]
    if len(set(map(id, cells))) != len(cells):
        closure = ["a variable of its closure"] * len(traced.consts)
        names = [*closure, *traced.debug_info.argument_paths()]
        check_distinct(operands, names, traced.debug_info.function)
    for i, cell in zip(places, cells, strict=True):
        operands[i] = cell.own() if donates else cell.array
    results = function(*operands)
    count = len(results) - len(cells)
    for cell, array in zip(cells, results[count:], strict=True):
        cell.replace(array)
    return pytree.tree_unflatten(traced.out_tree, results[:count])


class ReferenceProgram(CompiledCall):
    """A compiled function that takes references or closes over them; `function` is its function of arrays."""

    __slots__ = ("function",)

    def __init__(
        self, traced: TracedFunction, function: Callable[..., Any], seconds: tuple[float, float, float]
    ) -> None:
        super().__init__(None, function, traced, seconds)
        self.function = function

    def __call__(self, leaves: Sequence[Any]) -> Any:
        return call_on_arrays(self.traced, self.function, leaves)

    def wait_for_compilation(self, timeout: float | None = None) -> bool:
        """Wait until the function of arrays is fully compiled; False after `timeout` seconds."""
        return bool(self.function.wait_for_compilation(timeout))  # type: ignore[attr-defined]

    def warm_up(self, leaves: Sequence[Any]) -> None:
        """Compile the function of arrays for arguments or ShapeDtypeStructs."""
        operands = [*self.traced.consts, *leaves]
        for i in self.traced.locate_references():
            operands[i] = operands[i].array
        self.function.warm_up(*operands)  # type: ignore[attr-defined]
