"""``python -m xtrace inspect``: one stage of the compilation of a user's function."""

from __future__ import annotations

import contextlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import xtrace
from xtrace._src.api.jit.captured_constants import find_captured_constants
from xtrace._src.xla.plugins.absent_devices import get_platform
from xtrace.cli import partitioning
from xtrace.cli.argument_grammar import parse_argument, parse_static
from xtrace.cli.colours import colour_program
from xtrace.cli.errors import WRONG_COMMAND, CommandError
from xtrace.cli.loading import load_function, user_traceback
from xtrace.cli.results import Result

STAGES = ("jaxpr", "stablehlo", "hlo", "cost", "memory", "report", "compile-time")
_COMPILED_STAGES = ("hlo", "cost", "memory", "report")
PLATFORMS = ("cpu", "cuda", "gpu", "rocm", "tpu")
_MISSING = inspect.Parameter.empty


def inspect_function(request: Request, stage: str) -> Result:
    """Return one stage of the requested function. Raises `CommandError`."""
    device = request.device
    if device is not None and stage not in _COMPILED_STAGES:
        raise CommandError(f"--target goes with --stage {', '.join(_COMPILED_STAGES)}, not {stage}", WRONG_COMMAND)
    about = {"function": request.function, "stage": stage, "target": device}
    if stage == "compile-time":
        name, function, positional, keywords = load_call(request)
        explain = xtrace.explain_compile_time
        explained = attempt(f"compiling {name} failed", lambda: explain(function, *positional, **keywords))
        return Result(str(explained), about | json.loads(explained.to_json()))
    name, traced = trace_function(request)
    if stage == "jaxpr":
        return _make_program_result(about, str(traced.jaxpr))
    lowered = attempt(f"lowering {name} to StableHLO failed", traced.lower)
    if stage == "stablehlo":
        return _make_program_result(about, str(lowered.as_text()).rstrip())
    compiled = attempt(f"compiling {name} failed", lambda: lowered.compile(**request.compile_options))
    if stage == "hlo":
        return _make_program_result(about, str(compiled.as_text()).rstrip())
    if stage == "report":
        report = compiled.report()
        return Result(str(report), about | {"report": _to_dict(report)})
    if stage == "memory":
        memory = compiled.memory_analysis()
        return Result(str(memory), about | json.loads(memory.to_json()))
    costs = _order_costs(compiled.cost_analysis())
    # Names such as ``bytes accessed0{}`` are sums over the first operands of instructions: the data has them.
    return Result(
        _format_table({name: n for name, n in costs.items() if not name.endswith("}")}), about | {stage: costs}
    )


def _make_program_result(about: dict[str, Any], text: str) -> Result:
    return Result(colour_program(text, sys.stdout), about | {"text": text})


def _to_dict(value: Any) -> Any:
    """Return named tuples as dicts with their properties, at all depths."""
    if hasattr(value, "_asdict"):
        computed = [name for name, member in vars(type(value)).items() if isinstance(member, property)]
        return {name: _to_dict(getattr(value, name)) for name in [*value._fields, *computed]}
    return [_to_dict(item) for item in value] if isinstance(value, (tuple, list)) else value


class Request(NamedTuple):
    """The function, the arguments and the devices of a command line.

    function: ``FILE.py:FUNCTION``. arguments, statics, mesh, shardings: the texts of ``--arg``, ``--static``,
    ``--mesh`` and ``--sharding``. device: a compilation target such as ``h200``, or None.
    """

    function: str
    arguments: Sequence[str]
    statics: Sequence[str]
    device: str | None = None
    mesh: str | None = None
    shardings: Sequence[str] = ()

    @property
    def compile_options(self) -> dict[str, Any]:
        """The keywords of ``compile``; no target with a mesh, whose devices are the target's."""
        return {} if self.device is None or self.mesh is not None else {"target": self.device}


def trace_function(request: Request) -> tuple[str, Any]:
    """Return the name and the trace of the requested function. Raises `CommandError`."""
    name, function, positional, keywords = load_call(request)
    traced = attempt(f"tracing {name} failed", lambda: function.trace(*positional, **keywords))
    warn_of_constants(traced, function)
    return name, traced


def load_call(request: Request) -> tuple[str, Any, list[Any], dict[str, Any]]:
    """Return the name of the requested function, the jitted function, and its arguments. Raises `CommandError`."""
    if request.device is not None:
        _check_targets(request.device)
    values = [parse_argument(text) for text in request.arguments]
    named = dict(parse_static(text) for text in request.statics)
    function: Any = load_function(request.function)
    positional, keywords = bind_arguments(function, values, named)
    name = request.function.rpartition(":")[2]
    if request.mesh is not None:
        positional, keywords = _partition(
            function, positional, keywords, request.mesh, request.shardings, request.device
        )
    elif request.shardings:
        raise CommandError(
            f"--sharding {request.shardings[0]}: give the mesh, too, as --mesh data=4,model=2", WRONG_COMMAND
        )
    if not hasattr(function, "trace"):
        function = attempt(f"xtrace cannot trace {name}", lambda: xtrace.jit(function, static_argnames=tuple(named)))
    return name, function, positional, keywords


def _check_targets(names: str) -> None:
    for name in names.split(","):
        try:
            if name not in PLATFORMS:
                get_platform(name)
        except ValueError as error:
            raise CommandError(f"--target: {error}", WRONG_COMMAND) from None


# Smaller arrays that a function closes over are not reported.
_LARGE_BYTES = 1 << 20


def warn_of_constants(traced: Any, function: Any) -> None:
    """Print the large arrays that a function closes over on standard error."""
    for one in find_captured_constants(traced.jaxpr, function):
        if one.size >= _LARGE_BYTES:
            print(f"note: closed over, and part of the program: {one}", file=sys.stderr)


def _partition(
    function: Callable[..., Any], positional: list[Any], keywords: dict[str, Any], mesh: str, shardings: Sequence[str],
    device: str | None,
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments with shardings on a mesh of the target's devices."""
    axes = partitioning.parse_mesh(mesh)
    specs = dict([partitioning.parse_sharding(text, axes) for text in shardings])
    devices = partitioning.make_mesh(axes, device)
    names = [
        *list(inspect.signature(function).bind_partial(*positional).arguments)[: len(positional)], *keywords
    ]
    placed = partitioning.place_arguments(names, [*positional, *keywords.values()], devices, specs)
    return placed[: len(positional)], dict(zip(keywords, placed[len(positional) :], strict=True))


def attempt(what: str, step: Callable[[], Any]) -> Any:
    """Return the result of `step`, with its prints on stderr; an error becomes a `CommandError` that begins `what`."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return step()
    except Exception as error:
        raise CommandError(f"{what}:\n\n{user_traceback(error)}") from error


def bind_arguments(
    function: Callable[..., Any], values: Sequence[Any], statics: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of `function` by position and by name: `values` in order, `statics` by name.

    A parameter without a value takes its annotation or default, if that is a pytree of `ShapeDtypeStruct`. Raises
    `CommandError` for a missing value, an unknown name, and too many values.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return list(values), dict(statics)
    shown = f"{getattr(function, '__name__', 'the function')}({', '.join(map(str, parameters.values()))})"
    takes_keywords = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    unknown = [name for name in statics if name not in parameters and not takes_keywords]
    if unknown:
        raise CommandError(f"--static {unknown[0]}: there is no such parameter in {shown}", WRONG_COMMAND)

    left, keywords, positional = list(values), dict(statics), []
    in_order = True  # values may go by position until a parameter keeps its default
    missing = []
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += left if in_order else []
            left = [] if in_order else left
            continue
        by_position = parameter.kind is not parameter.KEYWORD_ONLY and in_order
        if name in statics:
            if by_position:
                positional.append(keywords.pop(name))
        elif left and by_position:
            positional.append(left.pop(0))
        elif (described := _describe_parameter(parameter)) is not None:
            if by_position:
                positional.append(described)
            else:
                keywords[name] = described
        elif parameter.default is _MISSING:
            missing.append(name)
        else:
            in_order = False
    if missing or left:
        problem = f"nothing is given for {', '.join(missing)}" if missing else "too many are given"
        raise CommandError(
            f"{shown} was given {len(values)} --arg and {len(statics)} --static: {problem}; "
            "write one --arg for each array or value, in order, and --static NAME=VALUE for the rest",
            WRONG_COMMAND,
        )
    return positional, keywords


def _describe_parameter(parameter: inspect.Parameter) -> Any:
    """Return a parameter's annotation or default that is a pytree of `ShapeDtypeStruct`; None without one."""
    for value in (parameter.annotation, parameter.default):
        leaves = xtrace.tree.leaves(value)
        if leaves and all(isinstance(leaf, xtrace.ShapeDtypeStruct) for leaf in leaves):
            return value
    return None


def _format_table(rows: Mapping[str, float]) -> str:
    if not rows:
        return "the compiler reports nothing for this program"
    width = max(map(len, rows))
    numbers = {name: f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}" for name, value in rows.items()}
    right = max(map(len, numbers.values()))
    return "\n".join(f"{name:{width}}  {number:>{right}}" for name, number in numbers.items())


def _order_costs(analysis: Mapping[str, float] | None) -> dict[str, float]:
    """Return XLA's estimates in order: the whole program first, then operands and outputs."""
    rows = dict(analysis or {})
    first = [name for name in ("flops", "transcendentals", "bytes accessed") if name in rows]
    return {name: rows[name] for name in first + sorted(set(rows) - set(first))}
