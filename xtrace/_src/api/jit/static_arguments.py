"""Splitting the arguments of a call into static ones, which stay Python values, and traced ones."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

from xtrace._src.core import callables
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.pytrees import pytree
from xtrace._src.ops.references.binding import unwrap
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.xla.executables.executables import CompileError

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def find_keyword_only_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the keyword-only parameters of a Python function; none for other callables."""
    code = getattr(function, "__code__", None)
    return () if code is None else code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]


def _as_integers(name: str, value: Any) -> tuple[int, ...]:
    if value is None:
        return ()
    try:
        values = tuple(value)
    except TypeError:  # an array without axes is an integer, though it has the methods of sequences
        values = (value,)
    try:
        return tuple(operator.index(v) for v in values)
    except TypeError:
        raise TypeError(f"jit: {name} must be an integer or a sequence of integers, got {abbreviate(value)}") from None


def _as_names(name: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    try:
        names: tuple[Any, ...] = (value,) if isinstance(value, str) else tuple(value)
    except TypeError:
        names = (None,)
    if not all(isinstance(v, str) for v in names):
        raise TypeError(f"jit: {name} must be a string or a sequence of strings, got {abbreviate(value)}")
    return names


def freeze_compiler_options(caller: str, options: object) -> tuple[tuple[str, Any], ...]:
    """Return the user's `compiler_options` in a hashable form; TypeError for invalid ones."""
    if options is None:
        return ()
    if not isinstance(options, Mapping):
        raise TypeError(
            f"{caller}: compiler_options must be a dict of XLA's options by name, got {abbreviate(options)}"
        )
    for name, value in options.items():
        if not isinstance(name, str) or not isinstance(value, (bool, int, float, str)):
            raise TypeError(
                f"{caller}: compiler_options[{abbreviate(name)}] is {abbreviate(value)}; expected an option's "
                "name as a string, and a bool, int, float or string"
            )
    return tuple(sorted(options.items()))


class Selection:
    """A selection of parameters by numbers and names; one is inferred from the other, by the signature.

    Negative numbers count from the end of the positional parameters; with ``*args``, from the end of the positional
    arguments of a call.
    """

    def __init__(self, role: str, function: Callable[..., Any], argnums: Any, argnames: Any) -> None:
        numbers, names = _as_integers(f"{role}_argnums", argnums), _as_names(f"{role}_argnames", argnames)
        self.role, self.numbers, self.names = role, numbers, names
        if not numbers and not names:
            return
        if argnums is None and type(function) is FunctionType and not vars(function):
            # For plain functions, which most are, reading the code is much faster than a signature.
            code = function.__code__
            positional = list(code.co_varnames[: code.co_argcount])
            if set(names) <= {*positional[code.co_posonlyargcount :], *find_keyword_only_names(function)}:
                self.numbers = tuple(dict.fromkeys(positional.index(n) for n in names if n in positional))
                self.names = tuple(dict.fromkeys(names))
                return
        signature = callables.find_signature(function)
        if signature is None:
            if names and role == "donate":
                raise ValueError(
                    f"jit: the parameters of {callables.function_name(function)} cannot be read, so "
                    f"donate_argnames={names} may not be there; give their positions in donate_argnums"
                )
            return
        parameters = list(signature.parameters.values())
        positional = [p.name for p in parameters if p.kind in callables.POSITIONAL]
        accepts_any = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
        count = len(positional)
        if not accepts_any and not all(-count <= n < count for n in numbers):
            raise ValueError(
                f"Jitted function has {role}_argnums={numbers}, but only accepts {count} positional arguments: "
                f"{callables.function_name(function)}{signature}"
            )
        if not accepts_any:
            numbers = tuple(n % count for n in numbers)
        nameable = {p.name for p in parameters if p.kind in _NAMED}
        accepts_any_name = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
        unnameable = {p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD} - nameable
        invalid = [n for n in names if n not in nameable and (n in unnameable or not accepts_any_name)]
        if invalid:
            raise ValueError(
                f"Jitted function has invalid argnames {set(invalid)} in {role}_argnames. "
                f"Function does not take these args: {callables.function_name(function)}{signature}"
            )
        if argnums is None:
            numbers = tuple(positional.index(n) for n in names if n in positional)
        if argnames is None:
            names = tuple(positional[n] for n in numbers if 0 <= n < count and positional[n] in nameable)
        self.numbers, self.names = tuple(dict.fromkeys(numbers)), tuple(dict.fromkeys(names))

    def positions(self, count: int) -> list[int]:
        """Return the selected positions among `count` positional arguments.

        Raises ValueError for a negative one out of range.
        """
        for n in self.numbers:
            if n < -count:
                raise ValueError(
                    f"jit: {self.role}_argnums={n} counts from the end of the positional arguments, but the call has "
                    f"{count} of them; give the parameter's name in {self.role}_argnames"
                )
        return sorted({n % count for n in self.numbers if n < count})

    def flag_leaves(self, in_tree: Any, left_out: Sequence[int]) -> list[bool]:
        """Return a flag for each leaf of ``(args, kwargs)``: whether it is part of a selected argument.

        left_out: the positions of the arguments that are not in the tree.
        """
        if not self.numbers and not self.names:
            return [False] * in_tree.num_leaves
        args, kwargs = in_tree.children()
        trees = args.children()
        count = len(trees) + len(left_out)
        numbers, selected = [n for n in range(count) if n not in left_out], set(self.positions(count))
        flags = [n in selected for n, tree in zip(numbers, trees, strict=True) for _ in range(tree.num_leaves)]
        for name, tree in zip(kwargs.node_data()[1], kwargs.children(), strict=True):
            flags += [name in self.names] * tree.num_leaves
        return flags


def check_disjoint(fun: Callable[..., Any], static: Selection, donated: Selection) -> None:
    """Raise ValueError for a parameter that is static and donated."""
    both = [*(set(static.names) & set(donated.names)), *(set(static.numbers) & set(donated.numbers))]
    if both:
        raise ValueError(
            f"jit: static and donated arguments of {callables.function_name(fun)} cannot intersect; "
            f"{abbreviate(both[0])} is in both. A static argument has no memory to donate."
        )


def _kind(value: object) -> Any:
    """Return a key that distinguishes values that are equal in Python: 1, 1.0 and True, or 0.0 and -0.0."""
    cls = type(value)
    if isinstance(value, (float, complex)):
        return (cls, repr(value)) if value == 0 else cls
    if isinstance(value, tuple):
        return (cls, *map(_kind, value))
    if isinstance(value, frozenset):
        return cls, frozenset((v, _kind(v)) for v in value)
    return cls


def same_static(one: object, other: object) -> bool:
    """Whether two static values are equal and have the same types, also inside of tuples."""
    return _same_kinds(one, other) and bool(one == other)


def _same_kinds(one: object, other: object) -> bool:
    """Whether `_kind` is the same for two values; fast if they are mostly the same objects, as in calls."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if not isinstance(one, tuple):
        return bool(_kind(one) == _kind(other))
    assert isinstance(other, tuple)
    if len(one) != len(other):
        return False
    # A loop: a call of `all` with a generator takes longer than most of these comparisons.
    for a, b in zip(one, other, strict=True):  # noqa: SIM110
        if a is not b and not _same_kinds(a, b):
            return False
    return True


class Static:
    """The static arguments of one call, hashable and equal by value and type."""

    __slots__ = ("positional", "named", "_key", "_hash")

    def __init__(self, positional: tuple[tuple[int, Any], ...], named: tuple[tuple[str, Any], ...]) -> None:
        self.positional, self.named = positional, named
        self._key = (positional, named, tuple(_kind(v) for _, v in (*positional, *named)))
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static) or self._hash != other._hash:
            return False
        try:
            return self._key == other._key
        except Exception as error:
            types = ", ".join([str(type(value)) for _, value in (*self.positional, *self.named)])
            raise ValueError(
                f"static arguments should be comparable using __eq__, and that raised {type(error).__name__}: {error}. "
                f"The types of the static arguments are {types}"
            ) from error


NO_STATIC = Static((), ())


def split_static(
    function: Callable[..., Any], chosen: Selection, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Static, tuple[Any, ...], dict[str, Any]]:
    """Return the static arguments, the other positional ones and the other keywords.

    Raises ValueError for an unhashable static argument.
    """
    if not chosen.numbers and not chosen.names:
        return NO_STATIC, args, kwargs
    positional, named = _select_arguments(chosen, args, kwargs)
    taken, taken_names = {n for n, _ in positional}, {n for n, _ in named}
    rest = tuple(a for n, a in enumerate(args) if n not in taken)
    rest_named = {n: v for n, v in kwargs.items() if n not in taken_names}
    try:
        return Static(positional, named), rest, rest_named
    except TypeError:
        for where, value in (*positional, *named):
            if (error := _hash_error(value)) is not None:
                raise ValueError(
                    "Non-hashable static arguments are not supported. Static argument "
                    f"{abbreviate(where)} of {callables.function_name(function)} is of type {type(value)}, which is "
                    f"not hashable ({error}): {abbreviate(value)}. Use a hashable equivalent (a tuple for a list, a "
                    "frozen dataclass), or do not mark it static, as arrays never are."
                ) from None
        raise


def are_hashable(chosen: Selection, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether all static arguments of a call are hashable. Iterators are not: they hash by address."""
    positional, named = _select_arguments(chosen, args, kwargs)
    return all(_hash_error(value) is None and not isinstance(value, Iterator) for _, value in (*positional, *named))


def _select_arguments(chosen: Selection, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    positional = tuple((n, args[n]) for n in chosen.positions(len(args)))
    return positional, tuple((n, kwargs[n]) for n in chosen.names if n in kwargs)


def _hash_error(value: object) -> TypeError | None:
    try:
        hash(value)
    except TypeError as error:
        return error
    return None


def flatten(
    function: Callable[..., Any], chosen: Selection, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Static, list[Any], Any]:
    """Return the static arguments, and the leaves and the structure of ``(args, kwargs)`` without them.

    An error in flattening gets a note with the name of the argument.
    """
    static, rest, rest_named = split_static(function, chosen, args, kwargs)
    try:
        leaves, in_tree = pytree.tree_flatten((rest, rest_named))
    except Exception:
        names = callables.positional_names(function, len(args))
        for name, value in [*zip(names, args, strict=True), *kwargs.items()]:
            try:
                pytree.tree_flatten(value)
            except Exception as error:
                error.add_note(f"while flattening argument {name} of {callables.function_name(function)}")
                raise
        raise
    return static, unwrap(leaves), in_tree


def join(static: Static, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments and keywords with the static ones back in their places."""
    if static is NO_STATIC:
        return list(args), kwargs
    joined = list(args)
    for n, value in static.positional:
        joined.insert(n, value)
    return joined, {**kwargs, **dict(static.named)}


def check_donation(name: str, flags: Sequence[bool], leaves: Sequence[Any], paths: Callable[[], Sequence[str]]) -> None:
    """Raise JaxRuntimeError if a donated array occurs twice among the leaves of the arguments of `name`."""
    seen: dict[int, int] = {}
    for i, leaf in enumerate(leaves):
        if type(leaf) is not ConcreteArray:
            continue
        first = seen.setdefault(id(leaf.buffer), i)
        if first != i and (flags[first] or flags[i]):
            raise CompileError(
                f"jit: the same array is passed to {name} as {paths()[first]} and {paths()[i]}, and donated: its "
                "memory would be reused while it is still read. Pass a copy (x.copy()) or do not donate it."
            )
