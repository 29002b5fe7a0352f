"""Programs that are compiled twice: at once with little optimisation, and fully by a background thread. And many
programs that are compiled at the same time, and before they are called.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from xtrace._src.api import call_arguments
from xtrace._src.api.compilation import Compilation
from xtrace._src.api.jit_cache import CompiledCall, Prepared
from xtrace._src.api.stages import Compiled, Lowered
from xtrace._src.api.tracing import abstract_leaf, abstract_leaves
from xtrace._src.core import config
from xtrace._src.core.abbreviation import abbreviate
from xtrace._src.core.avals import ShapedArray, ShapeDtypeStruct, high_types, is_high
from xtrace._src.core.compiler_choices import compilation as compilation_setting
from xtrace._src.core.memory_layout import Layout
from xtrace._src.core.shardings import SingleDeviceSharding
from xtrace._src.runtime.arrays import ConcreteArray, placement
from xtrace._src.runtime.execute import Origin, Program
from xtrace._src.runtime.transfer import committed_layout, committed_sharding, current_device, place_type, signature_on
from xtrace._src.xla import buffers
from xtrace._src.xla.compile_threads import Task, background, foreground
from xtrace._src.xla.executables import CompileError

if TYPE_CHECKING:
    from xtrace._src.api.jit import Jitted

# `benchmarks/README.md` has what each of these options does.
_QUICK = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}


# Full compilation of smaller modules takes less than 0.1 s as a rule, which is not worth a second one.
_FEWEST_LINES = 24


def compile_by(way: str, compilation: Compilation) -> tuple[Program, Task | None]:
    """Return the program compiled in a way of `jit`, and the task whose result takes its place, if there is one."""
    devices = compilation.assignment.devices
    # Other platforms have other options; processes must change programs at the same time.
    if compilation.assignment.platform != "cpu" or len({d.process_index for d in devices}) > 1:
        return compilation.compile(), None
    if way == "tiered" and sum([len(f.lines) for f in compilation.module.builder.functions]) < _FEWEST_LINES:
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
    """Return the program compiled with little optimisation, None if XLA refuses that; newer ones lack some options."""
    while True:
        try:
            return compilation.compile_quickly(_QUICK)
        except CompileError as error:
            unknown = [name for name in list(_QUICK) if f"No such compile option: '{name}'" in str(error)]
            if not unknown:
                return None
            _QUICK.pop(unknown[0], None)


def compile_all(lowered: Iterable[Lowered]) -> list[Compiled]:
    """Return the programs compiled, on all cores.

    Args:
        lowered: what ``jit(f).lower(...)`` returns, of each program.

    Returns:
        A list of what `Lowered.compile` returns, in the same order.

    Raises:
        Exception: the error of the first program that does not compile, with a note which one it is. Programs that
            were not begun are then left out.

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
    """Compile a function for calls with these arguments, which may be descriptions, all at the same time."""
    prepared: dict[int, Prepared] = {}
    table = jitted.cache.compiled
    for number, (args, kwargs) in enumerate(calls):
        static, leaves, in_tree = call_arguments.flatten(jitted.fun, jitted.static, args, kwargs)
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
        table.get_or_make(one.key, functools.partial(jitted.finish, one, program, seconds))


def _identity(program: CompiledCall) -> CompiledCall:
    return program


def _time(compilation: Compilation, is_quick: bool) -> tuple[Program, float]:
    """Return a compiled program, and how long it took."""
    start = time.perf_counter()
    program = compile_by("quick", compilation)[0] if is_quick else compilation.compile()
    return program, time.perf_counter() - start


def _signature(leaf: Any, aval: ShapedArray) -> Any:
    """Return the signature of the array that an argument is, or that it describes."""
    if type(leaf) is ConcreteArray:
        return leaf.signature
    if not isinstance(leaf, ShapeDtypeStruct):
        return aval
    sharding = committed_sharding(leaf)
    if sharding is None:
        return signature_on(aval, current_device(), False)
    layout = committed_layout(leaf)
    if layout is not None and layout.tiling is None:
        # Arrays say their tiles and the bits of their elements.
        known = Layout.from_pjrt_layout(buffers.default_layout(aval.shape, aval.dtype, sharding.devices[0]))
        layout = known.update(major_to_minor=layout.major_to_minor)
    if isinstance(sharding, SingleDeviceSharding):
        return placement(aval.update(sharding=None), sharding.device, layout=layout)
    return placement(place_type(aval, sharding), sharding, layout=layout)


def _run_all(works: Sequence[Callable[[], Any]], name: Callable[[int], str]) -> list[Any]:
    """Return the results of `works`, done on all cores; an error has the `name` of the one that failed as a note."""
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
