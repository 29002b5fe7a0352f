"""The type of layers, a pair of functions, and checks of input shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary

Function = Callable[..., Any]
Layer = tuple[Function, Function]


def build_layer(init_fun: Function, apply_fun: Function) -> Layer:
    """Return a layer for users, whose errors do not show xtrace's frames."""
    return boundary(init_fun), boundary(apply_fun)


def find_rank(name: str, input_shape: Any, least: int = 1) -> int:
    """Return the number of axes of a layer's input; ValueError if there are fewer than `least`."""
    if not isinstance(input_shape, (tuple, list)) or any(isinstance(n, (tuple, list)) for n in input_shape):
        raise TypeError(f"{name}: the input shape must be a tuple of integers, got {abbreviate(input_shape)}")
    if len(input_shape) < least:
        raise ValueError(f"{name}: the input must have at least {least} axes, got the shape {abbreviate(input_shape)}")
    return len(input_shape)


def get_first_shape(name: str, input_shape: Any) -> Any:
    """Return the first input shape of a layer with several inputs."""
    if not isinstance(input_shape, (tuple, list)) or not all(isinstance(s, (tuple, list)) for s in input_shape):
        raise TypeError(f"{name}: the input shape must be a sequence of shapes, got {abbreviate(input_shape)}")
    if not input_shape:
        raise ValueError(f"{name}: there must be at least one input; the sequence of shapes is empty")
    return input_shape[0]
