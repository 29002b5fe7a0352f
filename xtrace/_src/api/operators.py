"""NumPy-level elementwise functions (promoting, broadcasting), and Python's operators on arrays and tracers."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from xtrace._src.algebra.kinds import ANY, BOOL, COMPLEX, INTEGER, UNSIGNED, check_kind, is_kind
from xtrace._src.algebra.vector_space import broadcast_in_dim, convert, converted
from xtrace._src.api.dispatch import MISS
from xtrace._src.api.inline_jit import inline_jit
from xtrace._src.api.jit import run_specialised, with_code_of
from xtrace._src.api.promotion import (
    align_ranks,
    as_inexact,
    cast,
    check_broadcast,
    common_dtype,
    operand_aval,
    promote,
    promote_dtypes,
    scalar_value,
)
from xtrace._src.core import config, dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.array_protocol import operation, with_arrays
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, ShapeDtypeStruct, aval_of, int_aval, is_array_like, not_an_array
from xtrace._src.core.diagnostics.tracebacks import boundary, hide_frames
from xtrace._src.core.docstrings import docstring
from xtrace._src.core.function_names import set_function_name
from xtrace._src.core.ir import Literal
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.tables import Table
from xtrace._src.core.trace import FUSES_SEVERAL, base_trace, current_trace
from xtrace._src.ops import elementwise as lax
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.runtime.transfer import to_array, to_constant, to_operand

_Adjust = Callable[[Any, bool], tuple[Any, bool]]
_Operation = Callable[..., Any]
_Step = Callable[[Any], Any] | None
_SCALARS = frozenset((bool, int, float, complex))
_trace_of_thread = current_trace.get


def as_number(dtype: np.dtype[Any], weak: bool) -> tuple[Any, bool]:
    """The integer type of results on booleans, where booleans have no operation of their own: of 32 bits, as in JAX."""
    return (dtypes.int32, weak) if dtypes.is_boolean(dtype) else (dtype, weak)


class _NumpyFunction:
    """A NumPy-level function over an elementwise operation, which remembers how it treats operands by their types.

    `cases` gives the operation used instead for a kind of promoted dtype; an operation is a primitive, or a function of
    promoted operands. Concrete arrays go to `jitted`, the function as one program; `run_known` is that for operands of
    other types, if such have come often. `direct` has the operation to bind for operands that need no preparation;
    `plans`: pairs (settings, function of the operands), valid under these settings, or under all where they are None.
    """

    def __init__(
        self, name: str, operation: _Operation, adjust: _Adjust | None = None,
        cases: Mapping[str, _Operation] | None = None,
    ) -> None:
        self.name, self.operation, self.adjust, self.cases = name, operation, adjust, dict(cases or {})
        self.direct = Table()
        self.plans = Table()
        self.jitted = inline_jit(_renamed(self.promoted, name), inline=True)
        self.run_known = run_specialised(self.jitted)

    def promoted(self, *operands: ArrayLike) -> Array:
        """Apply to operands of any types, remembering nothing."""
        for x in operands:
            if type(x) is int:
                int_aval(x)
        ready = promote(self.name, *operands, adjust=self.adjust)
        return _apply(self.operation_for(aval_of(ready[0]).dtype), *ready)

    def operation_for(self, dtype: np.dtype[Any]) -> _Operation:
        """Return the operation for operands of `dtype`."""
        for kind, other in self.cases.items():
            if is_kind(dtype, (kind,)):
                return other
        return self.operation

    def general(self, *operands: Any) -> Array:
        """Apply to operands of types not met before, or that are no arrays, and remember how for those that can be."""
        result = self.run_known(operands, {})
        if result is not MISS:
            return result
        keys = [_type_key(x) for x in operands]
        avals, dtype, weak = common_dtype(self.name, operands, self.adjust)
        shapes = [a.shape for a in avals]
        check_broadcast(self.name, shapes)
        ranks = {len(s) for s in shapes if s}
        kinds = [type(k) for k in keys]
        if (
            not all(kind is ShapedArray or k in _SCALARS for kind, k in zip(kinds, keys, strict=True))
            or (len(ranks) > 1 and config.numpy_rank_promotion.value != "allow")
            or (ShapedArray not in kinds and _trace_of_thread().fusion_level)
        ):
            return self.jitted(*operands)
        rank = max(ranks, default=0)
        literal = ShapedArray((), dtype, weak)
        steps = [
            _array_step(k, rank, dtype, weak) if type(k) is ShapedArray else _literal_step(k, literal) for k in keys
        ]
        operation = self.operation_for(dtype)
        arrays = [(k, step) for k, step in zip(keys, steps, strict=True) if type(k) is ShapedArray]
        # What is weak, or converted, may be treated otherwise under other settings.
        ready = [not k.weak_type and k.dtype == dtype and len(k.shape) in (0, rank) for k, _ in arrays]
        # So may a Python boolean beside numbers, which strict promotion refuses.
        fixed = bool(ready) and all(ready) and (bool not in keys or dtypes.is_boolean(dtype))
        if fixed and len(arrays) == len(keys) and len(set(keys)) == 1 and isinstance(operation, Primitive):
            level = operation.fusion_level
            self.direct.remember(keys[0], (operation, _defaults(operation), level))
            return self.jitted(*operands) if _trace_of_thread().fusion_level >= level else _apply(operation, *operands)
        one = isinstance(operation, Primitive) and all(step is None for _, step in arrays)
        run = _plan(operation, steps, self.jitted, one)
        self.plans.remember(tuple(keys), (None if fixed else config.cache_key(), run))
        return run(*operands)

    def binary(self) -> Callable[[Any, Any], Any]:
        """Return the function of two operands."""
        direct, plans, settings, general = self.direct, self.plans, config.cache_key, self.general
        jitted = self.jitted

        def function(x: ArrayLike, y: ArrayLike, /) -> Any:
            try:
                if type(x) is ConcreteArray is type(y) and _trace_of_thread() is base_trace:
                    return jitted(x, y)
                left, right = getattr(x, "aval", None), getattr(y, "aval", None)
                if left is right and left is not None:
                    chosen = direct.get(left)
                    if chosen is not None:
                        trace = _trace_of_thread()
                        if trace.fusion_level >= chosen[2]:
                            return jitted(x, y)
                        return trace.process(chosen[0], (x, y), chosen[1])
                plan = plans.get((type(x) if left is None else left, type(y) if right is None else right))
                if plan is not None and (plan[0] is None or plan[0] is settings()):
                    return plan[1](x, y)
                return general(x, y)
            except BaseException as error:
                hide_frames(error)
                ready = with_arrays(error, (x, y), {})
                if ready is None:
                    raise
            return function(*ready[0])

        return set_function_name(function, self.name)

    def unary(self, by_keyword: bool) -> Callable[[Any], Any]:
        """Return the function of one operand, which may be given as `x` if `by_keyword`."""
        direct, plans, settings, general = self.direct, self.plans, config.cache_key, self.general
        jitted = self.jitted

        def function(x: ArrayLike, /) -> Any:
            try:
                if type(x) is ConcreteArray and _trace_of_thread() is base_trace:
                    return jitted(x)
                aval = getattr(x, "aval", None)
                chosen = direct.get(aval)
                if chosen is not None:
                    trace = _trace_of_thread()
                    return jitted(x) if trace.fusion_level >= chosen[2] else trace.process(chosen[0], (x,), chosen[1])
                plan = plans.get((type(x) if aval is None else aval,))
                if plan is not None and (plan[0] is None or plan[0] is settings()):
                    return plan[1](x)
                return general(x)
            except BaseException as error:
                hide_frames(error)
                ready = with_arrays(error, (x,), {})
                if ready is None:
                    raise
            return function(*ready[0])

        def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if by_keyword and not args and kwargs.keys() == {"x"}:
                return function(kwargs["x"])
            return function(*args, **kwargs)

        return with_code_of(jitted, call, set_function_name(function, self.name))

    def methods(self, symbol: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
        """Return the methods for ``array symbol other`` and ``other symbol array``: `binary` without a further call."""
        direct, plans, settings, general = self.direct, self.plans, config.cache_key, self.general
        jitted = self.jitted

        def forward(self: Any, other: object) -> Any:
            try:
                if type(self) is ConcreteArray is type(other) and _trace_of_thread() is base_trace:
                    return jitted(self, other)
                left, right = self.aval, getattr(other, "aval", None)
                if left is right:
                    chosen = direct.get(left)
                    if chosen is not None:
                        trace = _trace_of_thread()
                        if trace.fusion_level >= chosen[2]:
                            return jitted(self, other)
                        return trace.process(chosen[0], (self, other), chosen[1])
                plan = plans.get((left, type(other) if right is None else right))
                if plan is not None and (plan[0] is None or plan[0] is settings()):
                    return plan[1](self, other)
                return general(self, other) if _accepted(symbol, other) else NotImplemented
            except BaseException as error:
                hide_frames(error)
                ready = with_arrays(error, (self, other), {})
                if ready is None:
                    raise
            return forward(*ready[0])

        def reflected(self: Any, other: object) -> Array:
            try:
                left = getattr(other, "aval", None)
                plan = plans.get((type(other) if left is None else left, self.aval))
                if plan is not None and (plan[0] is None or plan[0] is settings()):
                    return plan[1](other, self)
                return general(other, self) if _accepted(symbol, other) else NotImplemented
            except BaseException as error:
                hide_frames(error)
                ready = with_arrays(error, (self, other), {})
                if ready is None:
                    raise
            return reflected(*ready[0])

        return forward, reflected


def _type_key(value: Any) -> Any:
    """Return the aval of an array, or the type of anything else."""
    aval = getattr(value, "aval", None)
    return type(value) if aval is None else aval


def _defaults(primitive: Primitive) -> tuple[Any, ...]:
    """Return the parameters that NumPy-level functions bind a primitive with."""
    return (None,) * len(primitive.parameters)


def _apply(operation: _Operation, *operands: object) -> Array:
    if isinstance(operation, Primitive):
        return operation.bind_positional(operands, _defaults(operation))
    result = operation(*operands)
    if isinstance(result, Array):
        return result
    # An operand given back as it is may be a NumPy value or a literal.
    return to_constant(result)


def _literal_step(kind: type, aval: ShapedArray) -> Callable[[Any], Literal]:
    """Return how a Python scalar of type `kind` becomes a literal of type `aval`."""
    if kind is not int and dtypes.is_floating(aval.dtype):
        return lambda value: Literal(float(value), aval)
    if kind is int and dtypes.is_integer(aval.dtype):
        limits = dtypes.iinfo(aval.dtype)
        low, high = int(limits.min), int(limits.max)
        return lambda value: Literal(value if low <= value <= high else scalar_value(value, aval.dtype), aval)
    if kind is int:

        def step(value: int) -> Literal:
            # It is an array of the default int first.
            if not -0x80000000 <= value <= 0x7FFFFFFF:
                int_aval(value)
            return Literal(scalar_value(value, aval.dtype), aval)

        return step
    return lambda value: Literal(scalar_value(value, aval.dtype), aval)


def _array_step(aval: ShapedArray, rank: int, dtype: np.dtype[Any], weak: bool) -> _Step:
    """Return how an array is converted and given leading axes; None if it needs neither."""
    conversion = None if aval.dtype == dtype and aval.weak_type == weak else (dtype, weak, None)
    missing = rank - aval.ndim if aval.shape else 0
    spreading = ((1,) * missing + aval.shape, tuple(range(missing, rank)), None) if missing else None
    if spreading is None:
        if conversion is None:
            return None
        return lambda value: _trace_of_thread().process(convert, (value,), conversion)
    if conversion is None:
        return lambda value: _trace_of_thread().process(broadcast_in_dim, (value,), spreading)

    def prepare(value: ArrayLike) -> Array:
        process = _trace_of_thread().process
        return process(broadcast_in_dim, (process(convert, (value,), conversion),), spreading)

    return prepare


def _plan(operation: _Operation, steps: Sequence[_Step], jitted: Callable[..., Any], one: bool) -> Callable[..., Any]:
    """Return the function that makes operands ready and applies `operation`; `one` says that it does the latter only.

    Eagerly, `jitted` is quicker for more, and for an array beside a scalar, which its program takes as an array.
    """
    level = operation.fusion_level if one and isinstance(operation, Primitive) else FUSES_SEVERAL
    if isinstance(operation, Primitive) and len(steps) == 2:
        left, right = steps
        parameters = _defaults(operation)
        if one and left is None and right is not None:

            def array_and_scalar(x: Array, y: bool | int | float | complex) -> Array:
                trace = _trace_of_thread()
                if trace is base_trace or trace.fusion_level >= level:
                    return jitted(x, to_operand(right(y)))
                return trace.process(operation, (x, right(y)), parameters)

            return array_and_scalar
        if one and right is None and left is not None:

            def scalar_and_array(x: bool | int | float | complex, y: Array) -> Array:
                trace = _trace_of_thread()
                if trace is base_trace or trace.fusion_level >= level:
                    return jitted(to_operand(left(x)), y)
                return trace.process(operation, (left(x), y), parameters)

            return scalar_and_array

        def bind(x: ArrayLike, y: ArrayLike) -> Array:
            trace = _trace_of_thread()
            if trace.fusion_level >= level:
                return jitted(x, y)
            return trace.process(
                operation, (x if left is None else left(x), y if right is None else right(y)), parameters
            )

        return bind

    def run(*operands: ArrayLike) -> Array:
        trace = _trace_of_thread()
        if trace.fusion_level >= level:
            return jitted(*operands)
        return _apply(operation, *[x if step is None else step(x) for x, step in zip(operands, steps, strict=True)])

    return run


def _renamed(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def renamed(*operands: ArrayLike) -> Array:
        return function(*operands)

    renamed.__name__ = renamed.__qualname__ = name
    return renamed


# The elements that operands of families may have.
NUMBERS = "numbers or booleans"
REAL_NUMBERS = "real numbers or booleans"
INTEGERS = "integers or booleans"
_DTYPES: dict[_Adjust | None, str] = {
    None: "the promoted dtype", as_number: "the promoted dtype, int32 for booleans",
    as_inexact: "the promoted dtype, as a floating one if that is integer or boolean",
}


def elementwise_docstring(
    contract: str, names: Sequence[str], adjust: _Adjust | None, *, domain: str = NUMBERS, returns: str = "",
    raises: Mapping[str, str] | None = None, example: tuple[str, str] = ("", ""), reference: str = "",
) -> str:
    """Return the docstring of an elementwise function.

    `domain` names the elements that operands may have. `returns` replaces the dtype that follows from `adjust`, and
    `raises` gives further errors.
    """
    dtype = returns or _DTYPES[adjust]
    errors = {"TypeError": f"an operand is no array or scalar of {domain}."}
    if len(names) == 1:
        arguments = {names[0]: f"an array or a scalar of {domain}."}
        result = f"An array of the operand's shape and {dtype.replace('the promoted dtype', 'dtype')}."
    else:
        arguments = {", ".join(names): f"arrays or scalars of {domain} whose shapes broadcast."}
        result = f"An array of the broadcast shape and {dtype}."
        errors["ValueError"] = "the shapes do not broadcast."
    return docstring(contract, arguments, result, errors | dict(raises or {}), example, reference)


def _public(
    function: Callable[..., Any], name: str, doc: str, names: Sequence[str], by_keyword: bool = False
) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__, function.__module__ = doc, "xtrace.numpy"
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if by_keyword else inspect.Parameter.POSITIONAL_ONLY
    function.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])  # type: ignore[attr-defined]
    return function


def binary_function(
    name: str, operation: _Operation, contract: str, *, adjust: _Adjust | None = None,
    cases: Mapping[str, _Operation] | None = None, names: Sequence[str] = ("x1", "x2"), **documentation: Any,
) -> Callable[[Any, Any], Any]:
    """Return the NumPy-level form of an elementwise operation of two operands.

    `adjust` changes the promoted dtype and weak type; `cases` gives the operation used instead for a kind of it.
    `documentation` holds the keyword arguments of `elementwise_docstring`; an inner function has neither it nor a
    contract.
    """
    doc = contract and elementwise_docstring(contract, names, adjust, **documentation)

    def define(name: str) -> Callable[[Any, Any], Any]:
        made = _NumpyFunction(name, operation, adjust, cases)
        function = _public(made.binary(), name, doc, names)
        function.methods, function.defined_as = made.methods, define  # type: ignore[attr-defined]
        return function

    return define(name)


def unary_function(
    name: str, operation: _Operation, contract: str, *, adjust: _Adjust | None = None,
    cases: Mapping[str, _Operation] | None = None, names: Sequence[str] = ("x",), by_keyword: bool = False,
    **documentation: Any,
) -> Callable[[Any], Any]:
    """Return the NumPy-level form of an elementwise operation of one operand, as `binary_function` does for two.

    `by_keyword` says that the operand may be given as `x`.
    """
    doc = contract and elementwise_docstring(contract, names, adjust, **documentation)

    def define(name: str) -> Callable[[Any], Any]:
        made = _NumpyFunction(name, operation, adjust, cases)
        function = _public(made.unary(by_keyword), name, doc, names, by_keyword)
        function.defined_as = define  # type: ignore[attr-defined]
        return function

    return define(name)


def alias(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the elementwise `function` under another name, defined once more so that it has dispatch code itself."""
    return function.defined_as(name)  # type: ignore[attr-defined]


def identity(x: Any) -> Any:
    """Return the operand."""
    return x


def _accepted(symbol: str, other: object) -> bool:
    """Whether an operator takes `other`; if not, Python asks the other operand's class, but containers are an error."""
    if type(other) in (list, tuple, dict, set):
        raise TypeError(
            f"unsupported operand for {symbol}: {not_an_array(other)}. Convert it with xtrace.numpy.asarray first."
        )
    # NumPy's values of other dtypes are operands that are wrong, not operands of unknown classes.
    if type(other) in _SCALARS or isinstance(other, (np.ndarray, np.generic)):
        return True
    return type(other) is not ShapeDtypeStruct and is_array_like(other)


# Choice


def choose(condition: Any, x: Any, y: Any) -> Any:
    """Return x where `condition` is true or not zero, y elsewhere, promoted and, whatever their ranks, broadcast.

    TypeError for an operand that is no array or scalar, ValueError for shapes that do not broadcast.
    """
    _, (x, y) = promote_dtypes("where", (x, y))
    which = truth(condition)
    shape = check_broadcast("where", [aval_of(v).shape for v in (which, x, y)])
    return lax.select_n(
        broadcast_to_shape(which, shape) if aval_of(which).shape else which, broadcast_to_shape(y, shape),
        broadcast_to_shape(x, shape),
    )


def broadcast_to_shape(value: Any, shape: tuple[int, ...]) -> Any:
    """Return `value` broadcast to `shape` by NumPy's rule."""
    own = aval_of(value).shape
    if own == shape:
        return value
    return broadcast_in_dim.bind_positional((value,), (shape, tuple(range(len(shape) - len(own), len(shape))), None))


def truth(x: Any) -> Array:
    """Return whether elements are not zero; TypeError for random keys."""
    aval = aval_of(x)
    if dtypes.is_boolean(aval.dtype):
        return x
    check_kind("bool", (aval,), (ANY,))
    return lax.ne(x, scalar_like(x, 0))


def scalar_like(example: Any, value: Any) -> Literal:
    """Return the scalar `value` in the dtype of `example`: strongly typed unless that is a weakly typed scalar."""
    aval = aval_of(example)
    return Literal(scalar_value(value, aval.dtype), ShapedArray((), aval.dtype, aval.weak_type and not aval.shape))


# Arithmetic

add = binary_function(
    "add", lax.add, "Return the sums of elements; of booleans, logical or.", cases={BOOL: lax.bitwise_or},
    example=("jnp.add(1, jnp.array([1.0, 2.0]))", "Array([2., 3.], dtype=float32)"),
)
subtract = binary_function(
    "subtract", lax.sub, "Return the differences of elements.", domain="numbers",
    example=("jnp.subtract(3, jnp.array([1.0, 2.0]))", "Array([2., 1.], dtype=float32)"),
)
multiply = binary_function(
    "multiply", lax.mul, "Return the products of elements; of booleans, logical and.", cases={BOOL: lax.bitwise_and},
    example=("jnp.multiply(3, jnp.array([1.0, 2.0]))", "Array([3., 6.], dtype=float32)"),
)
true_divide = binary_function(
    "true_divide", lax.div, "Return the quotients of elements as floating numbers.", adjust=as_inexact,
    example=("jnp.true_divide(1, 2)", "Array(0.5, dtype=float32, weak_type=True)"),
)
negative = unary_function(
    "negative", lax.neg, "Return the elements with the opposite sign.", domain="numbers",
    example=("jnp.negative(jnp.array([1.0, -2.0]))", "Array([-1.,  2.], dtype=float32)"),
)
positive = unary_function(
    "positive", identity, "Return the operand itself as an array.",
    example=("jnp.positive(jnp.array([1.0, -2.0]))", "Array([ 1., -2.], dtype=float32)"),
)
absolute = unary_function(
    "absolute", lax.abs, "Return the absolute values of elements; of complex numbers, the moduli.",
    cases={BOOL: identity, UNSIGNED: identity}, returns="the promoted dtype; for complex numbers that of their parts",
    example=("jnp.absolute(jnp.array([1.0, -2.0]))", "Array([1., 2.], dtype=float32)"),
)


def _floor_divide_signed(x: Array, y: Array) -> Array:
    # `div` rounds towards zero: one too high where there is a remainder and the signs differ.
    quotient, rest = lax.div(x, y), lax.rem(x, y)
    lower = lax.bitwise_and(lax.ne(lax.sign(x), lax.sign(y)), not_equal(rest, 0))
    return lax.select(lower, subtract(quotient, 1), quotient)


def _divmod_of_floats(x: Array, y: Array) -> tuple[Any, Any]:
    rest = lax.rem(x, y)
    # The numerator of x / 0 is x itself: rem(x, 0) is NaN.
    quotient = lax.div(choose(equal(y, 0), x, lax.sub(x, rest)), y)
    lower = lax.bitwise_and(not_equal(rest, 0), lax.ne(lax.sign(y), lax.sign(rest)))
    quotient = lax.select(lower, subtract(quotient, 1), quotient)
    return lax.round(quotient), lax.select(lower, lax.add(rest, y), rest)


def _floor_divide_floats(x: Array, y: Array) -> Array:
    return _divmod_of_floats(x, y)[0]


def _remainder(x: Array, y: Array) -> Array:
    if dtypes.is_integer(aval_of(y).dtype):
        y = choose(equal(y, 0), 1, y)
    rest = lax.rem(x, y)
    lower = lax.bitwise_and(lax.ne(less(rest, 0), less(y, 0)), not_equal(rest, 0))
    return lax.select(lower, lax.add(rest, y), rest)


floor_divide = binary_function(
    "floor_divide", _floor_divide_floats, "Return the quotients of elements, rounded down.", adjust=as_number,
    cases={UNSIGNED: lax.div, INTEGER: _floor_divide_signed}, domain=REAL_NUMBERS,
    example=("jnp.floor_divide(-7, 2)", "Array(-4, dtype=int32, weak_type=True)"),
)
remainder = binary_function(
    "remainder", _remainder,
    "Return the remainders of `floor_divide`, which have the sign of x2; 0 for an integer divided by 0.",
    adjust=as_number, domain=REAL_NUMBERS, example=("jnp.remainder(-7, 2)", "Array(1, dtype=int32, weak_type=True)"),
)


@inline_jit
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Any, Any]:
    """Return the quotients rounded down, and the remainders, which have the sign of `x2`.

    Args:
        x1, x2: arrays or scalars of real numbers or booleans whose shapes broadcast.

    Returns:
        Two arrays of the broadcast shape and the promoted dtype, int32 for booleans.

    Raises:
        TypeError: an operand is complex, or no array and no scalar.
        ValueError: the shapes do not broadcast.

    Example:
        >>> jnp.divmod(-7, 2)
        (Array(-4, dtype=int32, weak_type=True), Array(1, dtype=int32, weak_type=True))
    """
    if dtypes.is_integer(common_dtype("divmod", (x1, x2), as_number)[1]):
        return floor_divide(x1, x2), remainder(x1, x2)
    left, right = promote("divmod", x1, x2, adjust=as_number)
    return _divmod_of_floats(left, right)


def _power_of_integers(x: Array, y: Array) -> Array:
    # By squaring; of an exponent the six lowest bits count, as in JAX, but 0 ** y is 0 also where none of them is set.
    zero, one = [Literal(n, ShapedArray((), aval_of(x).dtype)) for n in (0, 1)]
    result = choose(lax.bitwise_and(equal(x, 0), not_equal(y, 0)), zero, one)
    for last in (False,) * 5 + (True,):
        result = choose(bitwise_and(y, 1), lax.mul(result, x), result)
        if not last:
            x, y = lax.mul(x, x), lax.shift_right_logical(y, cast_as(y, 1))
    return result


def cast_as(example: ArrayLike, value: ArrayLike) -> Any:
    """Return `value`, an array or a Python scalar, with the element type of `example`."""
    dtype = aval_of(example).dtype
    return cast(value, aval_of(value), dtype, False)


@inline_jit
def _power_to_integers(x: Any, y: Array) -> Array:
    avals, dtype, weak = common_dtype("power", (x, y))
    base = cast(x, avals[0], dtype, weak)
    base, exponent = align_ranks("power", [base, y], [a.shape for a in avals])
    return lax.pow(base, exponent)


_power = binary_function("power", lax.pow, "", adjust=as_number, cases={INTEGER: _power_of_integers})


def power(x1: Any, x2: Any, /) -> Array:
    """Return `x1` to the power `x2`.

    Args:
        x1, x2: arrays or scalars of numbers or booleans whose shapes broadcast. An exponent that is a Python or NumPy
            integer is multiplied out, which is exact and also differentiable at 0.

    Returns:
        An array of the broadcast shape and the promoted dtype, int32 for booleans. Of integers it is an integer; that
        of a negative exponent in an array is not meaningful.

    Raises:
        TypeError: an operand is no array or scalar, or `x1` has integers and `x2` is a negative Python integer.
        ValueError: the shapes do not broadcast.

    Example:
        >>> jnp.power(jnp.array([1.0, 2.0]), -1)
        Array([1. , 0.5], dtype=float32)
    """
    kind = type(x2)
    if kind is int or kind is bool or isinstance(x2, np.integer):
        aval = getattr(x1, "aval", None)
        if aval is None or dtypes.is_boolean(aval.dtype):
            (x1,) = promote("power", x1, adjust=as_number)
        return lax.integer_pow.bind_positional((x1,), (operator.index(x2),))
    exponent = getattr(x2, "aval", None)
    if exponent is not None and dtypes.is_integer(exponent.dtype):
        base = type(x1) if type(x1) in _SCALARS else operand_aval("power", 0, x1).dtype
        if base in (float, complex) or dtypes.is_inexact(base):
            return _power_to_integers(x1, x2)
    return _power(x1, x2)


# Bits

bitwise_and = binary_function(
    "bitwise_and", lax.bitwise_and, "Return the bits that are set in both operands.", domain=INTEGERS,
    example=("jnp.bitwise_and(12, 10)", "Array(8, dtype=int32, weak_type=True)"),
)
bitwise_or = binary_function(
    "bitwise_or", lax.bitwise_or, "Return the bits that are set in either operand.", domain=INTEGERS,
    example=("jnp.bitwise_or(12, 10)", "Array(14, dtype=int32, weak_type=True)"),
)
bitwise_xor = binary_function(
    "bitwise_xor", lax.bitwise_xor, "Return the bits that are set in exactly one of the two operands.", domain=INTEGERS,
    example=("jnp.bitwise_xor(12, 10)", "Array(6, dtype=int32, weak_type=True)"),
)
invert = unary_function(
    "invert", lax.bitwise_not, "Return the elements with every bit inverted; of booleans, logical not.",
    domain=INTEGERS, example=("jnp.invert(12)", "Array(-13, dtype=int32, weak_type=True)"),
)
left_shift = binary_function(
    "left_shift", lax.shift_left, "Return the bits of `x`, moved up by `y` places.", adjust=as_number, names=("x", "y"),
    domain=INTEGERS, example=("jnp.left_shift(3, 2)", "Array(12, dtype=int32, weak_type=True)"),
)
right_shift = binary_function(
    "right_shift", lax.shift_right_arithmetic,
    "Return the bits of `x1`, moved down by `x2` places; a signed integer's sign fills the top.", adjust=as_number,
    cases={UNSIGNED: lax.shift_right_logical}, domain=INTEGERS,
    example=("jnp.right_shift(-8, 2)", "Array(-2, dtype=int32, weak_type=True)"),
)


# Comparisons


def _comparison(
    name: str, primitive: Primitive, contract: str, *, ordered: bool = True, **documentation: Any
) -> Callable[[Any, Any], Any]:
    # Complex numbers are ordered by their real parts, those of equal real parts by the imaginary ones.
    def by_parts(x: Array, y: Array) -> Array:
        left, right = lax.real(x), lax.real(y)
        return lax.select(lax.eq(left, right), primitive(lax.imag(x), lax.imag(y)), primitive(left, right))

    cases = {COMPLEX: by_parts} if ordered else None
    return binary_function(
        name, primitive, contract, cases=cases, names=("x", "y"), returns="dtype bool", **documentation
    )


equal = _comparison(
    "equal", lax.eq, "Return whether elements are equal.", ordered=False,
    example=("jnp.equal(jnp.array([1, 2]), 2)", "Array([False,  True], dtype=bool)"),
)
not_equal = _comparison(
    "not_equal", lax.ne, "Return whether elements differ.", ordered=False,
    example=("jnp.not_equal(jnp.array([1, 2]), 2)", "Array([ True, False], dtype=bool)"),
)
less = _comparison(
    "less", lax.lt,
    "Return whether elements of `x` are smaller than those of `y`; of complex numbers, by real part first.",
    example=("jnp.less(jnp.array([1, 2]), 2)", "Array([ True, False], dtype=bool)"),
)
less_equal = _comparison(
    "less_equal", lax.le,
    "Return whether elements of `x` are smaller than or equal to those of `y`; of complex numbers, by real part first.",
    example=("jnp.less_equal(jnp.array([1, 2]), 2)", "Array([ True,  True], dtype=bool)"),
)
greater = _comparison(
    "greater", lax.gt,
    "Return whether elements of `x` are larger than those of `y`; of complex numbers, by real part first.",
    example=("jnp.greater(jnp.array([1, 2]), 2)", "Array([False, False], dtype=bool)"),
)
greater_equal = _comparison(
    "greater_equal", lax.ge,
    "Return whether elements of `x` are larger than or equal to those of `y`; of complex numbers, by real part first.",
    example=("jnp.greater_equal(jnp.array([1, 2]), 2)", "Array([False,  True], dtype=bool)"),
)


# Rounding


@inline_jit
def round_decimals(x: ArrayLike, *, decimals: int) -> Array:
    """Return `x` rounded to `decimals` places, halves to even."""
    (x,) = promote("round", x)
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        return lax.complex(*[round_decimals(part(x), decimals=decimals) for part in (lax.real, lax.imag)])
    if dtypes.is_boolean(dtype):
        raise ValueError("round does not accept dtype bool. Convert with x.astype(...) first.")
    if dtypes.is_integer(dtype):
        if decimals < 0:
            raise NotImplementedError("round of integers to a negative number of decimals is not implemented")
        return to_array(x)
    if decimals == 0:
        return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    # In float16, 10 ** decimals and the products with it leave the range too soon.
    wide = converted(x, dtypes.float32) if dtype == dtypes.float16 else x
    factor = scalar_like(wide, 10.0**decimals)
    rounded = lax.div(lax.round(lax.mul(wide, factor), lax.RoundingMethod.TO_NEAREST_EVEN), factor)
    return converted(rounded, dtype) if wide is not x else rounded


# Python's operators

# Python's name of each operator, its symbol and its function; those that start with r are made alongside.
_BINARY = {
    "add": ("+", add), "sub": ("-", subtract), "mul": ("*", multiply), "truediv": ("/", true_divide),
    "floordiv": ("//", floor_divide), "mod": ("%", remainder), "and": ("&", bitwise_and), "or": ("|", bitwise_or),
    "xor": ("^", bitwise_xor), "lshift": ("<<", left_shift), "rshift": (">>", right_shift),
}
_PLAIN = {"pow": ("**", power), "divmod": ("divmod", divmod)}
_COMPARISONS = {
    "eq": ("==", equal), "ne": ("!=", not_equal), "lt": ("<", less), "le": ("<=", less_equal),
    "gt": (">", greater), "ge": (">=", greater_equal),
}
_UNARY = {"neg": negative, "pos": positive, "abs": absolute, "invert": invert}

# Methods of the classes themselves, which fail for many values.
_CONVERSIONS = frozenset(
    (
        "__array__", "__complex__", "__delitem__", "__dlpack__", "__float__", "__format__", "__hash__", "__index__",
        "__int__", "__len__", "block_until_ready", "item", "tolist",
    )
)


def install_operators(abstract: type, *classes: type) -> None:
    """Give Python's elementwise operators to the abstract array class, and boundaries to conversions of its `classes`.

    ``xtrace/__init__.py`` does it once.
    """
    methods: dict[str, Callable[..., Any]] = {}
    for name, (symbol, function) in _BINARY.items():
        methods[f"__{name}__"], methods[f"__r{name}__"] = function.methods(symbol)  # type: ignore[attr-defined]
    for name, (symbol, function) in _PLAIN.items():
        methods[f"__{name}__"], methods[f"__r{name}__"] = _plain_methods(symbol, function)
    for name, (symbol, function) in _COMPARISONS.items():
        methods[f"__{name}__"] = function.methods(symbol)[0]  # type: ignore[attr-defined]
    methods |= {f"__{name}__": _unary_method(function) for name, function in _UNARY.items()}
    for name, method in methods.items():
        setattr(abstract, name, operation(method))
    for cls in classes:
        for name, method in list(vars(cls).items()):
            if name in _CONVERSIONS and isinstance(method, FunctionType):
                setattr(cls, name, boundary(method))


def _plain_methods(symbol: str, function: Callable[[Any, Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: Array, other: object) -> Array:
        return function(self, other) if _accepted(symbol, other) else NotImplemented

    def reflected(self: Array, other: object) -> Array:
        return function(other, self) if _accepted(symbol, other) else NotImplemented

    return forward, reflected


def _unary_method(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def method(self: Array) -> Array:
        return function(self)

    return method
