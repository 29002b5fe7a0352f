"""The type of jitted functions, for type checkers and for ``isinstance``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, overload, runtime_checkable

if TYPE_CHECKING:
    from xtrace._src.api.jit.stages import Lowered, Traced

_Arguments = ParamSpec("_Arguments")
_Rest = ParamSpec("_Rest")
_Result = TypeVar("_Result", covariant=True)


@runtime_checkable
class Wrapped(Protocol[_Arguments, _Result]):
    """The result of `jit`: a function with the signature of the given one, and its stages.

    Example:
        >>> isinstance(xtrace.jit(jnp.sin), xtrace.stages.Wrapped)
        True
    """

    __name__: str
    __wrapped__: Callable[..., Any]

    def __call__(self, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        """Run the compiled function."""
        ...

    @overload
    def __get__(self, instance: None, owner: type, /) -> Self: ...

    @overload
    def __get__(
        self: Wrapped[Concatenate[Any, _Rest], _Result], instance: object, owner: type | None = None, /
    ) -> Callable[_Rest, _Result]: ...

    def __get__(self, instance: object, owner: type | None = None, /) -> Any:
        """Return the method of an instance."""

    def trace(self, *args: object, **kwargs: object) -> Traced:
        """Trace the function on arguments or ShapeDtypeStructs."""
        ...

    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """Trace the function and lower it to StableHLO."""
        ...

    def eval_shape(self, *args: object, **kwargs: object) -> Any:
        """Return the shapes and dtypes of the results."""

    def warm_up(self, *args: object, **kwargs: object) -> None:
        """Compile for arguments or ShapeDtypeStructs, without a call."""

    def warm_up_all(self, signatures: Iterable[tuple[Any, ...]]) -> None:
        """Compile for each of these tuples of positional arguments, on all cores."""

    def wait_for_compilation(self, timeout: float | None = None) -> bool:
        """Wait until all programs are fully compiled; False if this takes longer than `timeout` seconds."""
        ...

    def clear_cache(self) -> None:
        """Remove all compiled programs."""

    def cache_info(self) -> Any:
        """Return the entries of the function's cache and the reason for each compilation."""
