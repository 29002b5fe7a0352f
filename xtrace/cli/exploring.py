"""``python -m xtrace explore``: a page with all stages of a user's function."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import xtrace
from xtrace.cli.errors import WRONG_COMMAND, CommandError
from xtrace.cli.inspection import Request, attempt, load_call
from xtrace.cli.results import Result

TRANSFORMS = ("grad", "value_and_grad", "jacfwd", "jacrev", "hessian", "vmap", "checkpoint")


class Presentation(NamedTuple):
    """The contents of a page besides the function, and its file.

    transforms: the names of transformations, in the order of their application. batch: the number of vmap's examples.
    beside: other functions. out: the file. is_data: whether to write the data instead of the page.
    """

    transforms: Sequence[str]
    batch: int
    beside: Sequence[str]
    out: str | None
    is_data: bool


class _Call(NamedTuple):
    """A call of a function: the function with its name, and the arguments by position and by name."""

    name: str
    function: Callable[..., Any]
    positional: list[Any]
    keywords: dict[str, Any]


def explore_function(request: Request, shown: Presentation) -> Result:
    """Write the page of the requested function, and return its file. Raises `CommandError`."""
    devices: Sequence[str | None] = [None] if request.device is None else request.device.split(",")
    if request.mesh is not None:
        if len(devices) > 1:
            raise CommandError("--mesh takes one --target, with the devices of the mesh", WRONG_COMMAND)
        if "vmap" in shown.transforms:
            raise CommandError("--transform vmap does not go with --mesh; write the vmap in the file", WRONG_COMMAND)
        # The devices of the mesh are the target's.
        devices = [None]
    pages = [
        _explore(call, device) for function in (request.function, *shown.beside)
        for call in _list_calls(request._replace(function=function), shown) for device in devices
    ]
    page = pages[0].beside(*pages[1:])
    if shown.is_data and shown.out is None:
        return Result("", page.to_json())
    out = shown.out or f"{request.function.rpartition(':')[2]}.html"
    try:
        if shown.is_data:
            with open(out, "w", encoding="utf-8") as file:
                json.dump(page.to_json(), file)
        else:
            page.save(out)
    except OSError as error:
        raise CommandError(f"cannot write {out}: {error.strerror or error}") from error
    return Result(f"{out}: {', '.join(page.names)}", {"file": out, "programs": page.names})


def _explore(call: _Call, device: str | None) -> Any:
    function: Any = call.function if hasattr(call.function, "trace") else xtrace.jit(call.function)
    traced = attempt(f"tracing {call.name} failed", lambda: function.trace(*call.positional, **call.keywords))
    # The default device is no target.
    options = {} if device is None or device == xtrace.default_backend() else {"target": device}
    return attempt(f"compiling {call.name} failed", lambda: traced.explore(name=call.name, **options))


def _list_calls(request: Request, shown: Presentation) -> list[_Call]:
    """Return the call of the function, and the calls after each transformation of the function before."""
    calls = [_Call(*load_call(request))]
    names = [text.partition("=")[0] for text in request.statics]
    last = _close_over_statics(calls[0], names) if shown.transforms else calls[0]
    for name in shown.transforms:
        positional, keywords = last.positional, last.keywords
        if name == "vmap":
            positional = [_add_axis(x, shown.batch) for x in positional]
            keywords = {k: _add_axis(x, shown.batch) for k, x in keywords.items()}
        last = _Call(f"{name}({last.name})", _transform(name, last.function), positional, keywords)
        calls.append(last)
    return calls


def _close_over_statics(call: _Call, names: Sequence[str]) -> _Call:
    """Return the call of an unjitted function of the arguments that are not static."""
    inner: Callable[..., Any] = getattr(call.function, "__wrapped__", call.function)
    signature = inspect.signature(inner)
    bound = signature.bind(*call.positional, **call.keywords)
    statics = {name: value for name, value in bound.arguments.items() if name in names}
    rest = signature.replace(parameters=[p for p in signature.parameters.values() if p.name not in statics])

    @functools.wraps(inner)
    def function(*args: Any, **kwargs: Any) -> Any:
        values = {**rest.bind(*args, **kwargs).arguments, **statics}
        # `BoundArguments` needs the order of the parameters.
        whole = inspect.BoundArguments(signature, {n: values[n] for n in signature.parameters if n in values})
        return inner(*whole.args, **whole.kwargs)

    function.__signature__ = rest  # type: ignore[attr-defined]
    given = inspect.BoundArguments(rest, {n: bound.arguments[n] for n in rest.parameters if n in bound.arguments})
    return _Call(call.name, function, list(given.args), given.kwargs)


def _transform(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    transform: Any = getattr(xtrace, name)
    return transform(function)  # type: ignore[no-any-return]


def _add_axis(argument: Any, size: int) -> Any:
    """Return the types of an argument with a leading axis of size `size`."""

    def add(leaf: Any) -> Any:
        kind = xtrace.typeof(leaf)
        return xtrace.ShapeDtypeStruct((size, *kind.shape), kind.dtype)

    return xtrace.tree.map(add, argument)
