"""Elementwise operations: a class holds the rules that they share; each definition states what differs."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from xtrace._src.algebra.kinds import (
    ANY,
    EXTENDED,
    NUMBER,
    ORDERED,
    broadcast_shapes,
    check_kind,
    check_same_dtype,
    is_kind,
    kind_names,
)
from xtrace._src.algebra.monoids import Monoid, write_reduction
from xtrace._src.algebra.vector_space import broadcast_in_dim, broadcast_like, convert_to, move_axis, unbroadcast
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.array_protocol import convert_array_objects
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import hide_frames
from xtrace._src.core.dtypes import DType
from xtrace._src.core.function_names import with_function_name
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.primitive import ArrayPrimitive, Derived, Primitive
from xtrace._src.core.settings import config
from xtrace._src.core.shardings import sum_rules
from xtrace._src.core.shardings.sharding_rules import join
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.core.trace import current_trace
from xtrace._src.core.value_objects import EqualByKey
from xtrace._src.stablehlo.builder import FunctionBuilder, Value

if TYPE_CHECKING:
    pass

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _bilinear_jvp(
    primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], **parameters: object
) -> tuple[Any, Any]:
    values = tuple(parameters.values())
    result, total = primitive.bind_positional(primals, values), None
    for position, tangent in enumerate(tangents):
        if tangent is not None:
            term = primitive.bind_positional((*primals[:position], tangent, *primals[position + 1 :]), values)
            total = term if total is None else add_any.bind_positional((total, term))
    return result, total


# The jvp rule of an operation that is linear in each of its operands.
BILINEAR = Derived(_bilinear_jvp, sum_rules.product)


class Elementwise(ArrayPrimitive):
    """An operation on corresponding elements of operands, which have one dtype unless `same_dtype` is False.

    kinds: the accepted kinds of dtype, one tuple for all operands or one for each. result: a function of the operands'
    dtypes and the parameters that returns the result's dtype, or raises TypeError; None: the first operand's dtype. op:
    the StableHLO operation, or a function (builder, *values, **parameters) -> value. cases: other operations, by the
    kind of the first operand. operands: the number of the function's parameters that are arrays. name: the name in the
    IR, if it is not the function's. has_body: whether the function normalises its other arguments and binds; without a
    body it is a signature and a docstring.

    derivatives: the terms of the result's tangent, one for each operand or one for all: a function (tangent, *operands,
    result, **parameters), or a constant factor 1, -1 or 0. With factors 1 and -1 only, the operation is linear and has
    a transpose. jvp, transpose: rules that replace these.

    returns: a description of the result's dtype, for the docstring.
    """

    def __init__(
        self, function: Callable[..., Any], op: str | Callable[..., Value], kinds: Sequence[Any], *, operands: int = 1,
        name: str | None = None, has_body: bool = False, result: Callable[..., Any] | None = None,
        same_dtype: bool = True, promoting: str | None = None, parameters: Sequence[str] = (),
        cases: Mapping[str, str | Callable[..., Value]] | None = None,
        derivatives: Any = None, jvp: Callable[..., Any] | Derived | None = None,
        transpose: Callable[..., Any] | None = None, sums: Callable[..., Any] | None = None, returns: str = "",
    ) -> None:
        operand_names = function.__code__.co_varnames[:operands]
        super().__init__(
            name or function.__name__, parameters, abstract=self._abstract, emit=self._emit, batch=self._batch,
            operation=function if has_body else None, sharding=join,
        )
        self.derivatives = derivatives
        if derivatives is not None:
            if not isinstance(derivatives, tuple):
                self.derivatives = (derivatives,) * len(operand_names)
            self.jvp = self._jvp
            if all(type(d) is int and d for d in self.derivatives):
                self.jvp, self.transpose = self._linear_jvp, self._transpose
                self.sums = sum_rules.linear_in_all
        if jvp is not None:
            self.jvp = jvp.of(self) if isinstance(jvp, Derived) else jvp
            self.sums = jvp.sums if isinstance(jvp, Derived) else self.sums
        if transpose is not None:
            self.transpose = transpose
        if sums is not None:
            self.sums = sums
        self.op, self.result, self.promoting, self.same_dtype = op, result, promoting, same_dtype
        self.cases = dict(cases or {})
        self.kinds = [tuple(kinds)] * len(operand_names) if isinstance(kinds[0], str) else list(kinds)
        self.operand_names = operand_names
        self.default_parameters = tuple((function.__kwdefaults__ or {}).values())
        if not has_body:
            self._declare_elementwise(function, returns)

    def _declare_elementwise(self, function: Callable[..., Any], returns: str) -> None:
        if all(kinds == self.kinds[0] for kinds in self.kinds[1:]):
            article = "an array or a scalar" if len(self.operand_names) == 1 else "arrays or scalars"
            arguments = {", ".join(self.operand_names): f"{article} of {kind_names(self.kinds[0])}."}
        else:
            arguments = {
                name: f"an array or a scalar of {kind_names(kinds)}."
                for name, kinds in zip(self.operand_names, self.kinds, strict=True)
            }
        shape, dtype, error = "the operand's shape", "dtype", "the operand is no array or scalar of an accepted dtype."
        if len(self.operand_names) > 1:
            shape, dtype = "the broadcast shape", "the operands' dtype"
            error = "an operand is no array or scalar of an accepted dtype, or dtypes or shapes do not agree."
        if self.result is as_bool:
            dtype = "dtype bool"
        if self.parameters:
            arguments["accuracy"] = "an `AccuracyMode` or a `Tolerance` that bounds the error; None for the usual one."
        result = f"An array of {shape} and {returns or dtype}."
        self.declare(function, arguments, result, {"TypeError": error})

    def _abstract(self, *avals: ShapedArray, **parameters: Any) -> ShapedArray:
        name = self.__name__
        check_kind(name, avals, self.kinds)
        if self.same_dtype:
            check_same_dtype(name, avals, self.promoting)
        shape = broadcast_shapes(name, [a.shape for a in avals])
        if self.result is None:
            dtype = avals[0].dtype
        else:
            dtype = self.result(*[a.dtype for a in avals], **parameters)
        return ShapedArray(shape, dtype, all(a.weak_type for a in avals))

    def _emit(self, builder: FunctionBuilder, *values: Value, **parameters: Any) -> Value:
        aval = builder.results[0]
        accuracy = parameters.get("accuracy") if parameters else None
        shape = aval.shape
        operands = [x if x.aval.shape == shape else builder.broadcast_operand(x, shape) for x in values]
        op = self.op
        for kind, other in self.cases.items():
            if is_kind(operands[0].aval.dtype, (kind,)):
                op = other
        if not isinstance(op, str):
            return op(builder, *operands, **parameters)
        signature = _signature_text(op, (aval, *[x.aval for x in operands]))
        attributes = "" if accuracy is None else f" {{result_accuracy = {accuracy.attribute()}}}"
        return builder.line(f"{op} {', '.join([x.name for x in operands])}{attributes} : {signature}", aval)

    def _jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> tuple[Any, Any]:
        result = self.bind_positional(primals, tuple(parameters.values()))
        total: Any = None
        for derivative, tangent in zip(self.derivatives, tangents, strict=True):
            if tangent is None or derivative == 0:
                continue
            if callable(derivative):
                tangent = derivative(tangent, *primals, result, **parameters)
            elif derivative < 0:
                tangent = neg.bind_positional((tangent,))
            total = tangent if total is None else add_any.bind_positional((total, tangent))
        return result, None if total is None else broadcast_like(total, result)

    def _linear_jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        for tangent in tangents:
            if tangent is None:
                return self._jvp(primals, tangents)
        return self.bind_positional(primals), self.bind_positional(tangents)

    def _transpose(self, cotangent: Array, *operands: Any, **_: Any) -> list[Any]:
        signed = {1: cotangent}
        if any(type(x) is UndefinedPrimal and d < 0 for x, d in zip(operands, self.derivatives, strict=True)):
            signed[-1] = neg.bind_positional((cotangent,))
        return [
            unbroadcast(signed[d], x.aval) if type(x) is UndefinedPrimal else None
            for x, d in zip(operands, self.derivatives, strict=True)
        ]

    def _batch(
        self, mapped: Any, operands: Sequence[Any], axes: Sequence[int | None], **parameters: Any
    ) -> tuple[Any, int]:
        operands, axis = align_mapped_axes(operands, axes)
        return self.bind_positional(operands, tuple(parameters.values())), axis

    @with_function_name("operation")
    def __call__(self, *operands: Any, **keywords: Any) -> Array:
        try:
            if self.operation is not None:
                return self.operation(*operands, **keywords)
            if keywords or len(operands) != len(self.operand_names):
                bound = self.__signature__.bind(*operands, **keywords)
                bound.apply_defaults()
                values = tuple(bound.arguments.values())
                operands = values[: len(self.operand_names)]
                return current_trace.get().process(self, operands, tuple(values[len(self.operand_names) :]))
            return current_trace.get().process(self, operands, self.default_parameters)
        except BaseException as error:
            hide_frames(error)
            ready = convert_array_objects(error, operands, keywords)
            if ready is None:
                raise
        return self(*ready[0], **ready[1])


def _signature_text(op: str, types: tuple[ShapedArray, ...]) -> str:
    """Return the type signature of an operation in MLIR's short form; `types` begins with the result's type."""
    result, *operands = [a.mlir_type for a in types]
    # CHLO always writes the arrow, and no parentheses.
    if op.startswith("chlo."):
        return f"{', '.join(operands)} -> {result}"
    return result if all(t == result for t in operands) else f"({', '.join(operands)}) -> {result}"


class AccuracyMode(enum.Enum):
    """The accuracy of a transcendental function: ``HIGHEST``, the most accurate implementation, or ``DEFAULT``.

    Example:
        >>> lax.exp(0.0, accuracy=lax.AccuracyMode.HIGHEST)
        Array(1., dtype=float32, weak_type=True)
    """

    HIGHEST = 1
    DEFAULT = 2

    def attribute(self) -> str:
        """The StableHLO attribute."""
        return f"#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<{self.name}>>"


class Tolerance(EqualByKey):
    """A bound on the error of a transcendental function.

    Args:
        atol: the absolute error.
        rtol: the relative error.
        ulps: the error in units in the last place.

    Raises:
        ValueError: a bound is negative.

    Example:
        >>> lax.exp(0.0, accuracy=lax.Tolerance(rtol=1e-6))
        Array(1., dtype=float32, weak_type=True)
    """

    __slots__ = ("atol", "rtol", "ulps")

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None:
        if atol < 0 or rtol < 0 or ulps < 0:
            raise ValueError(f"Tolerance: bounds cannot be negative; got atol={atol}, rtol={rtol}, ulps={ulps}")
        self.atol, self.rtol, self.ulps = float(atol), float(rtol), int(ulps)

    def attribute(self) -> str:
        """The StableHLO attribute."""
        return (
            f"#stablehlo.result_accuracy<atol = {self.atol:e}, rtol = {self.rtol:e}, ulps = {self.ulps}, "
            "mode = #stablehlo.result_accuracy_mode<TOLERANCE>>"
        )

    def _key(self) -> Any:
        return self.atol, self.rtol, self.ulps

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


class Unary(Elementwise):
    """An elementwise operation of one operand; its function may have the parameter `accuracy` besides."""

    def __init__(
        self, function: Callable[..., Any], op: str | Callable[..., Value], kinds: Sequence[Any], **details: Any
    ) -> None:
        parameters = ("accuracy",) if function.__kwdefaults__ else ()
        super().__init__(function, op, kinds, parameters=parameters, **details)

    @with_function_name("operation")
    def __call__(self, x: ArrayLike | Literal, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
        try:
            if accuracy is not None:
                self._check_accuracy(accuracy)
            return current_trace.get().process(self, (x,), (accuracy,) if self.parameters else ())
        except BaseException as error:
            hide_frames(error)
            ready = convert_array_objects(error, (x,), {} if accuracy is None else {"accuracy": accuracy})
            if ready is None:
                raise
        return self(*ready[0], **ready[1])

    def _check_accuracy(self, accuracy: object) -> None:
        if not self.parameters:
            raise TypeError(f"{self.__name__}() got an unexpected keyword argument 'accuracy'")
        if not isinstance(accuracy, (AccuracyMode, Tolerance)):
            raise TypeError(
                f"{self.__name__}: accuracy must be a lax.AccuracyMode, a lax.Tolerance or None; got "
                f"{abbreviate(accuracy)}"
            )


class Binary(Elementwise):
    """An elementwise operation of two operands, `x` and `y`."""

    def __init__(
        self, function: Callable[..., Any], op: str | Callable[..., Value], kinds: Sequence[Any], **details: Any
    ) -> None:
        super().__init__(function, op, kinds, operands=2, **details)

    @with_function_name("operation")
    def __call__(self, x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
        try:
            return current_trace.get().process(self, (x, y), ())
        except BaseException as error:
            hide_frames(error)
            ready = convert_array_objects(error, (x, y), {})
            if ready is None:
                raise
        return self(*ready[0])


def as_bool(*_: Any) -> Any:
    """The dtype of a comparison's result."""
    return dtypes.bool_


class Comparison(Binary):
    """A comparison; an `ordered` one does not accept complex operands.

    total: compare floats in the total order: -NaN, -inf, ..., -0.0, 0.0, ..., inf, NaN. of_words: the monoid that
    combines the comparisons of the words of random keys; None: keys are not accepted.
    """

    def __init__(
        self, function: Callable[..., Any], direction: str, promoting: str | None = None, *, ordered: bool = True,
        total: bool = False, of_words: Monoid | None = None,
    ) -> None:
        self.direction, self.total, self.of_words = direction, total, of_words
        kinds = ORDERED if ordered else ANY
        super().__init__(
            function, self._compare, kinds if of_words is None else (*kinds, EXTENDED), result=as_bool,
            promoting=promoting, derivatives=0, cases=None if of_words is None else {EXTENDED: self._compare_words},
        )

    def _compare(self, builder: FunctionBuilder, x: Value, y: Value) -> Value:
        by_total_order = self.total and dtypes.is_inexact(x.aval.dtype)
        return builder.compare(self.direction, x, y, "TOTALORDER" if by_total_order else None)

    def _compare_words(self, builder: FunctionBuilder, x: Value, y: Value) -> Value:
        assert self.of_words is not None
        words = builder.compare(self.direction, x.to_physical(), y.to_physical())
        axes = range(x.aval.ndim, words.aval.ndim)
        return write_reduction(builder, self.of_words, words, axes, ShapedArray(x.aval.shape, dtypes.bool_))


def align_mapped_axes(operands: Sequence[Any], axes: Sequence[int | None]) -> tuple[list[Any], int]:
    """Return operands of an elementwise operation with the mapped axis at one position, and that position.

    Unmapped scalars stay scalars; other unmapped operands get an axis of size 1.
    """
    # The common case needs no move: scalars, and arrays of one rank with the mapped axis at one position.
    place: int | None = None
    rank = 0
    for x, axis in zip(operands, axes):
        shape = aval_of(x).shape
        if axis is None:
            if shape:
                break
        elif place is None:
            place, rank = axis, len(shape)
        elif axis != place or len(shape) != rank:
            break
    else:
        assert place is not None
        return list(operands), place
    return _align_axes(operands, axes)


def _align_axes(operands: Sequence[Any], axes: Sequence[int | None]) -> tuple[list[Any], int]:
    # To the front, as in JAX: the position of the axis decides the order of summation in a later reduction.
    avals = [aval_of(x) for x in operands]
    ranks = [a.ndim - (i is not None) for a, i in zip(avals, axes, strict=True)]
    rank = max(ranks)
    moved = []
    for x, aval, axis, own in zip(operands, avals, axes, ranks, strict=True):
        if axis is None:
            if own:
                x = broadcast_in_dim(x, (1, *aval.shape), range(1, aval.ndim + 1))
        elif own < rank:
            x = broadcast_in_dim(x, (aval.shape[0], *[1] * rank), (0,))
        else:
            x = move_axis(x, axis, 0)
        moved.append(x)
    return moved, 0


@Unary.define("stablehlo.negate", NUMBER, derivatives=-1)
def neg(x: ArrayLike | Literal) -> Array:
    """Return the negative of each element; of unsigned integers, modulo their range.

    Example:
        >>> lax.neg(2)
        Array(-2, dtype=int32, weak_type=True)
    """
    ...


class _SumOfTangents(Binary):
    """A sum that has the weak type of its first operand, as JAX's has."""

    def _abstract(self, *avals: ShapedArray, **parameters: Any) -> ShapedArray:
        return super()._abstract(*avals).update(weak_type=avals[0].weak_type)


@_SumOfTangents.define("stablehlo.add", ANY, derivatives=1)
def add_any(x: ArrayLike | Literal, y: ArrayLike | Literal) -> Array:
    """Return the sum of tangents or cotangents."""
    ...


def add_cotangents(x: Any, y: Any) -> Any:
    """Return the sum of two cotangents; a user's dtype has its own addition."""
    dtype = aval_of(x).dtype
    return dtype.add(x, y) if isinstance(dtype, dtypes.ExtendedDType) else add_any.bind_positional((x, y))


def _product(builder: FunctionBuilder, x: Value, y: Value, *, out_dtype: DType | None) -> Value:
    if out_dtype is not None:
        x, y = builder.convert(x, out_dtype), builder.convert(y, out_dtype)
    return builder.elementwise("multiply", x, y)


def _product_dtype(x: Any, y: object, *, out_dtype: object) -> Any:
    return x if out_dtype is None else out_dtype


def _product_transpose(
    cotangent: Array, x: Array | UndefinedPrimal, y: Array | UndefinedPrimal, *, out_dtype: object
) -> list[Any]:
    linear, known = (x, y) if type(x) is UndefinedPrimal else (y, x)
    result = unbroadcast(mul.bind_positional((cotangent, known), (None,)), linear.aval)
    if aval_of(result).dtype != linear.aval.dtype:
        result = convert_to(result, linear.aval.dtype)
    return [result, None] if linear is x else [None, result]


@Elementwise.define(
    _product, NUMBER, operands=2, has_body=True, parameters=("out_dtype",), result=_product_dtype,
    promoting="multiply", jvp=BILINEAR, transpose=_product_transpose,
)
def mul(x: ArrayLike | Literal, y: ArrayLike | Literal, *, out_dtype: DTypeLike | None = None) -> Array:
    """Return the product of corresponding elements.

    Args:
        x, y: arrays or scalars of numbers of one dtype whose shapes agree, but for scalars and axes of size 1.
        out_dtype: the dtype in which to multiply; None for the operands' dtype.

    Returns:
        An array of the broadcast shape and the dtype `out_dtype`, or the operands' dtype.

    Raises:
        TypeError: an operand is no array of numbers, or dtypes or shapes do not agree.

    Example:
        >>> lax.mul(2, 3)
        Array(6, dtype=int32, weak_type=True)
    """
    if out_dtype is not None:
        out_dtype = dtypes.canonicalize(out_dtype, config.keeps_wide_dtypes())
    return mul.bind_positional((x, y), (out_dtype,))
