"""Calls of public functions with drawn arguments, compared with jax: eagerly, under `jit`, differentiated, mapped.

A *row* is a strategy for the arguments of one function. Compiling is nearly all that a comparison costs, so the calls
of a batch are one jitted program on each side.
"""

from __future__ import annotations

import contextlib
import operator
import pkgutil
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy
import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import xtrace
from tests.support.operands import assert_same, epsilon, ours, theirs
from xtrace._src.core import dtypes

# Most specific first: the class of an error is the first of these that it belongs to.
_ERRORS = (NotImplementedError, OverflowError, ZeroDivisionError, IndexError, AttributeError, TypeError, ValueError,
           AssertionError, RuntimeError)
# Ours and jax's. NumPy has ValueError for shapes that do not broadcast where jax's operations have TypeError, and an
# AxisError, which is a ValueError too, where jax looks an axis of a scalar up in a tuple.
_AS_WELL = {(ValueError, TypeError), (ValueError, IndexError), (TypeError, ValueError), (ValueError, AssertionError),
            (IndexError, ValueError), (TypeError, IndexError), (NotImplementedError, TypeError),
            (NotImplementedError, ValueError), (IndexError, AssertionError)}
# One call in so many is evaluated with jax eagerly too, which is a program per operation.
_EAGERLY_EVERY = 6


class Operand(NamedTuple):
    """An argument that is an array: traced under `jit`, differentiated or mapped where a call says so."""

    value: np.ndarray[Any, Any]
    weak: bool = False


class Row(NamedTuple):
    """How a function is called, and how its results are compared.

    arguments: a strategy for positional and keyword arguments. modes: what is done with calls besides evaluating them.
    rounding: how many roundings results may be apart, relative to themselves plus `floor`, what is cancelled on the
    way. errors: why the class of errors is not jax's, where it is not. wider: what ours takes and jax refuses, where
    there is such a thing. function: what is called, of the package, if not the public function of the row's name.
    """

    arguments: st.SearchStrategy[Any]
    modes: Sequence[str] = ("value", "vjp", "vmap")
    rounding: float = 8
    floor: float = 0.0
    errors: str = ""
    wider: str = ""
    function: Callable[[Any], Callable[..., Any]] | None = None


class Call(NamedTuple):
    """A function's name in either package, its arguments, and what is done: its value, its vjp, or it mapped."""

    function: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    mode: str
    variant: int
    of: Callable[[Any], Callable[..., Any]] | None = None

    def operands(self) -> list[Operand]:
        """Return the arrays among the arguments, as they are handed to the call."""
        found = list(_operands((self.arguments, self.keywords)))
        if self.mode == "vjp":
            return [Operand(np.where(np.isfinite(x), x, 1).astype(x.dtype), weak) if _smooth(x) else Operand(x, weak)
                    for x, weak in found]
        if self.mode == "vmap":
            axes = self.mapped(len(found))
            return [Operand(np.stack([x, np.roll(x, 1)]) if axis == 0 else x, weak)
                    for (x, weak), axis in zip(found, axes, strict=True)]
        return found

    def mapped(self, count: int) -> list[int | None]:
        """Return the mapped axis of each operand under `vmap`; one has one at least."""
        return [0 if i == self.variant % count or (self.variant >> i) & 2 else None for i in range(count)]

    def plain(self, package: Any, operands: Sequence[Any]) -> Any:
        """Return the function's result with the given arrays for its operands."""
        arguments, keywords = _filled((self.arguments, self.keywords), iter(operands))
        function = self.of(package) if self.of else pkgutil.resolve_name(f"{package.__name__}.{self.function}")
        return function(*arguments, **keywords)

    def evaluate(self, package: Any, operands: Sequence[Any]) -> Any:
        """Return what the call's mode asks for."""
        if self.mode == "vmap" and operands:
            return package.vmap(lambda *a: self.plain(package, a), self.mapped(len(operands)))(*operands)
        smooth = [i for i, x in enumerate(operands) if _smooth(x)]
        if self.mode != "vjp" or not smooth:
            return self.plain(package, operands)

        def of_smooth(*values: Any) -> list[Any]:
            full = list(operands)
            for i, x in zip(smooth, values, strict=True):
                full[i] = x
            leaves = package.tree.leaves(self.plain(package, full))
            return [y for y in leaves if _is_array(y) and _smooth(y)]

        results, pullback = package.vjp(of_smooth, *[operands[i] for i in smooth])
        cotangents = [package.numpy.asarray(numbers(y.dtype, y.shape, i, "quarters")) for i, y in enumerate(results)]
        # Which of jax's rules keep weak types is no contract, so those of derivatives are dropped.
        return results, [package.lax.convert_element_type(x, x.dtype) for x in pullback(cotangents)]

    def __str__(self) -> str:
        return f"{self.mode} of {self.function}(*{self.arguments}, **{self.keywords})"


def _smooth(x: Any) -> bool:
    return dtypes.is_inexact(np.dtype(x.dtype))


def _operands(tree: Any) -> Iterator[Operand]:
    if isinstance(tree, Operand):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            yield from _operands(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from _operands(item)


def _filled(tree: Any, operands: Iterator[Any]) -> Any:
    if isinstance(tree, Operand):
        return next(operands)
    if type(tree) in (list, tuple):
        return type(tree)([_filled(item, operands) for item in tree])
    if isinstance(tree, dict):
        return {key: _filled(item, operands) for key, item in tree.items()}
    return tree


# Drawing


def numbers(dtype: Any, shape: Sequence[int], seed: int, kind: str = "quarters") -> np.ndarray[Any, Any]:
    """Return values of `dtype`.

    kind: "quarters" are multiples of 1/4 from -2 to 2 (integers from -4 to 4), of which sums and products of a few are
    exact in every dtype, "positive" ones those from 1/4 to 4; "unit" are between -1 and 1, "large" between -30 and
    30; "any" are over the whole range of integers, and infinities, NaN and zeros of both signs among floats.
    """
    dtype, generator = np.dtype(dtype), np.random.default_rng(seed)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if dtypes.is_complex(dtype):
        real, imaginary = (numbers(dtypes.real_part_dtype(dtype), shape, seed + i, kind) for i in range(2))
        return np.asarray(real + 1j * np.where(np.isfinite(imaginary), imaginary, 1)).astype(dtype)
    if dtypes.is_integer(dtype):
        bounds = dtypes.iinfo(dtype)
        low = max({"positive": 1, "large": -30}.get(kind, -4), int(bounds.min))
        high = min(30, int(bounds.max)) if kind == "large" else 4
        found = generator.integers(low, high, shape, dtype=np.int64, endpoint=True).astype(dtype)
        if kind != "any":
            return found
        wide = generator.integers(int(bounds.min), int(bounds.max), shape, dtype=dtype, endpoint=True)
        return np.where(generator.integers(0, 2, shape) == 1, found, wide).astype(dtype)
    if kind in ("quarters", "positive"):
        found = generator.integers(1 if kind == "positive" else -8, 8, shape, endpoint=True) / 4
        return np.asarray(found * (2 if kind == "positive" else 1)).astype(dtype)
    size = {"unit": 1, "large": 30}.get(kind, 4)
    found = generator.uniform(-size, size, shape)
    if kind == "any":
        special = np.array([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan, 100.0])
        found = np.where(generator.integers(0, 4, shape) == 0, generator.choice(special, shape), found)
    return np.asarray(found).astype(dtype)


def drawn_calls(name: str, row: Row, number: int, count: int) -> list[Call]:
    """Return the calls of the function `name` that belong to a number: always the same ones."""
    found: list[Call] = []

    @seed(zlib.crc32(f"{name} {number}".encode()))
    @settings(max_examples=count + 1, database=None, deadline=None, phases=[Phase.generate], derandomize=False,
              suppress_health_check=list(HealthCheck))
    @given(row.arguments, st.sampled_from(row.modes), st.integers(0, 63))
    def collect(arguments: Any, mode: str, variant: int) -> None:
        found.append(Call(name, *arguments, mode, variant, row.function))

    collect()
    # The first one is the simplest, whatever the number.
    return found[1:] if number else found[:count]


# Running


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, (np.ndarray, np.generic))


def _outcome(function: Callable[[], Any]) -> Any:
    """Return the result, or the class of the error."""
    try:
        return function()
    except _ERRORS as error:
        return next(c for c in _ERRORS if isinstance(error, c))


def _failed(outcome: Any) -> bool:
    return isinstance(outcome, type) and issubclass(outcome, Exception)


def converted_operands(call: Call, convert: Any, x64: bool) -> list[Any]:
    """Return the arrays that `convert` makes of the operands of a call, in dtypes that there are."""
    return [convert(_of_width(x, weak, x64), weak) for x, weak in call.operands()]


def _of_width(x: np.ndarray[Any, Any], weak: bool, x64: bool) -> np.ndarray[Any, Any]:
    """Return `x` in a dtype that there is: without x64 those of 32 bits, with it weak ones of 64."""
    if x64 and weak:
        return x.astype({"i": np.int64, "f": np.float64, "c": np.complex128}[x.dtype.kind])
    narrow = {"int64": np.int32, "uint64": np.uint32, "float64": np.float32, "complex128": np.complex64}
    with np.errstate(all="ignore"):
        return x if x64 else x.astype(narrow.get(x.dtype.name, x.dtype))


def _jitted(package: Any, calls: Sequence[Call], operands: Sequence[Any]) -> list[Any]:
    """Return the outcomes of the calls as one program's results."""
    traced: list[Any] = []

    def whole(operands: Any) -> list[Any]:
        traced[:] = [_outcome(lambda c=c, o=o: c.evaluate(package, o)) for c, o in zip(calls, operands, strict=True)]
        return [leaf for outcome in traced for leaf in package.tree.leaves(outcome) if _is_array(leaf)]

    compiled = _outcome(lambda: package.jit(whole)(list(operands)))
    if _failed(compiled):
        # What XLA refuses keeps the whole program from being compiled, and jax lowers what it maps late.
        if len(calls) == 1:
            return [compiled]
        half = len(calls) // 2
        return _jitted(package, calls[:half], operands[:half]) + _jitted(package, calls[half:], operands[half:])
    results = iter(compiled)
    return [package.tree.map(lambda leaf: next(results) if _is_array(leaf) else leaf, t) for t in traced]


def differences(calls: Sequence[Call], rows: Sequence[Row], x64: bool) -> list[str]:
    """Return a line for each of the calls whose outcome is not jax's."""
    found = []
    with warnings.catch_warnings(), xtrace.enable_x64(x64), jax.enable_x64(x64):
        warnings.simplefilter("ignore")
        mine, other = ([converted_operands(c, convert, x64) for c in calls] for convert in (ours, theirs))
        got, expected = _jitted(xtrace, calls, mine), _jitted(jax, calls, other)
        for i, (call, row) in enumerate(zip(calls, rows, strict=True)):
            wanted = expected[i]
            found += _difference(got[i], wanted, row, call, "jitted")
            if call.mode != "value":
                continue
            # What a value is needed for fails under jit only.
            if _failed(wanted) or i % _EAGERLY_EVERY == 0:
                wanted = _outcome(lambda call=call, i=i: call.evaluate(jax, other[i]))
            found += _difference(
                _outcome(lambda call=call, i=i: call.evaluate(xtrace, mine[i])), wanted, row, call, "eager"
            )
    return found


# Settings that judge the operands that a user hands over, and not what a function does with them.
_FLAGS = (("numpy_rank_promotion", "raise"), ("numpy_dtype_promotion", "strict"))


def flag_differences(calls: Sequence[Call], number: int, wider: Collection[str]) -> list[str]:
    """Return a line for each of the calls that is refused under one of the flags where jax's is not, or the reverse.

    Functions in `wider` may be refused by jax alone. Programs are traced and not compiled: one that is accepted must
    be the one that it is without the flag.
    """
    found, x64 = [], bool(number % 2)
    with warnings.catch_warnings(), xtrace.enable_x64(x64), jax.enable_x64(x64):
        warnings.simplefilter("ignore")
        for i, call in enumerate(calls):
            operands, other = (converted_operands(call, convert, x64) for convert in (ours, theirs))
            flag = _FLAGS[(i + number // 2) % 2]
            plain = _traced(xtrace, call, operands)
            if isinstance(plain, Exception):
                continue
            got, expected = _traced(xtrace, call, operands, flag), _traced(jax, call, other, flag)
            if isinstance(got, Exception):
                if not isinstance(expected, Exception):
                    found.append(f"{flag} refuses {call}: {got}")
            elif isinstance(expected, Exception):
                if "promotion" in str(expected) and call.function not in wider:
                    found.append(f"{flag} accepts {call}; jax: {expected}")
            elif got != plain:
                found.append(f"{flag} changes {call}: from {plain} to {got}")
    return found


def _traced(package: Any, call: Call, operands: Sequence[Any], flag: tuple[str, str] | None = None) -> Any:
    """Return the text of the call's program, or the error."""

    def results(*values: Any) -> list[Any]:
        return [leaf for leaf in package.tree.leaves(call.evaluate(package, values)) if _is_array(leaf)]

    try:
        with getattr(package, flag[0])(flag[1]) if flag else contextlib.nullcontext():
            return str(package.make_jaxpr(results)(*operands))
    except _ERRORS as error:
        return error


# How operands are handed over in place of what was drawn: which of them are weakly typed, and which are numbers.
_WEAKENED = ("all", "first", "others", "numbers", "first number")


def weakened(call: Call, variant: int) -> Call:
    """Return the call with weakly typed operands, or Python's numbers, in place of some of its operands."""
    how = _WEAKENED[variant % len(_WEAKENED)]
    count = iter(range(64))

    def changed(tree: Any) -> Any:
        if isinstance(tree, Operand):
            return operand(tree, next(count))
        if type(tree) in (list, tuple):
            return type(tree)([changed(item) for item in tree])
        return {key: changed(item) for key, item in tree.items()} if isinstance(tree, dict) else tree

    def operand(given: Operand, i: int) -> Any:
        x = given.value
        kind = x.dtype.kind if x.dtype.kind in "biufc" else "f"
        if (how.startswith("first") and i) or (how == "others" and not i) or (kind == "b" and how != "numbers"):
            return given
        if "number" in how and x.size and (how != "numbers" or not x.ndim):
            number = x.ravel()[0]
            return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[kind](number)
        if kind == "b":
            return given
        with np.errstate(all="ignore"):
            return Operand(x.astype({"f": np.float32, "c": np.complex64}.get(kind, np.int32)), True)

    return call._replace(arguments=changed(call.arguments), keywords=changed(call.keywords), mode="value")


def type_differences(calls: Sequence[Call], x64: bool) -> list[str]:
    """Return a line for each of the calls whose results are not of jax's types, weak ones told from strong ones."""
    found = []
    with warnings.catch_warnings(), xtrace.enable_x64(x64), jax.enable_x64(x64):
        warnings.simplefilter("ignore")
        for call in calls:
            got, expected = (
                _types(package, call, converted_operands(call, convert, x64))
                for package, convert in ((xtrace, ours), (jax, theirs))
            )
            if got != expected and not isinstance(expected, Exception) and not isinstance(got, Exception):
                found.append(f"{call}: {got}, jax: {expected}")
    return found


def setting_differences(calls: Sequence[Call], setting: str, value: Any, wider: bool) -> list[str]:
    """Return a line for each of the calls that a setting changes otherwise than in jax: its types, or its error.

    wider: whether jax alone may refuse a call. Programs are traced and not compiled.
    """
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls:
            plain, under = [], []
            for package, convert in ((xtrace, ours), (jax, theirs)):
                operands = converted_operands(call, convert, False)
                plain.append(_types(package, call, operands))
                before = package.config.values[setting]
                package.config.update(setting, value)
                try:
                    under.append(_types(package, call, operands))
                finally:
                    package.config.update(setting, before)
            if plain[0] != plain[1]:
                # Other tests are about these.
                continue
            same = under[0] == under[1]
            if isinstance(under[0], Exception) and isinstance(under[1], Exception):
                same = type(under[0]).__name__ == type(under[1]).__name__
            if not same and not (wider and isinstance(under[1], Exception) and under[0] == plain[0]):
                found.append(f"{setting}={value} {call}: {under[0]!r}, jax: {under[1]!r}")
    return found


def _types(package: Any, call: Call, operands: Sequence[Any]) -> Any:
    """Return the shapes, dtypes and weakness of a call's results, or the error."""
    types: list[Any] = []

    def results(*values: Any) -> list[Any]:
        leaves = [leaf for leaf in package.tree.leaves(call.evaluate(package, values)) if _is_array(leaf)]
        types[:] = [(leaf.shape, str(leaf.dtype), bool(getattr(leaf, "weak_type", False))) for leaf in leaves]
        return leaves

    try:
        package.make_jaxpr(results)(*operands)
    except Exception as error:
        return error
    return types


def _difference(got: Any, expected: Any, row: Row, call: Call, how: str) -> list[str]:
    if _failed(expected) and (row.wider if not _failed(got) else row.errors or (got, expected) in _AS_WELL):
        return []
    try:
        _assert_same(got, expected, row, _coarsest(call))
    except AssertionError as error:
        return [f"{how} {call}: {error}"]
    return []


def _coarsest(call: Call) -> float:
    """Return the widest spacing among the dtypes of floating operands."""
    return max((epsilon(x.value.dtype) for x in _operands((call.arguments, call.keywords))), default=0.0)


def _assert_same(got: Any, expected: Any, row: Row, spacing: float) -> None:
    if isinstance(expected, (list, tuple)):
        fields = [getattr(type(x), "_fields", type(x)) for x in (got, expected)]
        assert fields[0] == fields[1], f"{type(got)}, jax gives {type(expected)}"
        assert len(got) == len(expected), f"{len(got)} results, jax gives {len(expected)}"
        for one, two in zip(got, expected, strict=True):
            _assert_same(one, two, row, spacing)
    elif isinstance(expected, dict):
        assert type(got) is type(expected) and got.keys() == expected.keys(), f"{got!r}, jax gives {expected!r}"
        for key, value in expected.items():
            _assert_same(got[key], value, row, spacing)
    elif _is_array(expected):
        assert _is_array(got), f"{got!r}, jax gives {expected!r}"
        # A result of high precision may come from operands of low precision.
        coarser = max(spacing / own, 1.0) if (own := epsilon(expected.dtype)) else 1.0
        assert_same(got, expected, row.rounding * coarser, floor=row.floor)
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert type(got) is type(expected) and got.dtype == expected.dtype, f"{got!r}, jax gives {expected!r}"
        np.testing.assert_array_equal(got, expected)
    else:
        assert type(got) is type(expected) and operator.eq(got, expected), f"{got!r}, jax gives {expected!r}"
