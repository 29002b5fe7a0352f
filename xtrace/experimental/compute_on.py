"""Places that operations run at: the host, the device or a part of it (``jax.experimental.compute_on``)."""

from __future__ import annotations

import functools
import json
from contextlib import AbstractContextManager
from typing import Any

from xtrace._src.api.jit.jit import jit
from xtrace._src.core.callables import check_callable
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.positions import Annotation
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.function_names import set_function_name
from xtrace._src.core.memory_spaces import MemorySpace
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.pytrees import pytree
from xtrace._src.ops.shardings.device_put import place_result
from xtrace._src.transforms.scopes import annotate, scope

__all__ = ["compute_on", "compute_on2"]

# XLA's names of compute types.
_TYPES = {"device_host": "host", "device": "dense", "tpu_sparsecore": "sparseoffload"}
_STREAM = "gpu_stream:"


def _make_annotation(compute_type: object) -> Annotation:
    """Return XLA's attributes for a compute type."""
    if not isinstance(compute_type, str):
        raise TypeError(f"{called_function()}: compute_type must be a string, got {abbreviate(compute_type)}")
    if compute_type.startswith(_STREAM):
        number = compute_type.removeprefix(_STREAM)
        return Annotation((("_xla_stream_annotation", number), ("inlineable", "false")), of_place=True)
    if compute_type not in _TYPES:
        raise ValueError(
            f"{called_function()}: Invalid compute type {abbreviate(compute_type)}; it is one of "
            f"{', '.join(map(repr, _TYPES))} and '{_STREAM}#', with a number"
        )
    return Annotation((("_xla_compute_type", _TYPES[compute_type]),), of_place=True)


def compute_on(compute_type: str) -> AbstractContextManager[None]:
    """Return a context whose operations run at a place. Platforms without the place ignore it.

    Args:
        compute_type: ``"device_host"`` for the processor of the host, ``"device"``, ``"tpu_sparsecore"``, or
            ``"gpu_stream:#"`` for a stream by its number.

    Returns:
        A context manager, which decorates functions, too.

    Raises:
        TypeError: compute_type is not a string.
        ValueError: there is no such place.

    Example:
        >>> from xtrace.experimental.compute_on import compute_on
        >>> @xtrace.jit
        ... def f(x):
        ...     with compute_on("device_host"):
        ...         y = jnp.sin(x)
        ...     return y + 1
        >>> [line for line in f.lower(1.0).as_text().splitlines() if "host" in line]
        ['    %0 = stablehlo.sine %arg0 {mhlo.frontend_attributes = {_xla_compute_type = "host"}} : tensor<f32>']
    """
    return annotate(_make_annotation(compute_type))


def compute_on2(
    f: Any = None, *, compute_type: str, out_memory_spaces: Any, compiler_options: dict[str, Any] | None = None
) -> Any:
    """Decorate a function: programs call it as one unit, which runs at a place.

    Args:
        f: a function of pytrees; None for a decorator.
        compute_type: a place, as for `compute_on`.
        out_memory_spaces: the memory space of each result, such as ``xtrace.memory.Space.Device``: a pytree like the
            result, or a tree prefix.
        compiler_options: options of XLA for this unit, passed on as JSON; None for none.

    Returns:
        A function with the arguments and results of `f`.

    Raises:
        TypeError: f cannot be called, or an argument has another type.
        ValueError: there is no such place, or out_memory_spaces is not a tree prefix of the result.

    Example:
        >>> from xtrace.experimental.compute_on import compute_on2
        >>> space = xtrace.memory.Space.Device
        >>> f = compute_on2(lambda x: jnp.sin(x) + 1, compute_type="device_host", out_memory_spaces=space)
        >>> f(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    if f is None:
        return functools.partial(
            compute_on2, compute_type=compute_type, out_memory_spaces=out_memory_spaces,
            compiler_options=compiler_options,
        )
    check_callable(f)
    place = _make_annotation(compute_type)
    for space in pytree.tree_leaves(out_memory_spaces, is_leaf=lambda leaf: leaf is None):
        if not isinstance(space, MemorySpace):
            raise TypeError(
                "compute_on2: out_memory_spaces must hold memory spaces, such as xtrace.memory.Space.Device, got "
                f"{abbreviate(space)}"
            )
    extra = [("inlineable", "false")] if compute_type == "device" else []
    if compiler_options is not None:
        extra.append(("backend_config", json.dumps(compiler_options, sort_keys=True)))
    call_annotation = Annotation(tuple(extra), inherited=False)

    call = set_function_name(lambda *args, **kwargs: f(*args, **kwargs), "compute_on")
    program = jit(call)

    @boundary
    @functools.wraps(f)
    def call_at_place(*args: Any, **kwargs: Any) -> Any:
        with annotate(place), scope(call_annotation):
            results = program(*args, **kwargs)
        leaves, tree = pytree.tree_flatten(results)
        spaces = pytree.broadcast_prefix(out_memory_spaces, results)
        return tree.unflatten([place_result(x, space) for x, space in zip(leaves, spaces, strict=True)])

    return call_at_place


_make_public(globals(), __all__)
