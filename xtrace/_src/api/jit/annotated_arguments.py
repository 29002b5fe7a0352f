"""Arguments that a function describes itself: ShapeDtypeStructs in its annotations or defaults."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from xtrace._src.core import callables
from xtrace._src.core.avals import ShapeDtypeStruct


def find_described_arguments(function: Callable[..., Any]) -> tuple[list[Any], dict[str, Any], list[str]]:
    """Return arguments from the ShapeDtypeStructs in annotations or defaults: positional ones, keywords, and the rest.

    Only positional-only parameters are in the first result. The rest are the names of parameters without a description.
    """
    signature = callables.find_signature(function)
    if signature is None:
        return [], {}, ["its signature cannot be read"]
    given = function.keywords if isinstance(function, functools.partial) else {}
    positional: list[Any] = []
    named: dict[str, Any] = {}
    missing = []
    for name, parameter in signature.parameters.items():
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD) or name in given:
            continue
        annotation = _evaluate_annotation(parameter.annotation, function)
        description = annotation if isinstance(annotation, ShapeDtypeStruct) else parameter.default
        if description is inspect.Parameter.empty:
            missing.append(name)
        elif parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            positional.append(description)
        elif isinstance(description, ShapeDtypeStruct):
            named[name] = description
    return positional, named, missing


def _evaluate_annotation(annotation: object, function: Callable[..., Any]) -> Any:
    """Return the value of an annotation; None for a text that cannot be evaluated."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, getattr(callables.innermost_function(function), "__globals__", {}))
    except Exception:
        return None
