"""Tiered compilation, first with little optimisation and then fully by a background thread; and parallel compilation.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from xtrace._src.api.compilation.compilation import Compilation
from xtrace._src.api.jit import static_arguments
from xtrace._src.api.jit.jit_cache import CompiledCall, Prepared
from xtrace._src.api.jit.stages import Compiled, Lowered
from xtrace._src.api.tracing import abstract_leaf, abstract_leaves
from xtrace._src.core.avals import ShapedArray, ShapeDtypeStruct, high_types, is_high
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.settings import config
from xtrace._src.core.settings.compiler_choices import compilation as compilation_setting
from xtrace._src.core.shardings.memory_layout import Layout
from xtrace._src.core.shardings.shardings import SingleDeviceSharding
from xtrace._src.runtime.arrays import ConcreteArray, placement
from xtrace._src.runtime.execute import Origin, Program
from xtrace._src.runtime.transfer import committed_layout, committed_sharding, current_device, place_type, signature_on
from xtrace._src.xla import buffers
from xtrace._src.xla.executables.compile_threads import Task, background, foreground
from xtrace._src.xla.executables.executables import CompileError

if TYPE_CHECKING:
    from xtrace._src.api.jit.jitted import Jitted

# `benchmarks/README.md` shows the effect of each option.
_QUICK = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}


# Smaller modules mostly compile fully in less than 0.1 s; two compilations are not worth it.
_MIN_LINES = 24


def compile_by(way: str, compilation: Compilation) -> tuple[Program, Task | None]:
    """Return the program compiled in one of the ways of `jit`, and the task whose result will replace it, or None."""
    devices = compilation.assignment.devices
    # The quick options are for the CPU; several processes would have to change programs at the same time.
    if compilation.assignment.platform != "cpu" or len({d.process_index for d in devices}) > 1:
        return compilation.compile(), None
    if way == "tiered" and sum([len(f.lines) for f in compilation.module.builder.functions]) < _MIN_LINES:
        return compilation.compile(), None
    program = compilation.load()
    if program is not None:
        return program, None
    program = _compile_quickly(compilation)
    if program is None:
        return compilation.compile(Origin.COMPILER), None
    if way == "quick":
        return program, None
    return program, background.start(config.carry_settings(lambda: compilation.compile(Origin.COMPILER)))


def _compile_quickly(compilation: Compilation) -> Program | None:
    """Return the program compiled with little optimisation; None if XLA refuses. Options it does not know are dropped.
    """
    while True:
        try:
            return compilation.compile_quickly(_QUICK)
        except CompileError as error:
            unknown = [name for name in list(_QUICK) if f"No such compile option: '{name}'" in str(error)]
            if not unknown:
                return None
            _QUICK.pop(unknown[0], None)


def compile_all(lowered: Iterable[Lowered]) -> list[Compiled]:
    """Compile several programs on all cores.

    Args:
        lowered: a `Lowered` for each program, the result of ``jit(f).lower(...)``.

    Returns:
        A list with a `Compiled` for each program, in the same order.

    Raises:
        Exception: the error of the first program that does not compile; a note names the program. Compilations that
            have not begun are cancelled.

    Example:
        >>> sine, cosine = xtrace.compile_all([xtrace.lower(f, 0.0) for f in (jnp.sin, jnp.cos)])
        >>> cosine(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    if not isinstance(lowered, Iterable):
        raise TypeError(f"compile_all: lowered is {abbreviate(lowered)}; give a list of what jit(f).lower(...) returns")
    programs = list(lowered)
    for number, one in enumerate(programs):
        if not isinstance(one, Lowered):
            raise TypeError(
                f"compile_all: program {number} is {abbreviate(one)}; give what jit(f).lower(...) returns for each one"
            )
    return _run_all([one.compile for one in programs], lambda i: f"compile_all: program {i}, {programs[i].fun_name}")


def warm_up_all(jitted: Jitted, signatures: Iterable[tuple[Any, ...]]) -> None:
    """Compile a function for calls with each of these tuples of positional arguments."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    given = signatures if isinstance(signatures, Iterable) and not isinstance(signatures, str | dict) else [None]
    for number, args in enumerate(given):
        if not isinstance(args, tuple | list):
            wrong = f"signature {number} is {abbreviate(args)}" if args is not None else abbreviate(signatures)
            raise TypeError(
                f"warm_up_all: signatures are tuples of positional arguments, one for each call, such as [(x,), (y,)]; "
                f"got {wrong}"
            )
        calls.append((tuple(args), {}))
    warm_up(jitted, calls)


def warm_up(jitted: Jitted, calls: Sequence[tuple[tuple[Any, ...], dict[str, Any]]]) -> None:
    """Compile a function for calls with these arguments or ShapeDtypeStructs, in parallel."""
    prepared: dict[int, Prepared] = {}
    table = jitted.cache.compiled
    for number, (args, kwargs) in enumerate(calls):
        static, leaves, in_tree = static_arguments.flatten(jitted.fun, jitted.static, args, kwargs)
        if high_types and any(map(is_high, leaves)):
            raise TypeError(f"warm_up: {jitted.name} takes values of types that users define; call it to compile it")
        avals = abstract_leaves(jitted.fun, static, leaves, in_tree, abstract_leaf)
        signatures = [_signature(leaf, aval) for leaf, aval in zip(leaves, avals, strict=True)]
        key = (config.cache_key(), static, in_tree, *signatures)
        if key in table.entries or any(key == one.key for one in prepared.values()):
            continue
        one = jitted.prepare(static, in_tree, leaves, key, abstract_leaf)
        if isinstance(one, Prepared):
            prepared[number] = one
        else:
            table.get_or_make(key, functools.partial(_identity, one))
            one.warm_up(leaves)
    is_quick = (jitted.options.compilation or compilation_setting.value) == "quick"
    works = [functools.partial(_time, one.compilation, is_quick) for one in prepared.values()]
    numbers = list(prepared)
    programs = _run_all(works, lambda i: f"warm_up: signature {numbers[i]} of {jitted.name}")
    for one, (program, seconds) in zip(prepared.values(), programs, strict=True):
        table.get_or_make(one.key, functools.partial(jitted.make_compiled_call, one, program, seconds))


def _identity(program: CompiledCall) -> CompiledCall:
    return program


def _time(compilation: Compilation, is_quick: bool) -> tuple[Program, float]:
    """Return a compiled program and the time of its compilation."""
    start = time.perf_counter()
    program = compile_by("quick", compilation)[0] if is_quick else compilation.compile()
    return program, time.perf_counter() - start


def _signature(leaf: Any, aval: ShapedArray) -> Any:
    """Return the signature of an argument, or of the array that a ShapeDtypeStruct describes."""
    if type(leaf) is ConcreteArray:
        return leaf.signature
    if not isinstance(leaf, ShapeDtypeStruct):
        return aval
    sharding = committed_sharding(leaf)
    if sharding is None:
        return signature_on(aval, current_device(), False)
    layout = committed_layout(leaf)
    if layout is not None and layout.tiling is None:
        # The layouts of arrays contain tiles and the bits of elements.
        known = Layout.from_pjrt_layout(buffers.default_layout(aval.shape, aval.dtype, sharding.devices[0]))
        layout = known.update(major_to_minor=layout.major_to_minor)
    if isinstance(sharding, SingleDeviceSharding):
        return placement(aval.update(sharding=None), sharding.device, layout=layout)
    return placement(place_type(aval, sharding), sharding, layout=layout)


def _run_all(works: Sequence[Callable[[], Any]], name: Callable[[int], str]) -> list[Any]:
    """Run `works` on all cores and return their results; an error has a note, the `name` of the failed one."""
    if len(works) == 1:
        return [works[0]()]
    tasks = [foreground.start(config.carry_settings(work)) for work in works]
    for number, task in enumerate(tasks):
        task.wait()
        if task.error is not None:
            for other in tasks[number:]:
                other.give_up()
            task.error.add_note(name(number))
            raise task.error
    return [task.result for task in tasks]
