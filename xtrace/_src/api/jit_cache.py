"""The options of `jit`, and the programs that it remembers for a function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xtrace._src.api import dispatch
from xtrace._src.api.caches import OnceTable
from xtrace._src.api.call_arguments import Static
from xtrace._src.api.compilation import run_program
from xtrace._src.api.device_assignment import NO_SHARDINGS, ShardingTree
from xtrace._src.api.tracing import TracedFunction
from xtrace._src.core import pytree
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.compiler_choices import Inline
from xtrace._src.runtime.execute import Program

_lock = threading.RLock()


class Options(NamedTuple):
    """What `jit` was asked for; functions jitted twice with the same options share one cache."""

    static_numbers: tuple[int, ...]
    static_names: tuple[str, ...]
    donated_numbers: tuple[int, ...]
    donated_names: tuple[str, ...]
    keep_unused: bool
    device: Any
    inline: bool | Inline
    compiler_options: tuple[tuple[str, Any], ...]
    in_shardings: ShardingTree = NO_SHARDINGS
    out_shardings: ShardingTree = NO_SHARDINGS

    @property
    def has_shardings(self) -> bool:
        """Whether shardings of arguments or results are given."""
        return not (self.in_shardings.is_empty and self.out_shardings.is_empty)


class Compiled:
    """A compiled program and the tree its results come in; `run` is the program, with the checks asked for.

    seconds: how long tracing, lowering and compiling took. calls: how often it was called with each combination of
    Python types of the leaves; not counted any more where there is specialised code.
    """

    __slots__ = ("program", "run", "out_tree", "names", "calls", "specialised", "seconds", "traced")

    def __init__(
        self, program: Program | None, run: Callable[..., Any], traced: TracedFunction,
        seconds: tuple[float, float, float],
    ) -> None:
        self.program, self.run, self.seconds, self.traced = program, run, seconds, traced
        self.out_tree, self.names = traced.out_tree, traced.debug_info.argument_paths
        self.calls: dict[tuple[type, ...], int] = {}
        self.specialised = False

    def __call__(self, leaves: Sequence[Any]) -> Any:
        return pytree.tree_unflatten(self.out_tree, run_program(self.run, leaves, self.names, self.traced))

    def count_call(self, leaves: Sequence[Any]) -> int:
        """Return how often it has been called with leaves of these Python types, this time included."""
        kinds = tuple([type(x) for x in leaves])
        calls = self.calls[kinds] = self.calls.get(kinds, 0) + 1
        return calls

    def forget_calls(self) -> None:
        """Count from the start: a specialised call has failed."""
        self.calls.clear()
        self.specialised = False


class Cache:
    """What is known of one function under one set of options."""

    __slots__ = (
        "traced", "compiled", "call_shapes", "last_signature", "misses", "cleared", "warned", "on_nodes", "__weakref__"
    )

    def __init__(self) -> None:
        self.traced: OnceTable[TracedFunction] = OnceTable()
        self.compiled: OnceTable[Compiled] = OnceTable()
        self.call_shapes = dispatch.CallShapes()
        self.last_signature: tuple[Static, Any, list[ShapedArray]] | None = None
        # How often a program was compiled since the start or since `clear`, and whether somebody was warned of that.
        self.misses = 0
        self.cleared = self.warned = False
        # The function of the arrays of values of types that users define, jitted, once there was such a value.
        self.on_nodes: Any = None

    def hits(self) -> int:
        """Return how many calls found their program, of those that are counted."""
        return sum(max(sum(c.calls.values()) - 1, 0) for c in list(self.compiled.entries.values()))

    def count_miss(self) -> int:
        """Note that a program was compiled, and return how many were."""
        with _lock:
            self.misses += 1
            return self.misses

    def clear(self) -> None:
        """Forget the programs and the traces."""
        self.cleared = bool(self.traced.entries)
        self.misses = 0
        self.traced.clear()
        self.compiled.clear()
        self.call_shapes.clear()
        self.last_signature = None
