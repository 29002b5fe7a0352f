"""Functions wrapped in transformations, and values stored by the transformations: ``jax.extend.linear_util``."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, TypeVar

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.sentinels import MISSING
from xtrace._src.core.value_objects import EqualByKey

__all__ = [
    "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation", "transformation2",
    "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]

_Result = TypeVar("_Result")


class StoreException(Exception):
    """A value was stored twice, or read before it was stored.

    Example:
        >>> issubclass(xtrace.extend.linear_util.StoreException, Exception)
        True
    """


class Store:
    """A container for one value."""

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value: Any = MISSING

    @property
    def val(self) -> Any:
        """The value; StoreException if there is none."""
        if self._value is MISSING:
            raise StoreException("Store empty: the function has not been called, so it has left nothing")
        return self._value

    def store(self, value: object) -> None:
        """Store a value; StoreException if there is one already."""
        if self._value is not MISSING:
            raise StoreException("Store occupied: the function has been called before")
        self._value = value

    def reset(self) -> None:
        """Remove the value."""
        self._value = MISSING

    def __bool__(self) -> bool:
        return self._value is not MISSING


class WrappedFun(EqualByKey):
    """A function with transformations around it.

    Args:
        f: the function.
        f_transformed: the function with the transformations around it.
        transforms: the transformations with their arguments, outermost first.
        stores: the stores of the transformations; None for a transformation that stores no value.
        params: keyword arguments of the function.
        in_type: the types of the arguments, or None.
        debug_info: names for messages.

    Example:
        >>> xtrace.extend.linear_util.wrap_init(lambda x: x + 1).call_wrapped(1)
        2
    """

    __slots__ = ("f", "f_transformed", "transforms", "stores", "params", "in_type", "debug_info")

    def __init__(
        self, f: Callable[..., Any], f_transformed: Callable[..., Any], transforms: tuple[Any, ...],
        stores: tuple[Store | None, ...], params: tuple[tuple[str, Any], ...], in_type: Any = None,
        debug_info: Any = None,
    ) -> None:
        self.f, self.f_transformed, self.transforms, self.stores = f, f_transformed, transforms, stores
        self.params, self.in_type, self.debug_info = params, in_type, debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(self, transformation: Callable[..., Any], arguments: tuple[Any, ...], store: Store | None) -> WrappedFun:
        """Return the function with another transformation around it; a `store` is its argument before `arguments`."""
        # The store is no part of `transforms`, so that equal functions with different stores share a cached result.
        stores = () if store is None else (store,)
        transformed = functools.partial(transformation, self.f_transformed, *stores, *arguments)
        return WrappedFun(
            self.f, transformed, ((transformation, arguments), *self.transforms), (store, *self.stores), self.params,
            None, self.debug_info,
        )

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function through its transformations."""
        return self.f_transformed(*args, **kwargs)

    def reset_stores(self) -> None:
        """Remove the stored values, so that the function may be called again."""
        for store in self.stores:
            if store is not None:
                store.reset()

    def with_unknown_names(self) -> WrappedFun:
        """Return the function without names for messages."""
        return WrappedFun(self.f, self.f_transformed, self.transforms, self.stores, self.params, self.in_type)

    def __repr__(self) -> str:
        around = "\n".join(f"{i}   : {getattr(t, '__name__', t)} {a}" for i, (t, a) in enumerate(self.transforms))
        return f"Wrapped function:\n{around}\nCore: {self.__name__}\n"

    def _key(self) -> Any:
        return self.f, self.transforms, self.params, self.in_type


def _make_decorator(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Return `function` with a partial function as the result of ``function(gen)``: so it can decorate `gen`."""

    @functools.wraps(function)
    def called(gen: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return function(gen, *args, **kwargs) if args else functools.partial(function, gen, **kwargs)

    return called


def wrap_init(f: Callable[..., Any], params: Any = None, *, debug_info: Any = None) -> WrappedFun:
    """Return a function as a `WrappedFun` without transformations.

    Args:
        f: a function.
        params: a dict of keyword arguments for every call, or None.
        debug_info: names for messages, such as the result of `xtrace.api_util.debug_info`.

    Returns:
        A `WrappedFun`.

    Raises:
        TypeError: `f` is no function.

    Example:
        >>> xtrace.extend.linear_util.wrap_init(lambda x, n: x * n, {"n": 3}).call_wrapped(2)
        6
    """
    if not callable(f):
        raise TypeError(f"wrap_init: f must be a function, got {abbreviate(f)}")
    given = {} if params is None else dict(params)
    called = functools.partial(f, **given) if given else f
    return WrappedFun(f, called, (), (), tuple(sorted(given.items())), None, debug_info)


@_make_decorator
def transformation2(gen: Callable[..., Any], fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """Put a transformation around a function.

    Args:
        gen: ``gen(function, *gen_static_args, *args, **kwargs)`` calls the function and returns the result.
        fun: a `WrappedFun`.
        gen_static_args: the first arguments of the transformation.

    Returns:
        A `WrappedFun`.

    Raises:
        AttributeError: `fun` is no `WrappedFun`.

    Example:
        >>> from xtrace.extend import linear_util
        >>> f = linear_util.wrap_init(lambda x: x + 1)
        >>> linear_util.transformation2(lambda f, x: -f(x), f).call_wrapped(1)
        -2
    """
    return fun.wrap(gen, gen_static_args, None)


@_make_decorator
def transformation_with_aux2(
    gen: Callable[..., Any], fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False,
    unk_names: bool = False,
) -> tuple[WrappedFun, Callable[[], Any]]:
    """Put a transformation around a function; the transformation also stores a value.

    Args:
        gen: ``gen(function, store, *gen_static_args, *args, **kwargs)`` calls the function, returns the result, and
            stores a value with ``store.store(value)``.
        fun: a `WrappedFun`.
        gen_static_args: more arguments of the transformation.
        use_eq_store: whether the function may be called several times; the last call's value counts.
        unk_names: whether to drop the names for messages.

    Returns:
        A `WrappedFun`, and a function that returns the value.

    Raises:
        AttributeError: `fun` is no `WrappedFun`.

    Example:
        >>> from xtrace.extend import linear_util
        >>> def noting(f, store, x):
        ...     store.store(type(x).__name__)
        ...     return f(x)
        >>> f, kind = linear_util.transformation_with_aux2(noting, linear_util.wrap_init(lambda x: x + 1))
        >>> f.call_wrapped(1), kind()
        (2, 'int')
    """
    store = _LastStore() if use_eq_store else Store()
    wrapped = fun.wrap(gen, gen_static_args, store)
    return wrapped.with_unknown_names() if unk_names else wrapped, lambda: store.val


class _LastStore(Store):
    """A store whose value may be replaced."""

    __slots__ = ()

    def store(self, value: object) -> None:
        self._value = value


@_make_decorator
def transformation(gen: Callable[..., Any], fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """Put a transformation, written as a generator, around a function.

    Args:
        gen: a generator function of the call's arguments. It yields the arguments and keyword arguments for the
            function, receives the function's result, and yields the result of the call.
        fun: a `WrappedFun`.
        gen_static_args: the first arguments of the generator.

    Returns:
        A `WrappedFun`.

    Raises:
        AttributeError: `fun` is no `WrappedFun`.

    Example:
        >>> from xtrace.extend import linear_util
        >>> def negated(x):
        ...     result = yield (x,), {}
        ...     yield -result
        >>> linear_util.transformation(negated, linear_util.wrap_init(lambda x: x + 1)).call_wrapped(1)
        -2
    """
    return fun.wrap(_run_generator, (gen, *gen_static_args), None)


def _run_generator(function: Callable[..., Any], gen: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    # Closed if the function raises, so that a trace which the generator set is not left in force.
    with contextlib.closing(gen(*args, **kwargs)) as steps:
        given, named = next(steps)
        return steps.send(function(*given, **named))


@_make_decorator
def transformation_with_aux(
    gen: Callable[..., Any], fun: WrappedFun, *gen_static_args: Any
) -> tuple[WrappedFun, Callable[[], Any]]:
    """Put a transformation, written as a generator, around a function; the transformation also stores a value.

    Args:
        gen: a generator function as for `transformation`; at last it yields the result and the value.
        fun: a `WrappedFun`.
        gen_static_args: the first arguments of the generator.

    Returns:
        A `WrappedFun`, and a function that returns the value.

    Raises:
        AttributeError: `fun` is no `WrappedFun`.

    Example:
        >>> from xtrace.extend import linear_util
        >>> def noting(x):
        ...     result = yield (x,), {}
        ...     yield result, type(x).__name__
        >>> f, kind = linear_util.transformation_with_aux(noting, linear_util.wrap_init(lambda x: x + 1))
        >>> f.call_wrapped(1), kind()
        (2, 'int')
    """
    return transformation_with_aux2(_run_generator_with_aux, fun, gen, *gen_static_args)


def _run_generator_with_aux(
    function: Callable[..., Any], store: Store, gen: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    result, value = _run_generator(function, gen, *args, **kwargs)
    store.store(value)
    return result


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """Return the value stored by one of two transformations.

    Args:
        aux1, aux2: functions that return the values of two transformations; only one transformation was called.

    Returns:
        A pair: whether the value is the first one's, and the value.

    Raises:
        StoreException: both transformations stored a value, or neither.

    Example:
        >>> from xtrace.extend import linear_util
        >>> linear_util.merge_linear_aux(lambda: 5, linear_util.transformation_with_aux2(
        ...     lambda f, store, x: f(x), linear_util.wrap_init(abs))[1])
        (True, 5)
    """
    try:
        first = aux1()
    except StoreException:
        return False, aux2()
    try:
        aux2()
    except StoreException:
        return True, first
    raise StoreException("both functions were called; call only one of them")


def cache(call: Callable[..., Any], *, explain: Any = None) -> Callable[..., Any]:
    """Return a function of a `WrappedFun` and other arguments with a cache of its results.

    Args:
        call: ``call(fun, *args)`` with hashable arguments.
        explain: not used.

    Returns:
        A function of the same arguments. A cached result fills the stores of `fun` as the first call did.

    Raises:
        TypeError: an argument of a call has no hash.

    Example:
        >>> from xtrace.extend import linear_util
        >>> squared = linear_util.cache(lambda fun, x: fun.call_wrapped(x) ** 2)
        >>> squared(linear_util.wrap_init(abs), -3)
        9
    """
    remembered: dict[Any, Any] = {}

    @functools.wraps(call)
    def cached(fun: WrappedFun, *args: Any) -> Any:
        key = (fun, args)
        if key in remembered:
            result, values = remembered[key]
            for store, value in zip(fun.stores, values, strict=True):
                if store is not None and value is not MISSING:
                    store.store(value)
            return result
        result = call(fun, *args)
        remembered[key] = result, [store.val if store else MISSING for store in fun.stores]
        return result

    cached.cache_clear = remembered.clear  # type: ignore[attr-defined]
    return cached
