"""Index expressions of a grammar, read and written through, compared with jax eagerly and under jit.

An expression is an operand, an index of any kinds of items, and what is done there. Compiling is nearly all that the
comparison costs, so the expressions of one example run as one jitted function on each side; every so many of them run
eagerly too, which is compared with the same results.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from tests.support.operands import ALL, assert_same, finite_values, ours, seeds, theirs
from tests.support.shards import examples_of

pytestmark = pytest.mark.thorough

_TOGETHER = 50
_BATCHES = 10
_SHARDS = 10
_EAGERLY_EVERY = 10
_SHAPES = [(), (3,), (0,), (2, 3), (3, 1), (2, 0, 3), (3, 2, 4), (2, 3, 1, 2)]
_INDEX_DTYPES = [np.int32, np.int8, np.uint8, np.int16, np.uint32]
_MODES = [None, "clip", "fill", "drop", "promise_in_bounds"]
_WRITES = ["set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max"]
_FUNCTIONS: dict[str, Any] = {
    "negated": lambda lib, e: -e,
    "squared": lambda lib, e: e * e,
    "the larger": lambda lib, e: lib.maximum(e, e * e),
}


class Traced(NamedTuple):
    """An item of an index that is an operand of the jitted function."""

    value: np.ndarray[Any, Any]


class Expression(NamedTuple):
    """``x[index]``, ``x.at[index].get(**options)`` or ``x.at[index].method(value, **options)``."""

    operand: np.ndarray[Any, Any]
    index: Any
    method: str | None
    value: Any
    options: dict[str, Any]

    def operands(self) -> list[Any]:
        """Return what the jitted function takes: the operand, traced items and a value that is an array."""
        items = self.index if isinstance(self.index, tuple) and type(self.index) is tuple else (self.index,)
        found = [self.operand, *[i.value for i in items if isinstance(i, Traced)]]
        return [*found, self.value] if isinstance(self.value, np.ndarray) else found

    def evaluate(self, lib: Any, operands: list[Any]) -> Any:
        """Return the result with arrays of `lib` for the operands."""
        x, *rest = operands
        if type(self.index) is tuple:
            index: Any = tuple([rest.pop(0) if isinstance(i, Traced) else i for i in self.index])
        else:
            index = rest.pop(0) if isinstance(self.index, Traced) else self.index
        if self.method is None:
            return x[index]
        place = x.at[index]
        if self.method == "get":
            return place.get(**self.options)
        if self.method == "apply":
            return place.apply(functools.partial(_FUNCTIONS[self.value], lib), **self.options)
        return getattr(place, self.method)(rest[0] if rest else self.value, **self.options)


# The grammar


@functools.cache
def _slices(length: int) -> st.SearchStrategy[slice]:
    bound = st.none() | st.integers(-length - 2, length + 2)
    return st.builds(slice, bound, bound, st.none() | st.sampled_from([1, 2, 3, -1, -2]))


@st.composite
def _integer_arrays(draw: Any, shape: tuple[int, ...], length: int) -> Any:
    """Draw an index array, some of its positions out of bounds, as a constant or as an operand."""
    dtype = np.dtype(draw(st.sampled_from(_INDEX_DTYPES)))
    over = draw(st.sampled_from([0, 0, 2]))
    low = 0 if dtype.kind == "u" else -length - over
    generator = np.random.default_rng(draw(seeds))
    found = generator.integers(low, max(length + over, low + 1), shape).astype(dtype)
    return Traced(found) if draw(st.booleans()) else found


@st.composite
def _masks(draw: Any, shape: tuple[int, ...], count: int | None) -> Any:
    """Draw a mask; with `count`, one with that many true elements, that positions of other index arrays may go with."""
    generator = np.random.default_rng(draw(seeds))
    mask = np.zeros(shape, bool).reshape(-1)
    many = generator.integers(0, mask.size + 1) if count is None else min(count, mask.size)
    mask[generator.permutation(mask.size)[:many]] = True
    return mask.reshape(shape)


@st.composite
def indices(draw: Any, shape: tuple[int, ...]) -> Any:
    """Draw an index of an array of `shape`: a tuple of items, or one of them alone."""
    block = draw(st.sampled_from([(2,), (1,), (3,), (2, 2), (0,)]))
    kinds = ["integer", "slice", "slice", "array", "array", "mask", "traced"]
    items: list[Any] = []
    axis, last = 0, draw(st.integers(0, len(shape)))
    while axis < last:
        kind, length = draw(st.sampled_from(kinds)), shape[axis]
        if kind == "integer":
            items.append(draw(st.integers(-length - 2, length + 1)))
        elif kind == "traced":
            items.append(Traced(np.asarray(draw(st.integers(-length - 2, length + 1)), np.int32)))
        elif kind == "slice":
            items.append(draw(_slices(length)))
        elif kind == "array":
            rank = draw(st.integers(0, len(block)))
            own = tuple([n if draw(st.booleans()) else 1 for n in block[len(block) - rank :]])
            items.append(draw(_integer_arrays(own, length)))
        else:
            rank = draw(st.integers(1, min(2, last - axis)))
            items.append(draw(_masks(shape[axis : axis + rank], draw(st.sampled_from([None, block[-1]])))))
            axis += rank - 1
        axis += 1
    # Truth values among new axes or slices are left to the last test: jax does not follow NumPy there.
    extra = draw(st.sampled_from([[], [], [], [None], [None, None], [True], [False]]))
    for item in extra:
        place = draw(st.integers(0, len(items)))
        if item is None or not any(type(i) is slice for i in items):
            items.insert(place, item)
    if draw(st.integers(0, 2)) == 0:
        # What stands behind an ellipsis indexes the last axes; one that stands for no axes may be anywhere.
        items.append(Ellipsis)
        plain = all(type(i) in (slice, int, type(None), type(Ellipsis)) for i in items)
        if len(items) > 1 and (plain or (last == len(shape) and not any(type(i) is bool for i in items))):
            items.insert(draw(st.integers(0, len(items) - 1)), items.pop())
    return items[0] if len(items) == 1 and draw(st.booleans()) else tuple(items)


def _result_shape(shape: tuple[int, ...], index: Any) -> tuple[int, ...] | None:
    """Return the shape of ``x[index]`` by NumPy, positions moved into bounds; None if there is no such thing."""
    items = index if type(index) is tuple else (index,)
    plain = [np.asarray(i.value) if isinstance(i, Traced) else i for i in items]
    moved = [i * 0 if isinstance(i, np.ndarray) and i.dtype != bool else 0 if type(i) is int else i for i in plain]
    try:
        return np.empty(shape)[tuple(moved)].shape
    except IndexError:
        return None


@st.composite
def _values(draw: Any, dtype: Any, shape: tuple[int, ...] | None) -> Any:
    """Draw what is written: a Python scalar, or an array that broadcasts to the place (mostly)."""
    if shape is None or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from([2, -1, 2.5, True, 0]))
    own = draw(st.sampled_from([dtype, dtype, dtype, *ALL]))
    rank = draw(st.integers(0, len(shape)))
    kept = tuple([n if draw(st.booleans()) else 1 for n in shape[len(shape) - rank :]])
    return finite_values(own, kept, draw(seeds))


def _is_sorted_and_unique(index: Any) -> bool:
    """Whether an index names every element once, in order, whatever the lengths of axes are."""
    items = index if type(index) is tuple else (index,)
    arrays = [np.asarray(i.value if isinstance(i, Traced) else i) for i in items if isinstance(i, (Traced, np.ndarray))]
    return not arrays or (len(arrays) == 1 and arrays[0].dtype == bool and arrays[0].ndim == 1)


@st.composite
def expressions(draw: Any) -> Expression:
    """Draw an expression."""
    dtype, shape = np.dtype(draw(st.sampled_from(ALL))), draw(st.sampled_from(_SHAPES))
    operand, index = finite_values(dtype, shape, draw(seeds)), draw(indices(shape))
    method = draw(st.sampled_from([*[None, "get"] * 4, "apply", "set", *_WRITES]))
    if method is None:
        return Expression(operand, index, None, None, {})
    options: dict[str, Any] = {}
    if draw(st.booleans()):
        options["mode"] = draw(st.sampled_from(_MODES))
    if _is_sorted_and_unique(index):
        options |= draw(
            st.fixed_dictionaries({}, optional={"indices_are_sorted": st.just(True), "unique_indices": st.just(True)})
        )
    if draw(st.integers(0, 4)) == 0:
        options["wrap_negative_indices"] = draw(st.booleans())
    if method == "get":
        if options.get("mode") == "fill" and draw(st.booleans()):
            options["fill_value"] = draw(st.sampled_from([0, 1, True] if dtype.kind in "bu" else [0, 7, -1]))
        return Expression(operand, index, method, None, options)
    value = (
        draw(st.sampled_from(list(_FUNCTIONS)))
        if method == "apply"
        else draw(_values(dtype, _result_shape(shape, index)))
    )
    return Expression(operand, index, method, value, options)


# Comparison

_ERRORS = (NotImplementedError, IndexError, TypeError, ValueError)


def _outcome(expression: Expression, lib: Any, operands: list[Any]) -> Any:
    """Return the result, or the error's class."""
    try:
        return expression.evaluate(lib, operands)
    except _ERRORS as error:
        return type(error)


def _jitted(lib: Any, jit: Any, batch: list[Expression], convert: Any) -> list[Any]:
    """Return the outcomes of all expressions, as one program."""
    refused: dict[int, Any] = {}

    def whole(operands: list[Any]) -> list[Any]:
        found = [_outcome(e, lib, o) for e, o in zip(batch, operands, strict=True)]
        refused.update({i: x for i, x in enumerate(found) if isinstance(x, type)})
        return [x for x in found if not isinstance(x, type)]

    results = iter(jit(whole)(convert([e.operands() for e in batch])))
    return [refused[i] if i in refused else next(results) for i in range(len(batch))]


def _compare(expression: Expression, got: Any, expected: Any, how: str) -> None:
    where = f"{how}: {expression}"
    if isinstance(expected, type) or isinstance(got, type):
        # Of an array that indexes an axis without elements jax's message is about a gather's slice sizes.
        empty = 0 in expression.operand.shape
        refused = isinstance(got, type) and isinstance(expected, type)
        kind = next(c for c in _ERRORS if issubclass(expected, c)) if refused else None
        fits = refused and (issubclass(got, kind) or (empty and kind is TypeError and issubclass(got, IndexError)))
        assert fits, f"{where}: {got}, jax has {expected}"
    else:
        assert_same(got, expected, 16, where)


def _divides_complex_numbers_by_zero(expression: Expression) -> bool:
    """Whether parts of the result are NaN or infinite by when XLA divides, while it compiles or at run time."""
    complex_numbers = np.iscomplexobj(expression.operand) or np.iscomplexobj(expression.value)
    return expression.method == "divide" and complex_numbers and bool(np.any(np.asarray(expression.value) == 0))


def _check(batch: list[Expression]) -> None:
    with warnings.catch_warnings():
        # About values that lose something in the cast to the operand's dtype, or in the cast back.
        warnings.simplefilter("ignore")
        got = _jitted(jnp, xtrace.jit, batch, ours)
        expected = _jitted(jax.numpy, jax.jit, batch, theirs)
        for expression, one, other in zip(batch, got, expected, strict=True):
            _compare(expression, one, other, "under jit")
        for expression, other in list(zip(batch, expected, strict=True))[::_EAGERLY_EVERY]:
            if _divides_complex_numbers_by_zero(expression):
                continue
            if expression.method == "power":
                # Both know exponents eagerly, and refuse negative integers.
                other = _outcome(expression, jax.numpy, theirs(expression.operands()))
            _compare(expression, _outcome(expression, jnp, ours(expression.operands())), other, "eagerly")
        # Some 8 programs in jax, so one of a batch: what it has eagerly is what it has under jit, but for powers.
        if batch[0].method != "power" and not _divides_complex_numbers_by_zero(batch[0]):
            _compare(batch[0], _outcome(batch[0], jax.numpy, theirs(batch[0].operands())), expected[0], "jax itself")


@pytest.mark.slow
@pytest.mark.drawn(0.5)
@pytest.mark.parametrize("shard", range(_SHARDS))
def test_index_expressions(shard: int) -> None:
    """Each shard draws `_BATCHES` batches of `_TOGETHER` expressions: 5,000 in all."""

    @examples_of(shard)
    # The message names the expression, and shrinking would compile every batch that it tries.
    @settings(max_examples=_BATCHES, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(st.lists(expressions(), min_size=_TOGETHER, max_size=_TOGETHER))
    def compare(batch: list[Expression]) -> None:
        _check(batch)

    compare()


@pytest.mark.slow
@settings(max_examples=30)
@given(st.sampled_from([s for s in _SHAPES if 0 not in s]), st.data())
def test_truth_values_among_new_axes_index_as_in_numpy(shape: tuple[int, ...], data: st.DataObject) -> None:
    """jax takes other elements for ``x[None, True]``, so NumPy is what counts."""
    items = data.draw(st.lists(st.sampled_from([None, None, True, False, slice(None)]), min_size=1, max_size=4))
    assume(sum(type(i) is slice for i in items) <= len(shape))
    x, index = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape), tuple(items)
    np.testing.assert_array_equal(ours(x)[index], x[index])
    written = x.copy()
    written[index] = -1
    np.testing.assert_array_equal(ours(x).at[index].set(-1), written)
