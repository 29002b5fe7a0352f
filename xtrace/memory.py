"""The memory use of programs, and the memory spaces of arrays: ``Space.Device`` and ``Space.Host``.

The module is also a function: ``xtrace.memory(f, *args)`` is ``xtrace.memory.report(f, *args)``. `device_put` takes
spaces.
"""

import sys as _sys
from collections.abc import Callable as _Callable
from types import ModuleType as _ModuleType
from typing import Any as _Any

from xtrace._src.api.jit.jit import lower as _lower
from xtrace._src.api.reports.memory_reports import MemoryReport
from xtrace._src.core.memory_spaces import MemorySpace as Space
from xtrace._src.core.public_modules import make_public as _make_public

__all__ = ["MemoryReport", "Space", "report"]


def report(fun: _Callable[..., _Any], /, *args: object, **kwargs: object) -> MemoryReport:
    """Report the memory use of a function's program, by array, line of code and time.

    The program is compiled, and does not run: arguments can be larger than the memory of this machine.

    Args:
        fun: a function of pytrees of arrays, jitted or not.
        args: its arguments, which may be ShapeDtypeStructs.
        kwargs: its keyword arguments, which may be ShapeDtypeStructs.

    Returns:
        A `MemoryReport`, which prints a table. ``fits("h200")`` tells whether the program fits another device.

    Raises:
        TypeError: `fun` is not callable, or an argument is not an array.

    Example:
        >>> report = xtrace.memory(jnp.outer, jnp.ones(1000), jnp.ones(1000))
        >>> report.memory.arguments, report.memory.results
        (8000, 4000000)
        >>> bool(report.fits(1 << 20))
        False
    """
    return _lower(fun, *args, **kwargs).compile().memory_analysis()


_make_public(globals(), __all__)


class _Report(_ModuleType):
    """A callable module: a call is a call of its function `report`."""

    def __call__(self, fun: _Callable[..., _Any], /, *args: object, **kwargs: object) -> MemoryReport:
        return report(fun, *args, **kwargs)


_sys.modules[__name__].__class__ = _Report
