"""Eager evaluation: each primitive is one compiled program for each signature of its operands."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.algebra.resharding import reshard_p
from xtrace._src.api.compilation.compilation import check_execution, compile_module, evaluates_on_host
from xtrace._src.api.compilation.sharding_assignment import assign
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.jaxprs.effects import NO_EFFECTS
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Var
from xtrace._src.core.primitive import MixedSums, Primitive
from xtrace._src.core.settings import config
from xtrace._src.core.trace import Tracer
from xtrace._src.core.typed_numbers import with_dtype
from xtrace._src.runtime.arrays import ConcreteArray, deleted_message, describe_types, explain_failure
from xtrace._src.runtime.execute import Assignment
from xtrace._src.runtime.transfer import to_operand
from xtrace._src.transforms.discharge import discharge_jaxpr
from xtrace._src.transforms.lower import lower

with late_modules(globals()):
    from xtrace._src.api.reports import cache_miss_reports
    from xtrace._src.debug_nans import search as debug_nans
    from xtrace._src.host_evaluation import programs as host_programs
    from xtrace._src.key_reuse import check as key_reuse
    from xtrace._src.ops.calls import calls

_lock = threading.RLock()


def evaluate(primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
    """Apply `primitive` to concrete operands, for the base trace."""
    failure = None
    try:
        arrays = [x if type(x) is ConcreteArray else to_operand(x) for x in operands]
    except TypeError as error:
        failure = error
    if failure is not None:
        # Outside of the handler, so that the error that names the operand has no other error as context.
        check_operands(primitive, operands)
        raise failure
    key: Any = (parameters, config.cache_key(), *[x.signature for x in arrays])
    try:
        run = primitive.programs.get(key)
    except TypeError:  # an unhashable parameter
        run, key = None, None
    if run is None:
        if primitive.evaluate is not None:
            given = arrays if primitive.users_impl is None else [with_dtype(x) for x in operands]
            return primitive.evaluate(*given, **dict(zip(primitive.parameters, parameters, strict=True)))
        run = _compile(primitive, arrays, parameters, key)
    try:
        results = run(arrays)
    except Exception as error:
        check_live(arrays, primitive.__name__)
        types = primitive.infer_types(tuple([x.aval for x in arrays]), parameters)
        made = describe_types(types if primitive.multiple_results else [types])
        explain_failure(error, f"the operation {primitive.__name__}, whose result is {made}")
        raise
    return results if primitive.multiple_results else results[0]


def check_operands(primitive: Primitive, operands: Sequence[Any]) -> None:
    """Raise TypeError, with the name of the operand, if no operation accepts one of the operands."""
    for value in operands:
        if isinstance(value, Tracer):
            raise explain.unexpected_tracer(value)
    explain.check_operands(primitive.__name__, operands)


def check_live(values: Sequence[Any], function: str, names: Callable[[], Sequence[str]] | None = None) -> None:
    """Raise RuntimeError, with the name of the argument, if one of `values` is a deleted array."""
    for position, value in enumerate(values):
        if type(value) is ConcreteArray and value.is_deleted():
            # Names with an underscore belong to xtrace's own programs, whose arguments users do not know.
            place = "" if function.startswith("_") else f"argument {_name(names, position)} of {function}: "
            raise RuntimeError(place + deleted_message(value.aval))


def _name(names: Callable[[], Sequence[str]] | None, position: int) -> str:
    return names()[position] if names is not None else str(position)


_Run = Callable[[Sequence[ConcreteArray]], list[ConcreteArray]]


def _compile(primitive: Primitive, arrays: Sequence[ConcreteArray], parameters: tuple[Any, ...], key: object) -> _Run:
    """Return the program of `primitive` for arrays with these types and places, and keep it under `key`."""
    with _lock:
        if key is not None and key in primitive.programs:
            known: _Run = primitive.programs[key]
            return known
        check_live(arrays, primitive.__name__)
        check_execution(primitive.__name__)
        avals = tuple(x.aval for x in arrays)
        closed = discharge_jaxpr(wrap_in_jaxpr(primitive, avals, parameters))
        assignment = assign(
            arrays, primitive.__name__, jaxpr=closed.jaxpr, out_avals=closed.out_avals,
            out_layouts=_get_call_layouts(primitive, parameters),
        )
        host: _Run | None = None
        if evaluates_on_host():
            host = host_programs.host_program(
                closed, assignment, lambda values: _compile_for(values, primitive, closed, assignment, key)
            )
        if host is not None:
            return _keep(primitive, key, host)
        return _compile_for(arrays, primitive, closed, assignment, key)


def _compile_for(
    arrays: Sequence[ConcreteArray], primitive: Primitive, closed: ClosedJaxpr, assignment: Assignment, key: object
) -> _Run:
    module = lower(closed, primitive.name, assignment.platform, assignment=assignment)
    text = module.text()
    start = time.perf_counter()
    program = compile_module(module, text, closed, assignment)
    if config.log_compiles.value:
        cache_miss_reports.report_step("XLA compilation", f"jit({primitive.name})", time.perf_counter() - start)
    # Without a check, because the key has the arrays' places. Arrays in other places are moved at every call.
    run: _Run = program.run if program.takes(arrays) else program
    if config.debug_key_reuse.value:
        run = key_reuse.check_keys(run, closed)
    if config.checks_numbers():
        run = debug_nans.check_results(run, closed)
    return _keep(primitive, key, run)


def _keep(primitive: Primitive, key: object, run: _Run) -> _Run:
    if key is not None:
        primitive.programs.remember(key, run)
    return run


def _get_call_layouts(primitive: Primitive, parameters: tuple[Any, ...]) -> Sequence[Any]:
    """Return the user's layouts for the results of a jitted function, if `primitive` is its call."""
    return tuple(parameters[primitive.parameters.index("out_layouts")]) if primitive is calls.jit_call else ()


def wrap_in_jaxpr(primitive: Primitive, avals: Sequence[ShapedArray], parameters: tuple[Any, ...]) -> ClosedJaxpr:
    """Return the jaxpr whose only equation is `primitive`."""
    inputs = [Var(a) for a in avals]
    operands: list[Atom] = list(inputs)
    before = []
    try:
        types = primitive.infer_types(tuple(avals), parameters)
    except MixedSums as mixed:
        for i, x in enumerate(inputs):
            if mixed.concerns(x.aval):
                operands[i] = scalar = Var(x.aval.update(sharding=mixed.sharding))
                before.append(JaxprEqn([x], [scalar], reshard_p, (mixed.sharding,), NO_EFFECTS, None))
        types = primitive.infer_types(tuple([x.aval for x in operands]), parameters)
    outputs = [Var(a) for a in (types if primitive.multiple_results else [types])]
    effects = primitive.find_effects(parameters, [x.aval for x in operands])
    equation = JaxprEqn(operands, outputs, primitive, parameters, effects, None)
    info = DebugInfo("eager evaluation", primitive.name, None, None)
    return ClosedJaxpr(Jaxpr([], inputs, outputs, [*before, equation], effects, info), [])
