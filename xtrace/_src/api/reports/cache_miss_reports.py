"""Reports about jit's caches: why a function is traced or compiled again, and the durations of the steps.

The key of a trace is (settings, static arguments, tree, *types of leaves). In the key of a compiled program, the
signatures of the leaves, which include their places, replace the types.
"""

from __future__ import annotations

import collections
import functools
import itertools
import logging
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from xtrace._src.api.jit.argument_paths import list_argument_paths
from xtrace._src.api.jit.static_arguments import Static, same_static
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, short_repr
from xtrace._src.core.callables import make_debug_info, positional_names
from xtrace._src.core.diagnostics.positions import describe, is_internal, user_position
from xtrace._src.core.diagnostics.warn import warn_each_time
from xtrace._src.core.errors import RecompilationWarning
from xtrace._src.core.settings import config
from xtrace._src.runtime.arrays import Placement

_logger = logging.getLogger("xtrace")

# Descriptions of the functions that were explained, with the places of their definitions.
_explained: set[str] = set()
_MAX_EXPLAINED = 10_000
_MAX_DIFFERENCES = 5

Key = Sequence[Any]


class Difference(NamedTuple):
    """A difference between two keys: its subject, such as ``argument x``, its kind, and a text with both values."""

    subject: str
    kind: str
    text: str


# The advice for a kind of difference that recurs.
_ADVICE = {
    "shape": "each shape is a program of its own: pad the array to a few sizes, or pass a long one in equal pieces",
    "dtype": "convert it to one dtype before the call",
    "weak type": "make it an array of one dtype before the call, as in xtrace.numpy.asarray(x, dtype)",
    "static": "each value is a program of its own: pass it as an array unless Python must know it",
    "structure": "give every call the same structure, with None or zeros for what is missing",
    "device": "put it on one device, once, with xtrace.device_put",
    "setting": "choose the setting once, before the first call",
    "axes": "map the function over axes of one name and size",
}


def report_miss(
    function: Callable[..., Any], key: Key, known: Iterable[Key], *, traced: bool = True, since: str | None = None
) -> None:
    """Log the differences of `key` from the closest of the keys `known`; not for xtrace's own functions.

    traced: whether a trace is missing, or only the program of a known trace. since: the event that cleared the traces.
    """
    info = make_debug_info("jit", function)
    if info.file is not None and is_internal(info.file):
        return
    defined = f"{info.function} defined at {info.place}"
    # The latest of equally close keys.
    closest = max(reversed(list(known)), key=lambda other: _likeness(function, key, other), default=None)
    if closest is not None:
        differences = find_key_differences(function, key, closest)
        more = len(differences) - _MAX_DIFFERENCES
        lines = [f"for {defined}", "the closest signature seen before differs:"]
        lines += [f"* {one.text}" for one in differences[:_MAX_DIFFERENCES]]
        lines += [f"* and {more} more"] if more > 0 else []
    elif since is not None:
        lines = [f"for {defined}", since]
    else:
        lines = [f"never seen function {defined}"]
        if describe_new_function(function) in _explained:
            lines.append(f"a new function object each call: {describe_new_function(function)}; define it once")
    if len(_explained) > _MAX_EXPLAINED:
        _explained.clear()
    _explained.add(describe_new_function(function))
    what = "TRACING" if traced else "COMPILATION"
    _logger.warning("%s CACHE MISS at %s:\n  %s", what, describe(user_position()), "\n  ".join(lines))


def describe_new_function(function: Callable[..., Any]) -> str:
    """Return a description of a function object that is made anew for each call, with the place of its definition."""
    info = make_debug_info("jit", function)
    place = f" defined at {info.place}" if info.file is not None else ""
    if isinstance(function, functools.partial):
        return f"a partial of {info.function}{place}"
    if isinstance(function, MethodType):
        return f"the method {info.function}{place} of a new {type(function.__self__).__name__}"
    if not hasattr(function, "__code__") and not hasattr(function, "__wrapped__"):
        return f"a new {type(function).__name__}{place}"
    if info.function == "<lambda>":
        return f"a lambda{place}"
    nested = "<locals>" in getattr(function, "__qualname__", "")
    return f"the {'nested ' if nested else ''}function {info.function}{place}"


def _likeness(function: Callable[..., Any], key: Key, other: Key) -> tuple[Any, ...]:
    """Return the likeness of two keys, as a tuple for comparisons."""
    static = -len(_static_differences(function, key, other))
    if key[2] == other[2]:
        alike = sum(map(_rate_likeness, key[3:], other[3:]))
        return True, static, key[0] == other[0], alike
    differences = _structure_differences(function, key, other)
    return False, static, -len(differences), sum(one.text.count("[") for one in differences)


def _rate_likeness(signature: object, other: ShapedArray) -> int:
    one, two = get_signature_type(signature), get_signature_type(other)
    if one is two:
        return 7 if signature is other else 6
    return int(2 * (one.shape == two.shape) + 2 * (one.dtype == two.dtype) + (one.weak_type == two.weak_type))


def find_key_differences(function: Callable[..., Any], key: Key, before: Key) -> list[Difference]:
    """Return the differences between `key` and the key of an earlier call of `function`."""
    differences = _setting_differences(key[0], before[0])
    differences += _static_differences(function, key, before)
    if key[2] != before[2]:
        return differences + _structure_differences(function, key, before)
    for path, now, then in zip(list_argument_paths(function, key[1], key[2]), key[3:], before[3:], strict=True):
        if now is not then:
            differences += _type_differences(path, now, then)
    return differences


def _setting_differences(key: Any, before: Any) -> list[Difference]:
    # With mapped axes, the first part of a key is a pair of the settings and the axes.
    settings, axes = key if isinstance(key, tuple) else (key, ())
    settings_before, axes_before = before if isinstance(before, tuple) else (before, ())
    differences = [
        Difference(f"setting {name}", "setting", f"setting {name}: {then!r} -> {now!r}")
        for name, now, then in config.keyed_differences(settings, settings_before)
    ]
    if axes != axes_before:
        text = f"mapped axes around the call, as (name, size): {axes_before} -> {axes}"
        differences.append(Difference("mapped axes", "axes", text))
    return differences


def _count(key: Key) -> int:
    """Return the number of positional arguments of the call."""
    return len(key[2].children()[0].children()) + len(key[1].positional)


def static_values(function: Callable[..., Any], static: Static, count: int) -> dict[str, Any]:
    """Return the static arguments of a call with `count` positional arguments, by name."""
    names = positional_names(function, count)
    return {names[n]: value for n, value in static.positional} | dict(static.named)


def _static_differences(function: Callable[..., Any], key: Key, before: Key) -> list[Difference]:
    now, then = (static_values(function, k[1], _count(k)) for k in (key, before))
    differences = []
    for name in now | then:
        subject = f"static {name}"
        if name not in now:
            differences.append(Difference(subject, "static", f"{subject}: {short_repr(then[name])} -> not given"))
        elif name not in then:
            differences.append(Difference(subject, "static", f"{subject}: not given -> {short_repr(now[name])}"))
        elif not same_static(now[name], then[name]):
            text = f"{subject}: {short_repr(then[name])} -> {short_repr(now[name])}{_identity(now[name], then[name])}"
            differences.append(Difference(subject, "static", text))
        elif (name in dict(key[1].named)) != (name in dict(before[1].named)):
            way = "by position -> by name" if name in dict(key[1].named) else "by name -> by position"
            differences.append(Difference(subject, "structure", f"{subject}: given {way}"))
    return differences


def _identity(value: object, before: object) -> str:
    """Return a remark, for two values of one class without equality, that they differ because they are two objects."""
    kind = type(value)
    if type(before) is not kind or kind.__eq__ is not object.__eq__:
        return ""
    if isinstance(value, (FunctionType, functools.partial)):
        return f" (a new function object: {describe_new_function(value)}; define it once)"
    return f" (another {kind.__name__}, a class without __eq__ and __hash__: no two are equal)"


def _arguments(function: Callable[..., Any], key: Key) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the structures of the traced arguments by position and by name."""
    positional, named = key[2].children()
    count = _count(key)
    fixed = {n for n, _ in key[1].positional}
    names = [name for n, name in enumerate(positional_names(function, count)) if n not in fixed]
    by_position = dict(zip(names, positional.children(), strict=True))
    return by_position, dict(zip(named.node_data()[1], named.children(), strict=True))


def _structure_differences(function: Callable[..., Any], key: Key, before: Key) -> list[Difference]:
    (positional, named), (positional_before, named_before) = (_arguments(function, k) for k in (key, before))
    now, then = positional | named, positional_before | named_before
    differences = []
    for name in now | then:
        subject = f"argument {name}"
        if name not in then or name not in now:
            way = "appeared" if name in now else "disappeared"
            differences.append(Difference(subject, "structure", f"{subject} {way}"))
        elif (name in named) != (name in named_before):
            way = "by position -> by name" if name in named else "by name -> by position"
            differences.append(Difference(subject, "structure", f"{subject}: given {way}"))
        if name in now and name in then and now[name] != then[name]:
            path, what = _tree_difference(now[name], then[name], name)
            differences.append(Difference(subject, "structure", f"pytree of {path}: {what}"))
    return differences


def _tree_difference(now: Any, then: Any, path: str) -> tuple[str, str]:
    """Return the path of the first difference between two structures, and a description of it."""
    data, data_before = now.node_data(), then.node_data()
    if data is None or data_before is None or data[0] is not data_before[0]:
        return path, f"{_node(data_before)} -> {_node(data)}"
    children, children_before = now.children(), then.children()
    keys: Sequence[Any] = range(len(children))
    if data[0] is dict:
        keys = data[1]
        appeared = [f"key {k!r} appeared" for k in keys if k not in data_before[1]]
        gone = [f"key {k!r} disappeared" for k in data_before[1] if k not in keys]
        if appeared or gone:
            return path, ", ".join([*appeared, *gone][:_MAX_DIFFERENCES])
    elif len(children) != len(children_before):
        return path, f"length {len(children_before)} -> {len(children)}"
    elif data[1] != data_before[1]:
        change = f"{short_repr(data_before[1])} -> {short_repr(data[1])}"
        return path, f"the metadata of {data[0].__name__}: {change}"
    for name, child, child_before in zip(keys, children, children_before, strict=True):
        if child != child_before:
            return _tree_difference(child, child_before, f"{path}[{name!r}]")
    return path, f"{then} -> {now}"


def _node(data: Any) -> str:
    if data is None:
        return "an array"
    return "None" if data[0] is type(None) else f"a {data[0].__name__}"


def _type_differences(path: str, signature: object, before: ShapedArray) -> list[Difference]:
    subject = f"argument {path}"
    now, then = get_signature_type(signature), get_signature_type(before)
    differences = []
    if now.shape != then.shape or now.dtype != then.dtype:
        kind = "shape" if now.shape != then.shape else "dtype"
        differences.append(Difference(subject, kind, f"{subject}: {describe_type(then)} -> {describe_type(now)}"))
    elif now.weak_type != then.weak_type:
        differences.append(Difference(subject, "weak type", f"{subject} {_weak_change(now)}"))
    elif now is not then:
        differences.append(Difference(subject, "device", f"{subject}: {then!r} -> {now!r}"))
    place, place_before = (_place(s) for s in (signature, before))
    if place != place_before:
        differences.append(Difference(subject, "device", f"{subject}: {place_before} -> {place}"))
    return differences


def get_signature_type(signature: Any) -> ShapedArray:
    """Return the type in the signature of an argument."""
    return signature.aval if type(signature) is Placement else signature


def _place(signature: object) -> str:
    if type(signature) is not Placement:
        return "wherever data goes by default"
    return f"{'put' if signature.committed else 'computed'} on {signature.describe_place()}"


_NUMBERS = {"b": "bool", "i": "int", "f": "float", "c": "complex"}


def describe_type(aval: ShapedArray) -> str:
    """Return the text of a type in messages; for a weak type, with a note on it and Python's number of that type."""
    if not aval.weak_type:
        return aval.str_short(True)
    number = _NUMBERS.get(aval.dtype.kind)
    return f"{aval.str_short(True)} weakly typed" + (f" (as Python's {number})" if number and not aval.shape else "")


def _weak_change(now: ShapedArray) -> str:
    short = now.str_short(True)
    name = dtypes.short_name(now.dtype)
    number = _NUMBERS.get(now.dtype.kind, "number")
    if now.weak_type:
        return f"became weakly typed: {short} of a Python {number}, or computed from such alone; before of dtype {name}"
    return f"is no longer weakly typed: {short} of an array; before of a Python {number}, or computed from such alone"


def report_types(name: str, paths: Sequence[str], avals: Sequence[ShapedArray], static: dict[str, Any]) -> None:
    """Log the name and the argument types of a program before it is compiled."""
    given = [f"{path}: {describe_type(aval)}" for path, aval in zip(paths, avals, strict=True)]
    given += [f"static {argument}={short_repr(value)}" for argument, value in static.items()]
    _logger.warning("Compiling %s for %s", name, ", ".join(given) or "no arguments")


def report_step(what: str, name: str, seconds: float) -> None:
    """Log the duration of a step of compiling."""
    _logger.warning("Finished %s of %s in %.6f s", what, name, seconds)


# Warnings


def warn_of_recompilation(function: Callable[..., Any], keys: Sequence[Key], compiled: int, hits: int) -> None:
    """Warn that a function was compiled `compiled` times, with the recurring reason; `keys` are the programs' keys."""
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    last: dict[tuple[str, str], str] = {}
    for before, key in itertools.pairwise(keys):
        for one in find_key_differences(function, key, before):
            counts[one.subject, one.kind] += 1
            last[one.subject, one.kind] = one.text
    reason = ""
    if counts:
        (which, number) = counts.most_common(1)[0]
        subject, kind = which
        changed = {"static": "its value", "setting": "", "axes": ""}.get(kind, f"its {kind}")
        reason = (
            f": {subject} changed{' ' + changed if changed else ''} in {number} of {len(keys) - 1} compilations "
            f"(lately {last[which]}); {_ADVICE[kind]}"
        )
    info = make_debug_info("jit", function)
    _warn(f"{info.function} at {info.place} was compiled {compiled} times, and {hits} calls found a program"
          f"{reason}.")


def warn_of_new_objects(function: Callable[..., Any], compiled: int) -> None:
    """Warn that a program was compiled `compiled` times in a row, for new function objects from one place."""
    _warn(
        f"the same program, but for constants, was compiled {compiled} times, for a new function object each time: "
        f"{describe_new_function(function)}. Compiled programs belong to the function: define it once, outside the "
        "loop, and pass varying values as arguments."
    )


def _warn(text: str) -> None:
    silence = (
        " xtrace.explain_cache_misses() logs each reason; the setting xtrace_recompilation_limit is the number of "
        "compilations before this warning, which comes once for each function."
    )
    warn_each_time(text + silence, RecompilationWarning)
