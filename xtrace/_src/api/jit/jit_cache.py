"""The options of `jit`, and the cache of a jitted function: its traces, programs and specialised code."""

from __future__ import annotations

import operator
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from xtrace._late_imports import late_modules
from xtrace._src.api.compilation.compilation import Compilation, run_program
from xtrace._src.api.compilation.sharding_assignment import NO_SHARDINGS, ShardingTree
from xtrace._src.api.function_caches import OnceTable, all_tables, count_repetitions
from xtrace._src.api.jit import dispatch
from xtrace._src.api.jit.static_arguments import Static
from xtrace._src.api.tracing import TracedFunction
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.callables import make_debug_info
from xtrace._src.core.diagnostics.positions import is_internal
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.settings import config
from xtrace._src.core.settings.compiler_choices import Inline
from xtrace._src.core.tables import Table, clear_tables
from xtrace._src.core.trace import Tracer, axis_environment, current_trace
from xtrace._src.runtime.execute import Assignment, Program
from xtrace._src.xla.pytree_registry import PyTreeDef

with late_modules(globals()):
    from xtrace._src.api.reports import cache_miss_reports

_lock = threading.RLock()
# The number of programs of one function that `Cache.programs` keeps.
_MOST_PROGRAMS = 64
_CONSTANT = "dense<[^>]*>"


class Options(NamedTuple):
    """The arguments of `jit`; a function jitted twice with the same options has one cache."""

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
    compilation: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether nothing is asked for but a program: no device, donation, sharding or option of the compiler."""
        asked = self.donated_numbers or self.donated_names or self.device or self.compiler_options or self.compilation
        return not (asked or self.has_shardings)

    @property
    def has_shardings(self) -> bool:
        """Whether shardings of arguments or results are given."""
        return not (self.in_shardings.is_empty and self.out_shardings.is_empty)


class Prepared(NamedTuple):
    """A signature that is traced and lowered: its key, and the checks that wrap its program.

    seconds: the time of lowering.
    """

    key: tuple[Any, ...]
    traced: TracedFunction
    compilation: Compilation
    checks: Sequence[Callable[..., Any]]
    seconds: float


class CompiledCall:
    """A compiled program and the structure of its results; `run` is the program with its checks.

    seconds: the times of tracing, lowering and compiling, the last two None for a program that was compiled before,
    by ``f.lower(...).compile()``. calls: the number of calls for each combination of Python
    types of the leaves; specialised code does not count calls. upgrade: the task whose result will replace the
    program, or None; `earlier` is the number of calls before the replacement.
    """

    __slots__ = (
        "program", "run", "out_tree", "names", "calls", "specialised", "seconds", "traced", "upgrade", "earlier"
    )

    def __init__(
        self, program: Program | None, run: Callable[..., Any], traced: TracedFunction,
        seconds: tuple[float, float | None, float | None], upgrade: Any = None,
    ) -> None:
        self.upgrade, self.earlier = upgrade, 0
        self.program, self.run, self.seconds, self.traced = program, run, seconds, traced
        self.out_tree, self.names = traced.out_tree, traced.debug_info.argument_paths
        self.calls: dict[tuple[type, ...], int] = {}
        self.specialised = False

    def __call__(self, leaves: Sequence[Any]) -> Any:
        return pytree.tree_unflatten(self.out_tree, run_program(self.run, leaves, self.names, self.traced))

    def is_due(self, calls: int) -> bool:
        """Whether leaves of these types, called `calls` times, get specialised code now.

        A call with specialised code comes here after eviction of the code, or with keywords in another order.
        """
        before = dispatch.CALLS_BEFORE_SPECIALISING
        return calls == before or (self.specialised and not calls % before)

    def use_full_program(self) -> None:
        """Run the fully compiled program from now on, if it is ready; warn once if its compilation has failed."""
        with _lock:
            task = self.upgrade
            if task is None or not task.is_done():
                return
            if task.result is not None:
                self.earlier += sum(self.calls.values())
                self.calls = {}
                self.program = self.run = task.result
            # Last: only a program without an upgrade gets specialised code.
            self.upgrade = None
        if task.error is not None:
            warn_user(
                f"{self.traced.debug_info.function} was compiled quickly, and stays so: its full compilation failed "
                f"with {type(task.error).__name__}: {task.error}"
            )

    def wait_for_compilation(self, timeout: float | None = None) -> bool:
        """Wait for the fully compiled program, and use it; False if this takes longer than `timeout` seconds."""
        task = self.upgrade
        if task is not None and not task.wait(timeout):
            return False
        self.use_full_program()
        return True

    def warm_up(self, leaves: Sequence[Any]) -> None:
        """Do nothing: the program is compiled."""

    def forget_calls(self) -> None:
        """Count from zero again, after a failure of specialised code."""
        self.calls.clear()
        self.specialised = False


class Cache:
    """The traces, programs and specialised code of one function under one set of options."""

    __slots__ = (
        "traced", "compiled", "programs", "call_shapes", "last_signature", "misses", "cleared", "warned",
        "jitted_on_nodes", "__weakref__",
    )

    def __init__(self) -> None:
        self.traced: OnceTable[TracedFunction] = OnceTable()
        self.compiled: OnceTable[CompiledCall] = OnceTable()
        # Fully compiled programs, which calls and `Lowered.compile` share.
        self.programs = Table(_MOST_PROGRAMS, nested=True)
        self.call_shapes = dispatch.CallShapes()
        self.last_signature: tuple[Static, Any, list[ShapedArray]] | None = None
        # The number of compilations since the start or the last `clear`, and whether a warning was given about it.
        self.misses = 0
        self.cleared = self.warned = False
        # The jitted function on the arrays of high values; made at the first call with such a value.
        self.jitted_on_nodes: Any = None

    def find_program(
        self, traced: TracedFunction, assignment: Assignment, options: Iterable[tuple[str, Any]]
    ) -> Program | None:
        """Return the fully compiled program of a trace on these devices with these options; None if there is none.

        A setting that writes compiled programs to files makes each compilation new.
        """
        if config.dump_ir_to.value:
            return None
        program = self.programs.get(_program_key(traced, assignment, options))
        return None if program is None else program.with_commitment(assignment.committed)

    def compile(
        self, traced: TracedFunction, assignment: Assignment, options: Iterable[tuple[str, Any]],
        make: Callable[[], Program],
    ) -> Program:
        """Return the program that `find_program` returns, or else keep and return the program of ``make()``."""
        program = self.find_program(traced, assignment, options)
        if program is None:
            program = make()
            self.programs.remember(_program_key(traced, assignment, options), program)
        return program

    def __reduce__(self) -> Any:
        return operator.attrgetter("cache"), (self.call_shapes.jitted(),)

    def count_programs(self) -> int:
        """Return the number of compiled programs."""
        return len(self.compiled.entries)

    def hits(self) -> int:
        """Return the number of counted calls that found their program."""
        return sum(
            max(c.earlier + sum(c.calls.values()) - (c.seconds[2] is not None), 0)
            for c in list(self.compiled.entries.values())
        )

    def find_trace(
        self, static: Static, in_tree: PyTreeDef, avals: Sequence[ShapedArray]
    ) -> tuple[tuple[Any, ...], bool]:
        """Return the key of the trace for a signature, and whether it has or had a trace.

        A trace that closes over a tracer of an ended trace is removed here.
        """
        trace = current_trace.get()
        axes = axis_environment(trace)
        key = ((config.cache_key(), axes) if axes else config.cache_key(), static, in_tree, *avals)
        known = self.traced.entries.get(key)
        if known is not None and any(isinstance(c, Tracer) for c in known.consts):
            around = list(trace.enclosing())
            if any(isinstance(c, Tracer) and c.owner not in around for c in known.consts):
                self.traced.entries.pop(key, None)
        self.last_signature = (static, in_tree, list(avals))
        return key, known is not None

    def explain_miss(self, caches: Iterable[object], forgotten: bool) -> str | None:
        """Return a phrase for the reason that no earlier trace fits, or None.

        caches: the function's caches under all options. forgotten: whether the signature had a trace that was removed.
        """
        if forgotten:
            return "the function closes over a traced value, and the function around that was traced again"
        if self.cleared:
            return "its caches were cleared since it was last called"
        if any(c is not self and c.traced.entries for c in caches if isinstance(c, Cache)):
            return "it was called through a jit with other options, such as static arguments or donation, before"
        return None

    def count_compilation(self, function: Callable[..., Any], text: str, key: tuple[Any, ...]) -> None:
        """Count a program compiled from `text` for `key`; warn once about too many."""
        with _lock:
            self.misses += 1
            number = self.misses
        limit = config.recompilation_limit.value
        if not limit or self.warned or 1 < number <= limit:
            return
        info = make_debug_info("jit", function)
        if info.file is None or is_internal(info.file):
            return
        if number == 1:
            # Functions that differ in constants only count as one.
            again = count_repetitions((info.file, info.line, info.function), hash(re.sub(_CONSTANT, "", text)))
            if again == limit + 1:
                cache_miss_reports.warn_of_new_objects(function, again)
            return
        # If most programs are called again, many programs are intended.
        hits = self.hits()
        if hits < number:
            self.warned = True
            cache_miss_reports.warn_of_recompilation(function, [*self.compiled.entries, key], number, hits)

    def wait_for_compilation(self, timeout: float | None = None) -> bool:
        """Wait until all programs are fully compiled; the next calls use them. False after `timeout` seconds.

        Only functions with ``jit(f, compilation="tiered")`` have something to wait for.
        """
        end = None if timeout is None else time.monotonic() + timeout
        waits: list[Callable[[float | None], bool]] = [
            c.wait_for_compilation for c in list(self.compiled.entries.values())
        ]
        if self.jitted_on_nodes is not None:
            waits.append(self.jitted_on_nodes.wait_for_compilation)
        return all(wait(None if end is None else max(0.0, end - time.monotonic())) for wait in waits)

    def clear(self) -> None:
        """Remove the programs and the traces."""
        self.cleared = bool(self.traced.entries)
        self.misses = 0
        self.traced.clear()
        self.compiled.clear()
        self.programs.clear()
        self.call_shapes.clear()
        self.last_signature = None


def _program_key(traced: TracedFunction, assignment: Assignment, options: Iterable[tuple[str, Any]]) -> Any:
    # Whether the inputs were put on their device explicitly is no part of the executable.
    return config.cache_key(), traced, assignment._replace(committed=False), tuple(options)


def clear_caches() -> None:
    """Remove every compiled program, every trace and all other tables that live between calls.

    The next call of a function traces and compiles it again. Arrays are not affected.

    Example:
        >>> xtrace.clear_caches()
    """
    for table in all_tables():
        for cache in list(table.values()):
            if isinstance(cache, (Cache, OnceTable)):
                cache.clear()
    clear_tables()
