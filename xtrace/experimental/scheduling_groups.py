"""Calls with attributes for XLA's scheduler (``jax.experimental.scheduling_groups``)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xtrace._src.api.jit.jit import jit
from xtrace._src.core.callables import check_callable
from xtrace._src.core.diagnostics.source import Annotation
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.function_names import set_function_name
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.transforms.scopes import scope
from xtrace.experimental.xla_metadata import to_text_pairs

__all__ = ["scheduling_group", "xla_metadata_call"]


def scheduling_group(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator of functions: XLA's scheduler keeps their operations together, as the group `name`.

    Args:
        name: the name of the group.

    Returns:
        A decorator.

    Raises:
        TypeError: the decorated object cannot be called.

    Example:
        >>> from xtrace.experimental.scheduling_groups import scheduling_group
        >>> f = scheduling_group("first")(lambda x: jnp.sin(x) + 1)
        >>> 'scheduling_group = "first"' in xtrace.lower(f, 1.0).as_text()
        True
    """
    return functools.partial(xla_metadata_call, scheduling_group=name)


def xla_metadata_call(f: Any = None, **meta: Any) -> Any:
    """Decorate a function: programs call it by an operation with frontend attributes.

    The calls of its derivatives have the attributes, too.

    Args:
        f: a function of pytrees; None for a decorator.
        meta: the attributes; other values than strings are converted by `str`.

    Returns:
        A function with the arguments and results of `f`.

    Raises:
        TypeError: f cannot be called.

    Example:
        >>> from xtrace.experimental.scheduling_groups import xla_metadata_call
        >>> f = xla_metadata_call(lambda x: jnp.sin(x) + 1, note="a")
        >>> [line.split(" : ")[0] for line in xtrace.lower(f, 1.0).as_text().splitlines() if "note" in line]
        ['    %0 = call @xla_metadata_call(%arg0) {mhlo.frontend_attributes = {note = "a"}}']
    """
    if f is None:
        return functools.partial(xla_metadata_call, **meta)
    check_callable(f)

    call = set_function_name(lambda *args, **kwargs: f(*args, **kwargs), "xla_metadata_call")
    program, annotation = jit(call), Annotation(to_text_pairs(meta), inherited=False)

    @boundary
    @functools.wraps(f)
    def annotated_call(*args: Any, **kwargs: Any) -> Any:
        with scope(annotation):
            return program(*args, **kwargs)

    return annotated_call


_make_public(globals(), __all__)
