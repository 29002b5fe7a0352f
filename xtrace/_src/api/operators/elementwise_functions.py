"""NumPy-level forms of elementwise operations: operands of any types are promoted and broadcast, in one program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from xtrace._src.algebra.kinds import is_kind
from xtrace._src.algebra.vector_space import broadcast_in_dim, check_broadcast, convert
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.jit.jit import run_specialised, with_code_of
from xtrace._src.api.operators import promotion
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.array_protocol import convert_array_objects
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, ShapeDtypeStruct, aval_of, int_aval, is_array_like, not_an_array
from xtrace._src.core.callables import LazySignature
from xtrace._src.core.diagnostics.tracebacks import hide_frames
from xtrace._src.core.docstrings import complete_docstring
from xtrace._src.core.function_names import set_function_name
from xtrace._src.core.jaxprs.ir import Literal
from xtrace._src.core.primitive import ArrayPrimitive, Primitive
from xtrace._src.core.sentinels import MISS
from xtrace._src.core.settings import config
from xtrace._src.core.tables import Table
from xtrace._src.core.trace import FUSES_SEVERAL, base_trace, current_trace
from xtrace._src.runtime.arrays import DELETED, ConcreteArray
from xtrace._src.runtime.transfer import current_device, to_constant, to_operand

_Adjust = Callable[[Any, bool], tuple[Any, bool]]
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Operation = Callable[..., Array]
_Step = Callable[[Any], Any] | None
SCALARS = frozenset((bool, int, float, complex))
_SCALARS_PER_PLAN = 64
_trace_of_thread = current_trace.get


def as_number(dtype: np.dtype[Any], weak: bool) -> tuple[Any, bool]:
    """Return int32 for booleans, as in JAX, for an operation without a boolean form; other dtypes unchanged."""
    return (dtypes.int32, weak) if dtypes.is_boolean(dtype) else (dtype, weak)


class _NumpyFunction:
    """A NumPy-level function over an elementwise operation; it remembers plans for operands of given types.

    An operation is a primitive, or a function of promoted operands; `cases` replaces it for a kind of promoted dtype.
    Concrete arrays go to `jitted`, the function as one program; `run_known` calls its specialised code for operands of
    other types. `direct` maps a type to the operation to bind for operands that need no preparation. `plans` maps types
    to pairs (settings, function of the operands), which are valid under these settings; None is for all settings.
    """

    def __init__(
        self, name: str, operation: _Operation, adjust: _Adjust | None = None,
        cases: Mapping[str, _Operation] | None = None,
    ) -> None:
        self.name, self.operation, self.adjust, self.cases = name, operation, adjust, dict(cases or {})
        self.direct = Table()
        self.plans = Table()
        jitted: Any = inline_jit(_rename(self.apply_promoting, name), inline=True)
        self.jitted: Callable[..., Array] = jitted
        self.run_known = run_specialised(jitted._xtrace_jitted)

    def apply_promoting(self, *operands: ArrayLike) -> Array:
        """Apply to operands of any types, without remembering a plan."""
        for x in operands:
            if type(x) is int:
                int_aval(x)
        ready = promotion.promote(*operands, adjust=self.adjust, function=self.name)
        return _apply(self.operation_for(aval_of(ready[0]).dtype), *ready)

    def operation_for(self, dtype: np.dtype[Any]) -> _Operation:
        """Return the operation for operands of `dtype`."""
        for kind, other in self.cases.items():
            if is_kind(dtype, (kind,)):
                return other
        return self.operation

    def general(self, *operands: Any) -> Array:
        """Apply to operands of new types, or operands that are no arrays, and remember a plan if that is possible."""
        result: Array = self.run_known(operands, {})
        if result is not MISS:
            return result
        keys = [_type_key(x) for x in operands]
        avals, dtype, weak = promotion.common_dtype(operands, self.adjust, function=self.name)
        shapes = [a.shape for a in avals]
        check_broadcast(shapes, function=self.name)
        ranks = {len(s) for s in shapes if s}
        kinds = [type(k) for k in keys]
        if (
            not all(kind is ShapedArray or k in SCALARS for kind, k in zip(kinds, keys, strict=True))
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
        # The plan depends on the settings if an operand is weak or converted, or if it is a Python boolean beside
        # numbers, which strict promotion refuses.
        ready = [not k.weak_type and k.dtype == dtype and len(k.shape) in (0, rank) for k, _ in arrays]
        fixed = bool(ready) and all(ready) and (bool not in keys or dtypes.is_boolean(dtype))
        if fixed and len(arrays) == len(keys) and len(set(keys)) == 1 and isinstance(operation, ArrayPrimitive):
            level = operation.fusion_level
            self.direct.remember(keys[0], (operation, _defaults(operation), level))
            return self.jitted(*operands) if _trace_of_thread().fusion_level >= level else _apply(operation, *operands)
        one = isinstance(operation, ArrayPrimitive) and all(step is None for _, step in arrays)
        run = _plan(operation, steps, self.jitted, one)
        self.plans.remember(tuple(keys), (None if fixed else config.cache_key(), run))
        return run(*operands)

    def binary(self) -> Callable[[Any, Any], Any]:
        """Return the function of two operands."""
        function = set_function_name(self._dispatch(self.general), self.name)
        vars(function).update(self.jitted._xtrace_jitted.stage_attributes())  # type: ignore[attr-defined]
        return function

    def _dispatch(self, general: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Return the function of two operands that calls `general` for operands without a plan."""
        direct, plans, settings = self.direct, self.plans, config.cache_key
        jitted = self.jitted

        def function(x: ArrayLike, other: ArrayLike, /) -> Any:
            try:
                if type(x) is ConcreteArray is type(other) and _trace_of_thread() is base_trace:
                    return jitted(x, other)
                left, right = getattr(x, "aval", None), getattr(other, "aval", None)
                if left is right and left is not None:
                    chosen = direct.get(left)
                    if chosen is not None:
                        trace = _trace_of_thread()
                        if trace.fusion_level >= chosen[2]:
                            return jitted(x, other)
                        return trace.process(chosen[0], (x, other), chosen[1])
                plan = plans.get((type(x) if left is None else left, type(other) if right is None else right))
                if plan is not None and (plan[0] is None or plan[0] is settings()):
                    return plan[1](x, other)
                return general(x, other)
            except BaseException as error:
                hide_frames(error)
                ready = convert_array_objects(error, (x, other), {})
                if ready is None:
                    raise
            return function(*ready[0])

        return function

    def unary(self, by_keyword: bool) -> Callable[[Any], Any]:
        """Return the function of one operand; by_keyword: whether the operand may be given as `x`."""
        direct, plans, settings, general = self.direct, self.plans, config.cache_key, self.general
        jitted: Any = self.jitted

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
                ready = convert_array_objects(error, (x,), {})
                if ready is None:
                    raise
            return function(*ready[0])

        def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if by_keyword and not args and kwargs.keys() == {"x"}:
                return function(kwargs["x"])
            return function(*args, **kwargs)

        return with_code_of(jitted._xtrace_jitted, call, set_function_name(function, self.name))

    def methods(self, symbol: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
        """Return the methods for ``array symbol other`` and ``other symbol array``, which do not call `binary`."""
        plans, settings, general = self.plans, config.cache_key, self.general

        def accept(array: Any, other: object) -> Any:
            return general(array, other) if is_accepted_operand(symbol, other) else NotImplemented

        def reflected(self: Any, other: object) -> Any:
            try:
                left = getattr(other, "aval", None)
                plan = plans.get((type(other) if left is None else left, self.aval))
                if plan is not None and (plan[0] is None or plan[0] is settings()):
                    return plan[1](other, self)
                return general(other, self) if is_accepted_operand(symbol, other) else NotImplemented
            except BaseException as error:
                hide_frames(error)
                ready = convert_array_objects(error, (self, other), {})
                if ready is None:
                    raise
            return reflected(*ready[0])

        return self._dispatch(accept), reflected


def _type_key(value: Any) -> Any:
    """Return the aval of an array, or the type of anything else."""
    aval = getattr(value, "aval", None)
    return type(value) if aval is None else aval


def _defaults(primitive: Primitive) -> tuple[Any, ...]:
    """Return the parameters with which NumPy-level functions bind a primitive."""
    return (None,) * len(primitive.parameters)


def _apply(operation: _Operation, *operands: object) -> Array:
    if isinstance(operation, ArrayPrimitive):
        return operation.bind_positional(operands, _defaults(operation))
    result = operation(*operands)
    if isinstance(result, Array):
        return result
    # An operand that is returned unchanged may be a NumPy value or a literal.
    return to_constant(result)


def _literal_step(kind: type, aval: ShapedArray) -> Callable[[Any], Literal]:
    """Return the function from Python scalars of type `kind` to literals of type `aval`."""
    if kind is not int and dtypes.is_floating(aval.dtype):
        return lambda value: Literal(float(value), aval)
    if kind is int and dtypes.is_integer(aval.dtype):
        limits = dtypes.iinfo(aval.dtype)
        low, high = int(limits.min), int(limits.max)
        return lambda value: Literal(value if low <= value <= high else promotion.scalar_value(value, aval.dtype), aval)
    if kind is int:

        def step(value: int) -> Literal:
            # It must fit the default integer dtype first.
            if not -0x80000000 <= value <= 0x7FFFFFFF:
                int_aval(value)
            return Literal(promotion.scalar_value(value, aval.dtype), aval)

        return step
    return lambda value: Literal(promotion.scalar_value(value, aval.dtype), aval)


def _array_step(aval: ShapedArray, rank: int, dtype: np.dtype[Any], weak: bool) -> _Step:
    """Return the function that converts an array and adds leading axes; None if neither is needed."""
    conversion = None if aval.dtype == dtype and aval.weak_type == weak else (dtype, weak, None)
    missing = rank - aval.ndim if aval.shape else 0
    broadcasting = ((1,) * missing + aval.shape, tuple(range(missing, rank)), None) if missing else None
    if broadcasting is None:
        if conversion is None:
            return None
        return lambda value: _trace_of_thread().process(convert, (value,), conversion)
    if conversion is None:
        return lambda value: _trace_of_thread().process(broadcast_in_dim, (value,), broadcasting)

    def prepare(value: ArrayLike) -> Any:
        process = _trace_of_thread().process
        return process(broadcast_in_dim, (process(convert, (value,), conversion),), broadcasting)

    return prepare


def _plan(
    operation: _Operation, steps: Sequence[_Step], jitted: Callable[..., Array], one: bool
) -> Callable[..., Array]:
    """Return the function that prepares operands and applies `operation`; one: whether arrays need no preparation.

    In eager evaluation, `jitted` is faster for several operations, and for an array beside a scalar.
    """
    level = operation.fusion_level if one and isinstance(operation, ArrayPrimitive) else FUSES_SEVERAL
    if isinstance(operation, ArrayPrimitive) and len(steps) == 2:
        left, right = steps
        parameters = _defaults(operation)
        if one and left is None and right is not None:
            to_array = _scalar_conversion(right)

            def array_and_scalar(x: Array, y: bool | int | float | complex) -> Array:
                trace = _trace_of_thread()
                if trace is base_trace or trace.fusion_level >= level:
                    return jitted(x, to_array(y))
                return trace.process(operation, (x, right(y)), parameters)

            return array_and_scalar
        if one and right is None and left is not None:
            to_array = _scalar_conversion(left)

            def scalar_and_array(x: bool | int | float | complex, y: Array) -> Array:
                trace = _trace_of_thread()
                if trace is base_trace or trace.fusion_level >= level:
                    return jitted(to_array(x), y)
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


def _scalar_conversion(step: Callable[[Any], Literal]) -> Callable[[bool | int | float | complex], ConcreteArray]:
    """Return the function from scalars of one Python type to arrays on the current device, which operands may share."""
    known = Table(_SCALARS_PER_PLAN, nested=True)

    def to_array(value: bool | int | float | complex) -> ConcreteArray:
        # 0.0 equals -0.0, so the key of a zero is its text.
        key = value or repr(value), current_device()
        array: Any = known.get(key)
        if array is None or array.signature is DELETED:
            array = to_operand(step(value))
            known.remember(key, array)
        return array  # type: ignore[no-any-return]

    return to_array


def _rename(function: Callable[..., Array], name: str) -> Callable[..., Array]:
    def renamed(*operands: ArrayLike) -> Array:
        return function(*operands)

    renamed.__name__ = renamed.__qualname__ = name
    return renamed


# Descriptions of the elements of operands, for docstrings.
NUMBERS = "numbers or booleans"
REAL_NUMBERS = "real numbers or booleans"
INTEGERS = "integers or booleans"
_DTYPES: dict[_Adjust | None, str] = {
    None: "the promoted dtype", as_number: "the promoted dtype, int32 for booleans",
    promotion.as_inexact: "the promoted dtype, as a floating one if that is integer or boolean",
}


def elementwise_function(
    operation: _Operation, *, adjust: _Adjust | None = None, cases: Mapping[str, _Operation] | None = None,
    domain: str = NUMBERS, returns: str = "", raises: Mapping[str, str] | None = None,
) -> Callable[[_Function], _Function]:
    """Return the decorator that makes the NumPy-level form of an elementwise operation of one or two operands.

    The decorated function has no body: it gives the name, the signature and the docstring, in which the sections on
    arguments, results and errors are filled in if it has an example.

    adjust: a function that changes the promoted dtype and weak type. cases: maps a kind of promoted dtype to another
    operation. domain: a description of the elements of operands. returns: a description of the result's dtype, in the
    place of the one from `adjust`. raises: further errors.
    """

    def decorate(declaration: _Function) -> _Function:
        code = declaration.__code__
        names, by_keyword = code.co_varnames, not (code.co_posonlyargcount or code.co_kwonlyargcount)
        sections = _shared_sections(names, domain, returns or _DTYPES[adjust], raises or {})
        doc = complete_docstring(declaration.__doc__, *sections)

        def define(name: str) -> _Function:
            made = _NumpyFunction(name, operation, adjust, cases)
            function: Any = made.unary(by_keyword) if len(names) == 1 else made.binary()
            function.__name__ = function.__qualname__ = name
            function.__doc__, function.__module__ = doc, "xtrace.numpy"
            function.__signature__ = LazySignature(declaration)
            function.methods, function.defined_as, function.shared_sections = made.methods, define, sections
            return function  # type: ignore[no-any-return]

        return define(declaration.__name__)

    return decorate


def _shared_sections(
    names: Sequence[str], domain: str, dtype: str, raises: Mapping[str, str]
) -> tuple[dict[str, str], str, dict[str, str]]:
    """Return the sections on arguments, results and errors of an elementwise function's docstring."""
    errors = {"TypeError": f"an operand is no array or scalar of {domain}."}
    if len(names) == 1:
        arguments = {names[0]: f"an array or a scalar of {domain}."}
        result = f"An array of the operand's shape and {dtype.replace('the promoted dtype', 'dtype')}."
    else:
        arguments = {", ".join(names): f"arrays or scalars of {domain} whose shapes broadcast."}
        result = f"An array of the broadcast shape and {dtype}."
        errors["ValueError"] = "the shapes do not broadcast."
    return arguments, result, errors | dict(raises)


def alias(function: _Function, name: str) -> _Function:
    """Return a second definition of an elementwise function, under another name, with its own dispatch code."""
    return function.defined_as(name)  # type: ignore[attr-defined, no-any-return]


def identity(x: Any) -> Any:
    """Return the operand."""
    return x


def is_accepted_operand(symbol: str, other: object) -> bool:
    """Whether an operator accepts `other`; if not, Python tries the class of `other`. TypeError for a container."""
    if type(other) in (list, tuple, dict, set):
        raise TypeError(
            f"unsupported operand for {symbol}: {not_an_array(other)}. Convert it with xtrace.numpy.asarray first."
        )
    # NumPy values count whatever their dtype, so that the operation itself raises the error.
    if type(other) in SCALARS or isinstance(other, (np.ndarray, np.generic)):
        return True
    return type(other) is not ShapeDtypeStruct and is_array_like(other)
