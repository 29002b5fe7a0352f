"""Names of jax's private modules without a public counterpart in xtrace."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from xtrace._src.core import config
from xtrace._src.core.annotations import DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import physical_aval as physical_aval
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.dtypes import finfo, issubdtype, prng_key
from xtrace._src.core.key_paths import ignore_path, keystr
from xtrace._src.core.pytree_differences import find_differences
from xtrace._src.core.source import excluded_prefixes, is_internal
from xtrace._src.core.trace import base_trace, current_trace
from xtrace._src.runtime.arrays import ConcreteArray as ArrayImpl  # noqa: F401
from xtrace._src.runtime.callbacks import effects_barrier
from xtrace._src.xla.clients import any_started as backends_are_initialized  # noqa: F401
from xtrace._src.xla.clients import started_clients
from xtrace._src.xla.pytree_registry import is_node

parse_flags_with_absl, update = config.config.parse_flags_with_absl, config.config.update
# The started clients, by platform.
_backends = started_clients


class _PytreeRegistry:
    """The registered classes of pytree nodes, for the operator `in`."""

    def __contains__(self, cls: object) -> bool:
        return isinstance(cls, type) and is_node(cls)


_registry = _PytreeRegistry()


def prefix_errors(
    prefix_tree: object, full_tree: object, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], ValueError]]:
    """Return, for each difference from a tree prefix, a function from the name of `prefix_tree` to an error."""
    predicate = None if is_leaf is None else ignore_path(is_leaf)
    differences = find_differences(prefix_tree, full_tree, predicate, prefix=True)
    return [functools.partial(_prefix_error, keystr(path), kinds) for path, kinds in differences]


def _prefix_error(path: str, kinds: str, name: str) -> ValueError:
    return ValueError(f"not a prefix: at key path {name}{path}: {kinds}")


_Function = TypeVar("_Function", bound=Callable[..., Any])


def api_boundary(fun: _Function, repro_api_name: str | None = None, **_: object) -> _Function:
    """Return the function with tracebacks of its errors that leave out the frames of libraries."""
    return boundary(fun)


# The files whose frames are left out; libraries read and extend this list.
_exclude_paths = excluded_prefixes


def include_frame(frame: Any) -> bool:
    """Return whether tracebacks show a frame."""
    return not is_internal(frame.f_code.co_filename)


def supports_inf(dtype: DTypeLike) -> bool:
    """Return whether a floating dtype has infinities."""
    return bool(np.isinf(np.asarray(np.inf).astype(finfo(dtype).dtype)))


class TypedNdArray:
    """The class of jax's constants that keep their dtype in traces; xtrace has no such values."""


def trace_state_clean() -> bool:
    """Return whether no function is being traced."""
    return current_trace.get() is base_trace


def wait_for_tokens() -> None:
    """Wait until the callbacks of all started programs have run."""
    effects_barrier()


class _KeyArrayType(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Array) and issubdtype(value.dtype, prng_key)


class PRNGKeyArray(metaclass=_KeyArrayType):
    """The class of arrays of random keys, for `isinstance` and annotations."""


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the first and the second items of pairs."""
    firsts, seconds = zip(*pairs, strict=True) if (pairs := list(pairs)) else ((), ())
    return firsts, seconds


def split_list(args: Sequence[Any], ns: Sequence[int]) -> list[list[Any]]:
    """Return parts of the given lengths of a list, and the rest."""
    bounds = [0, *itertools.accumulate(ns), len(args)]
    return [list(args[start:stop]) for start, stop in itertools.pairwise(bounds)]


def safe_zip(*args: Any) -> list[Any]:
    """Return a list of the tuples of sequences of equal length."""
    return list(zip(*map(list, args), strict=True))
