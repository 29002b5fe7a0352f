"""Names of jax's private modules without a public counterpart in xtrace."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from xtrace._src.algebra.vector_space import canonical_axis, canonical_shape
from xtrace._src.api.operators.promotion import as_inexact
from xtrace._src.core.annotations import DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import aval_of
from xtrace._src.core.avals import physical_aval as physical_aval
from xtrace._src.core.diagnostics.positions import excluded_prefixes, is_internal
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.dtypes import finfo, issubdtype, prng_key
from xtrace._src.core.errors import UnexpectedTracerError
from xtrace._src.core.pytrees.key_paths import ignore_path, keystr
from xtrace._src.core.pytrees.pytree_differences import find_differences
from xtrace._src.core.sentinels import UNSPECIFIED, Unspecified  # noqa: F401
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.requested_shardings import requested_out_sharding
from xtrace._src.core.shardings.shardings import NamedSharding
from xtrace._src.core.trace import Trace, Tracer, base_trace, current_trace
from xtrace._src.core.typed_numbers import TypedComplex, TypedFloat, TypedInt  # noqa: F401
from xtrace._src.runtime.arrays import ConcreteArray as ArrayImpl  # noqa: F401
from xtrace._src.runtime.callbacks import effects_barrier
from xtrace._src.xla.clients import any_started as backends_are_initialized  # noqa: F401
from xtrace._src.xla.clients import started_clients
from xtrace._src.xla.processes.distributed import connection
from xtrace._src.xla.pytree_registry import flatten, flatten_one_level, is_node, make_treedef

parse_flags_with_absl, update = config.config.parse_flags_with_absl, config.config.update
# The error for derivatives by closed-over values of custom_vjp functions.
CustomVJPException = UnexpectedTracerError
# The classes of sizes and shapes, in annotations.
DimSize, Shape = Any, Sequence[Any]
# The value of a sharding that was not given.
UnspecifiedValue = Unspecified
# The started clients, by platform.
_backends = started_clients


class _PytreeNode(NamedTuple):
    """How nodes of a class are taken apart, into children and metadata, and made from metadata and children."""

    to_iter: Callable[[Any], Any]
    from_iter: Callable[[Any, Iterable[Any]], Any]


class _PytreeRegistry:
    """The registered classes of pytree nodes, for the operator `in` and for subscripts."""

    def __contains__(self, cls: object) -> bool:
        return isinstance(cls, type) and is_node(cls)

    def __getitem__(self, cls: type) -> _PytreeNode:
        if cls not in self:
            raise KeyError(cls)
        return _PytreeNode(flatten_one_level, functools.partial(_make_node, cls))


def _make_node(cls: type, metadata: Any, children: Iterable[Any]) -> Any:
    values = list(children)
    return make_treedef((cls, metadata), [_LEAF] * len(values)).unflatten(values)


_LEAF = flatten(0)[1]


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


class HashablePartial:
    """A function with its first arguments, which compares by both."""

    def __init__(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.f, self.args, self.kwargs = f, args, kwargs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)

    def __eq__(self, other: object) -> bool:
        return type(other) is HashablePartial and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[Any, ...]:
        return self.f, self.args, tuple(sorted(self.kwargs.items()))


class _DistributedState:
    """The connection of this process to others, under the names of jax's."""

    client = property(lambda self: getattr(connection(), "client", None))
    service = property(lambda self: getattr(connection(), "service", None))
    coordinator_address = property(lambda self: getattr(connection(), "address", None))
    num_processes = property(lambda self: getattr(connection(), "processes", 1))
    process_id = property(lambda self: getattr(connection(), "process", 0))
    preemption_sync_manager = None


global_state = _DistributedState()


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: int | Iterable[int] | None, argnames: str | Iterable[str] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return selected parameters by position and by name; one that is None follows from the other."""
    parameters = list(enumerate(sig.parameters.items()))
    numbers = () if argnums is None else (argnums,) if isinstance(argnums, int) else tuple(argnums)
    names = () if argnames is None else (argnames,) if isinstance(argnames, str) else tuple(argnames)
    if argnums is None:
        numbers = tuple(i for i, (k, p) in parameters if k in names and p.kind is p.POSITIONAL_OR_KEYWORD)
    elif argnames is None:
        names = tuple(k for i, (k, p) in parameters if i in numbers and p.kind is p.POSITIONAL_OR_KEYWORD)
    return numbers, names


def canonicalize_sharding(sharding: Any, api_name: str, check_mesh_consistency: bool = True) -> NamedSharding | None:
    """Return an ``out_sharding`` on an abstract mesh; None for one on no mesh."""
    named = requested_out_sharding(sharding, function=api_name)
    return None if named is None else NamedSharding(named.mesh.abstract_mesh, named.spec)


def full_lower(val: Any) -> Any:
    """Return the value itself."""
    return val


def get_referent(val: Any) -> Any:
    """Return the value that a tracer stands for, which tells tracers apart."""
    return val.get_referent() if isinstance(val, Tracer) else val


def dtype(x: Any) -> np.dtype[Any]:
    """Return the dtype of an array or a number."""
    return aval_of(x).dtype  # type: ignore[no-any-return]


_dtype = dtype


def to_complex_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the complex dtype of results for operands of a dtype."""
    return np.result_type(as_inexact(np.dtype(dtype), False)[0], np.complex64)


def trace_state_clean() -> bool:
    """Return whether no function is being traced."""
    return current_trace.get() is base_trace


class _TraceContext:
    """The current trace, under jax's names."""

    @property
    def trace(self) -> Trace:
        return current_trace.get()

    def is_top_level(self) -> bool:
        """Return whether no function is being traced."""
        return trace_state_clean()


trace_ctx = _TraceContext()


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


def safe_map(f: Callable[..., Any], *args: Any) -> list[Any]:
    """Return a list of the results of a function for the items of sequences of equal length."""
    return [f(*items) for items in safe_zip(*args)]


def canonicalize_axis(axis: Any, num_dims: int) -> int:
    """Return an axis counted from the front; ValueError if it is out of bounds."""
    return canonical_axis(axis, num_dims)


def canonicalize_shape(shape: Sequence[Any], context: str = "") -> tuple[int, ...]:
    """Return a shape as a tuple of integers; TypeError for other sizes."""
    return canonical_shape(shape)
