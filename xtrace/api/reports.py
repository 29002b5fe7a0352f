"""What jit says of itself in the log: why a function is traced again, and how long compiling takes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xtrace.api.arguments import Static, argument_paths, debug_info_of, same_static
from xtrace.core import config, pytree
from xtrace.core.source import describe, is_internal, user_position

_logger = logging.getLogger("xtrace")

# The functions explained so far, by where they are defined.
_explained: set[str] = set()
_MOST_DIFFERENCES = 5


def report_miss(function: Callable[..., Any], key: Sequence[Any], known: Iterable[Sequence[Any]]) -> None:
    """Log why no trace fits: `key` is (settings, static arguments, tree, *avals), and `known` are those there are.

    Nothing is said of xtrace's own functions.
    """
    info = debug_info_of("jit", function)
    if info.file is not None and is_internal(info.file):
        return
    defined = f"{info.function} defined at {info.file}:{info.line}"
    closest = max(known, key=lambda other: _likeness(key, other), default=None)
    if closest is not None:
        lines = [f"for {defined}", "the closest signature seen before differs:", *_differences(function, key, closest)]
    else:
        lines = [f"never seen function {defined}"]
        if defined in _explained:
            lines.append(
                "but one defined on the same line: a function that is made again for each call has a new cache each "
                "time; define it once, outside the loop"
            )
    if len(_explained) > 10_000:
        _explained.clear()
    _explained.add(defined)
    _logger.warning("TRACING CACHE MISS at %s:\n  %s", describe(user_position()), "\n  ".join(lines))


def _likeness(key: Sequence[Any], other: Sequence[Any]) -> tuple[bool, bool, int, bool, int]:
    alike = sum(a is b for a, b in zip(key[3:], other[3:], strict=False))
    static = -len(_static_differences(key[1], other[1]))
    same_names = [n for n, _ in key[1].named] == [n for n, _ in other[1].named]
    return key[2] == other[2], same_names, static, key[0] is other[0], alike


def _differences(function: Callable[..., Any], key: Sequence[Any], other: Sequence[Any]) -> list[str]:
    settings, static, tree, *avals = key
    settings_before, static_before, tree_before, *avals_before = other
    found = []
    names = config.store().keyed
    for name, now, before in zip(names, settings.values, settings_before.values, strict=True):
        if now != before:
            found.append(f"* setting {name}, now {now!r} and before {before!r}")
    found += _static_differences(static, static_before)
    if tree != tree_before:
        difference = pytree.treedef_difference(tree, tree_before)
        found.append(f"* structure of (args, kwargs): {difference}")
    else:
        paths = argument_paths(function, static, tree)
        for path, now, before in zip(paths, avals, avals_before, strict=True):
            if now is not before:
                found.append(f"* argument {path}, now {now!r} and before {before!r}")
    more = len(found) - _MOST_DIFFERENCES
    return found if more <= 0 else [*found[:_MOST_DIFFERENCES], f"* and {more} more"]


def _static_differences(static: Static, before: Static) -> list[str]:
    now, then = ({str(k): v for k, v in (*s.positional, *s.named)} for s in (static, before))
    found = []
    for name in now | then:
        if name not in now or name not in then:
            found.append(f"* static argument {name}, {'only now' if name in now else 'only before'}")
        elif not same_static(now[name], then[name]):
            found.append(f"* static argument {name}, now {now[name]!r} and before {then[name]!r}")
    return found


def report_step(what: str, name: str, seconds: float) -> None:
    """Log how long a step of compiling took."""
    _logger.warning("Finished %s of %s in %.6f s", what, name, seconds)
