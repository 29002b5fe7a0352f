"""ufuncs: elementwise functions with NumPy's methods reduce, accumulate, at, reduceat and outer."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from xtrace import lax
from xtrace._late_imports import late_modules
from xtrace._src.algebra.vector_space import broadcast_in_dim, canonical_axis, convert_to, operand_aval, reshape
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.operators import truth
from xtrace._src.api.tracing import eval_shape
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.array_protocol import array_boundary
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import hide_frames
from xtrace._src.core.docstrings import complete_docstring
from xtrace._src.core.dtypes import DType
from xtrace._src.core.function_names import set_function_name
from xtrace._src.core.integers import to_integer
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.ops.elementwise import elementwise
from xtrace._src.ops.elementwise.comparisons import bitwise_and, gt, lt
from xtrace._src.ops.elementwise.selection import select_n
from xtrace.numpy.operands import broadcast_operand_to, refuse, scalar_of

with late_modules(globals()):
    from xtrace._src.ops.arrays.concatenation import concatenate
    from xtrace._src.ops.arrays.shape import expand_dims
    from xtrace.numpy import vectorization
    from xtrace.numpy.arrays import ranges
    from xtrace.numpy.arrays.conversion import from_sequence, to_array_operand
    from xtrace.numpy.arrays.creation import full
    from xtrace.numpy.elementwise import ufunc_methods
    from xtrace.numpy.indexing import indexing
    from xtrace.numpy.manipulation import shapes

_Method = Callable[..., Array] | None


class ufunc(functools.partial[Array]):
    """An elementwise function of `nin` operands with `nout` results, and the methods of NumPy's ufuncs.

    Args:
        func: the function of numbers; it is traced.
        nin: the number of operands.
        nout: the number of results.
        name: the name in messages; None for the name of `func`.
        nargs: the number of operands and results that a call takes; by default `nin`.
        identity: the neutral operand, with which reductions begin; None for none.
        call: a function of arrays to call instead of `func`.
        reduce, accumulate, at, reduceat: functions with the parameters of these methods, which replace the general
            ones; `accumulate` and `at` may return NotImplemented.

    Raises:
        TypeError: `func` is not a function, or `nin` or `nout` is not an integer.

    Example:
        >>> jnp.frompyfunc(lambda x, y: 10 * x + y, 2, 1).reduce(jnp.array([1, 2, 3]))
        Array(123, dtype=int32)
    """

    # A partial object, because Python calls it faster than an object with a method `__call__`.

    _numbers: tuple[int, int, int, Any]
    _function: Callable[..., Any]
    _call: Callable[..., Array]
    _own: dict[str, _Method]
    # The name in xtrace.numpy; only NumPy's ufuncs have one.
    _own_name: str | None
    __name__: str
    __qualname__: str
    __signature__: inspect.Signature

    def __new__(
        cls, func: Callable[..., Any], /, nin: int, nout: int, *, name: str | None = None, nargs: int | None = None,
        identity: object = None, call: _Method = None, reduce: _Method = None, accumulate: _Method = None,
        at: _Method = None, reduceat: _Method = None,
    ) -> ufunc:
        """Return the ufunc of `func`, which is called with one element of each operand unless `call` is given."""
        if not callable(func):
            raise TypeError(f"frompyfunc: the first argument must be a function, got {abbreviate(func)}")
        nin, nout = to_integer("nin", nin), to_integer("nout", nout)
        known = name or str(getattr(func, "__name__", type(func).__name__))
        elementwise_call = call or vectorization.vectorize(func)

        call_with_parameters = _with_numpy_parameters(elementwise_call, known, nin if call else None)
        made = super().__new__(cls, array_boundary(call_with_parameters))
        made._numbers = (nin, nout, nin if nargs is None else to_integer("nargs", nargs, function="ufunc"), identity)
        made.__name__ = made.__qualname__ = known
        made.__doc__ = getattr(func, "__doc__", None)
        made.__signature__ = _SIGNATURE
        made._own_name = None
        made._function, made._call = func, elementwise_call
        made._own = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}
        return made

    @property
    def nin(self) -> int:
        """The number of operands."""
        return self._numbers[0]

    @property
    def nout(self) -> int:
        """The number of results."""
        return self._numbers[1]

    @property
    def nargs(self) -> int:
        """The number of operands and results together."""
        return self._numbers[2]

    @property
    def identity(self) -> Any:
        """The identity element; None if there is none."""
        if self._own_name is not None:
            return ufunc_methods.METHODS[self._own_name].get("identity")
        return self._numbers[3]

    def _own_method(self, name: str) -> _Method:
        """Return the method that replaces the general one; None if there is none."""
        own = self._own if self._own_name is None else ufunc_methods.METHODS[self._own_name]
        return own.get(name)

    def _key(self) -> tuple[Any, ...]:
        return self._function, self.nin, self.nout, repr(self.identity), self.__name__

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return type(other) is ufunc and self._key() == other._key()

    def __repr__(self) -> str:
        return f"<xtrace.numpy.ufunc {self.__name__!r}>"

    def __reduce__(self) -> Any:
        # NumPy's ufuncs are pickled by their names.
        if self._own_name is not None:
            return self._own_name
        return _restore_ufunc, (self._function, self._numbers, self.__name__)

    def _check_binary(self, method: str, out: Any = None) -> str:
        """Return the method's name for messages; ValueError unless the ufunc has two operands and one result."""
        name = f"{self.__name__}.{method}"
        if self.nin != 2:
            raise ValueError(f"{name}: {method} only supported for binary ufuncs; this one has nin={self.nin}")
        if self.nout != 1:
            raise ValueError(f"{name}: {method} only supported for functions returning a single value")
        refuse(out=out, function=name)
        return name

    def _convert_operand(self, name: str, a: Array, dtype: object) -> Array:
        """Return `a` converted to `dtype`, by default the dtype of the ufunc's result for two elements of `a`."""
        a = to_array_operand(a, function=name)
        wanted = requested_dtype(dtype, function=name)
        return convert_to(a, self._find_result_dtype(a, a) if wanted is None else wanted, False)

    def _find_result_dtype(self, *operands: Array) -> Any:
        """Return the dtype of the function's result for elements of `operands`."""
        scalars = [ShapedArray((), x.dtype, x.aval.weak_type) for x in operands]
        return eval_shape(self._call, *scalars).dtype

    @array_boundary
    def reduce(
        self, a: Array, axis: int | None = 0, dtype: DType | None = None, out: None = None, keepdims: bool = False,
        initial: Array | None = None, where: ArrayLike | None = None,
    ) -> Array:
        """Combine the elements of `a` along `axis`, from the first to the last.

        Args:
            a: an array.
            axis: the axis to reduce, an integer; None for all axes.
            dtype: the dtype of the computation; None for the dtype of the ufunc's result for two elements of `a`.
            out: not supported; leave it at None.
            keepdims: whether the reduced axes stay, with size 1.
            initial: the value before the first element.
            where: the mask of the elements to include, booleans that broadcast against `a`; None for all.

        Returns:
            An array of the other axes.

        Raises:
            NotImplementedError: `out` is given, or several axes to a ufunc that is not one of NumPy's.
            ValueError: the ufunc does not have two operands and one result, or it has no identity and there is no
                element, or `where` is given without `initial`.

        Example:
            >>> jnp.add.reduce(jnp.array([[1, 2], [3, 4]]))
            Array([4, 6], dtype=int32)
        """
        name = self._check_binary("reduce", out)
        if where is not None and self.identity is None and initial is None:
            raise ValueError(
                f"reduction operation '{self.__name__}' does not have an identity, so to use a where mask one has to "
                "specify 'initial'."
            )
        own = self._own_method("reduce")
        if own is not None:
            return own(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
        if isinstance(axis, tuple):
            raise NotImplementedError(f"{name}: a tuple of axes; reduce over one after the other, got {axis}")
        a = self._convert_operand(name, a, dtype)
        rank = a.ndim
        if where is not None:
            shape = operand_aval(where, 1, function=name).shape
            where = broadcast_operand_to(where, shape, a.shape, function=name)
        if axis is None:
            a, along = reshape(a, (a.size,)), 0
            where = None if where is None else reshape(where, (a.size,))
        else:
            along = canonical_axis(axis, rank, function=name)
        if initial is None:
            # Also for non-empty arrays: a user's function may change elements that it combines with its identity.
            initial = self.identity
        if initial is None and not a.shape[along]:
            raise ValueError(f"zero-size array to reduction operation {self.__name__} which has no identity")
        reduced = _reduce(a, where, initial, ufunc=self, axis=along)
        if keepdims:
            reduced = expand_dims(reduced, range(rank) if axis is None else (along,))
        return reduced

    @array_boundary
    def accumulate(self, a: Array, axis: int = 0, dtype: DType | None = None, out: None = None) -> Array:
        """Return the partial results of `reduce` along `axis`: of the first element, the first two, and so on.

        Args:
            a: an array.
            axis: the axis along which elements are combined, an integer.
            dtype: the dtype of the computation; None for the dtype of the ufunc's result for two elements of `a`.
            out: not supported; leave it at None.

        Returns:
            An array of the shape of `a`.

        Raises:
            NotImplementedError: `out` is given.
            ValueError: the ufunc does not have two operands and one result, or `axis` is not a single axis.

        Example:
            >>> jnp.add.accumulate(jnp.array([1, 2, 3]))
            Array([1, 3, 6], dtype=int32)
        """
        name = self._check_binary("accumulate", out)
        own = self._own_method("accumulate")
        if own is not None:
            result = own(a, axis=axis, dtype=dtype)
            if result is not NotImplemented:
                return result
        if axis is None or isinstance(axis, tuple):
            raise ValueError(f"{name}: accumulate does not allow multiple axes, got axis={axis}")
        a = self._convert_operand(name, a, dtype)
        along = canonical_axis(axis, a.ndim, function=name)
        return _accumulate(a, ufunc=self, axis=along) if a.shape[along] else a

    @array_boundary
    def at(self, a: ArrayLike, indices: object, b: ArrayLike | None = None, /, *, inplace: bool = True) -> Array:
        """Return `a` with the elements at `indices` combined with `b`, one after the other where an index repeats.

        Args:
            a: an array.
            indices: an index of `a`, as in ``a[indices]``.
            b: the second operands, which broadcast against ``a[indices]``; None for a ufunc of one operand.
            inplace: must be False, since arrays are immutable.

        Returns:
            An array of the shape of `a`.

        Raises:
            NotImplementedError: `inplace` is not False.
            TypeError: the ufunc takes another number of operands.

        Example:
            >>> jnp.add.at(jnp.zeros(3), jnp.array([0, 0, 2]), 1.0, inplace=False)
            Array([2., 0., 1.], dtype=float32)
        """
        if inplace:
            raise NotImplementedError(
                f"{self.__name__}.at cannot operate inplace, since arrays are immutable; use x = "
                f"{self.__name__}.at(x, indices, b, inplace=False)"
            )
        given = self.nin - 1
        if self.nin not in (1, 2) or self.nout != 1 or (b is None) != (not given):
            raise TypeError(f"{self.__name__}.at: takes {given} operand(s) after the indices, got b={abbreviate(b)}")
        name = f"{self.__name__}.at"
        a = to_array_operand(a, function=name)
        own = self._own_method("at")
        # As in JAX, a ufunc that scatters by itself takes lists, as ``x.at`` does.
        operands = [] if b is None else [to_array_operand(b if own is None else from_sequence(b), 2, function=name)]
        if own is not None:
            result = own(a, indices, *operands)
            if result is not NotImplemented:
                return result
        dtype = self._find_result_dtype(a, *operands)
        # Positions in the flattened array; updates out of bounds have none and are dropped.
        places = indexing.get_at(reshape(ranges.arange(a.size), a.shape), indices, mode="fill", fill_value=a.size)
        # Converted before they broadcast, so that their cotangents are summed in the wider dtype.
        if dtypes.is_inexact(dtype):
            operands = [convert_to(x, dtype) if dtypes.is_inexact(x.dtype) else x for x in operands]
        operands = [
            reshape(broadcast_operand_to(x, x.shape, places.shape, function=name), (places.size,)) for x in operands
        ]
        return _update(a, reshape(places, (places.size,)), *operands, ufunc=self, dtype=dtype)

    @array_boundary
    def reduceat(
        self, a: Array, indices: ArrayLike, axis: int = 0, dtype: DType | None = None, out: None = None
    ) -> Array:
        """Reduce the elements along `axis` from each of `indices` up to the next one.

        Args:
            a: an array.
            indices: an array of integers of rank 1. Where the next index is not larger, the result is the element at
                the index alone. An index out of bounds gives the same element as in `take`.
            axis: the axis to reduce, an integer.
            dtype: the dtype of the computation; None for the dtype of the ufunc's result for two elements of `a`.
            out: not supported; leave it at None.

        Returns:
            An array of the shape of `a`, but with one element along `axis` for each index.

        Raises:
            NotImplementedError: `out` is given.
            ValueError: `indices` is not an array of integers of rank 1, or `axis` is not a single axis.

        Example:
            >>> jnp.add.reduceat(jnp.arange(6), jnp.array([0, 2, 4]))
            Array([1, 5, 9], dtype=int32)
        """
        name = self._check_binary("reduceat", out)
        own = self._own_method("reduceat")
        if own is not None:
            return own(a, indices, axis=axis, dtype=dtype)
        if axis is None or isinstance(axis, tuple):
            raise ValueError(f"{name}: reduceat requires a single integer axis, got {axis}")
        aval = operand_aval(indices, 1, function=name)
        if not dtypes.is_integer(aval.dtype):
            raise ValueError(f"{name}: indices must have an integer type, got {aval.dtype.name}")
        if aval.ndim != 1:
            raise ValueError(f"{name}: indices must be one-dimensional, got shape {aval.shape}")
        given, a = to_array_operand(a, function=name), self._convert_operand(name, a, dtype)
        reduced = _reduce_at(a, indices, ufunc=self, axis=canonical_axis(axis, a.ndim, function=name))
        return convert_to(reduced, reduced.dtype, given.weak_type and dtype is None)

    @array_boundary
    def outer(self, A: Array, B: Array, /) -> Array:
        """Apply the function to every element of `A` with every element of `B`.

        Args:
            A, B: arrays or scalars.

        Returns:
            An array of the axes of `A`, then of `B`.

        Raises:
            TypeError: an operand is neither an array nor a scalar.
            ValueError: the ufunc does not have two operands and one result.

        Example:
            >>> jnp.multiply.outer(jnp.array([1, 2]), jnp.array([3, 4]))
            Array([[3, 4],
                   [6, 8]], dtype=int32)
        """
        name = self._check_binary("outer")
        shapes = [operand_aval(x, i, function=name).shape for i, x in enumerate((A, B))]
        if not all(shapes):
            return self._call(A, B)
        return _outer(to_array_operand(A, function=name), to_array_operand(B, 1, function=name), ufunc=self)


def _with_numpy_parameters(function: Callable[..., Array], name: str, nin: int | None) -> Callable[..., Any]:
    """Return `function` of `nin` operands with NumPy's parameters `out` and `where`, which raise if given.

    A function of one or two operands accepts objects with ``__jax_array__`` itself.
    Messages of the interpreter name the ufunc if `nin` is 1 or 2.
    """

    def binary(x1: Array, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
        try:
            if out is not None or where is not None:
                refuse(out=out, where=where, function=name)
            return function(x1, x2)
        except BaseException as error:
            hide_frames(error)
            raise

    def unary(x: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
        try:
            if out is not None or where is not None:
                refuse(out=out, where=where, function=name)
            return function(x)
        except BaseException as error:
            hide_frames(error)
            raise

    def general(*args: ArrayLike, out: None = None, where: None = None) -> Array:
        refuse(out=out, where=where, function=name)
        return function(*args)

    if nin in (1, 2):
        return set_function_name(unary if nin == 1 else binary, name)
    return set_function_name(general, "ufunc")


_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_SIGNATURE = inspect.Signature([
    inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL), inspect.Parameter("out", _KEYWORD, default=None),
    inspect.Parameter("where", _KEYWORD, default=None),
])


def _restore_ufunc(func: Callable[..., Any], numbers: tuple[Any, ...], name: str) -> ufunc:
    nin, nout, nargs, identity = numbers
    return ufunc(func, nin, nout, name=name, nargs=nargs, identity=identity)


@inline_jit
def _outer(A: Any, B: Any, *, ufunc: ufunc) -> Array:
    rank = A.ndim + B.ndim
    return ufunc._call(expand_dims(A, range(A.ndim, rank)), expand_dims(B, range(A.ndim)))


@inline_jit
def _reduce(a: Array, mask: Array | None, initial: ArrayLike | None, *, ufunc: ufunc, axis: int) -> Array:
    dtype = a.dtype
    a = shapes.moveaxis(a, axis, 0)
    elements: Any = (a,) if mask is None else (a, shapes.moveaxis(mask, axis, 0))
    if initial is not None:
        start = broadcast_in_dim(convert_to(initial, dtype, False), a.shape[1:], ())
    else:
        start, elements = indexing.getitem(a, 0), (indexing.getitem(a, slice(1, None)),)

    def step(carry: Any, element: tuple[Array, ...]) -> tuple[Any, None]:
        result = convert_to(ufunc._call(carry, element[0]), dtype, False)
        return (result if mask is None else select_n(element[1], carry, result)), None

    return lax.scan(step, start, elements)[0] if elements[0].shape[0] else start


@inline_jit
def _accumulate(a: Array, *, ufunc: ufunc, axis: int) -> Array:
    if a.shape[axis] == 1:
        return a
    dtype = a.dtype
    a = shapes.moveaxis(a, axis, 0)

    def step(carry: Any, element: ArrayLike) -> tuple[Any, Any]:
        result = convert_to(ufunc._call(carry, element), dtype, False)
        return result, result

    later = lax.scan(step, indexing.getitem(a, 0), indexing.getitem(a, slice(1, None)))[1]
    return shapes.moveaxis(concatenate([indexing.getitem(a, slice(0, 1)), later], 0), 0, axis)


@inline_jit
def _update(a: Array, places: Array, *operands: Array, ufunc: ufunc, dtype: np.dtype[Any]) -> Array:
    own = a.dtype if dtypes.is_boolean(dtype) else dtype
    flat = reshape(truth(a) if dtypes.is_boolean(dtype) else convert_to(a, dtype, False), (a.size,))

    def step(carry: Any, element: tuple[Array, ...]) -> tuple[Any, None]:
        place, *others = element
        # A boolean result takes the dtype of `a` again before it meets the other operand.
        result = ufunc._call(convert_to(indexing.get_at(carry, place, mode="clip"), own, False), *others)
        return carry.at[place].set(convert_to(result, dtype, False), mode="drop"), None

    if a.size and places.size:
        flat = lax.scan(step, flat, (places, *operands))[0]
    return reshape(flat, a.shape)


@inline_jit
def _reduce_at(a: ArrayLike, indices: Any, *, ufunc: ufunc, axis: int) -> Array:
    a = shapes.moveaxis(a, axis, 0)
    length, count = a.shape[0], indices.shape[0]
    start = indexing.take(a, indices, 0)
    if not length or not count:
        return shapes.moveaxis(start, 0, axis)
    indices = convert_to(indices, dtypes.int32, False)
    zero, size = (scalar_of(n, dtypes.int32) for n in (0, length))
    first = select_n(lt(indices, zero), indices, elementwise.add(indices, size))
    last = concatenate([indexing.getitem(first, slice(1, None)), full((1,), length, dtypes.int32)], 0)

    def step(carry: Any, element: tuple[Array, ...]) -> tuple[Any, None]:
        position, value = element
        inside = bitwise_and(gt(position, first), lt(position, last))
        inside = broadcast_in_dim(inside, carry.shape, (0,))
        result = ufunc._call(carry, expand_dims(value, (0,)))
        return select_n(inside, carry, convert_to(result, carry.dtype, False)), None

    return shapes.moveaxis(lax.scan(step, start, (ranges.arange(length, dtype=dtypes.int32), a))[0], 0, axis)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: object = None) -> ufunc:
    """Return the `ufunc` of a function of numbers.

    Args:
        func: a function of `nin` numbers that returns `nout`; it is traced, and mapped over elements by `vectorize`.
        nin: the number of operands.
        nout: the number of results.
        identity: the neutral operand, with which reductions begin; None for none.

    Returns:
        The ufunc, whose calls broadcast their operands.

    Raises:
        TypeError: `func` is not a function, or `nin` or `nout` is not an integer.

    Example:
        >>> jnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1)(jnp.array([1, 2]), 10)
        Array([21, 22], dtype=int32)
    """
    return ufunc(func, nin, nout, identity=identity)


def ufunc_of(function: Any, nin: int = 2) -> Callable[[Callable[..., Array]], ufunc]:
    """Return the decorator that makes the ufunc of an elementwise function, which needs a docstring for users.

    The decorated function has no body: it gives the signature and the docstring.
    """

    def decorate(declaration: Callable[..., Array]) -> ufunc:
        return _make_ufunc(function, nin, complete_docstring(declaration.__doc__, *function.shared_sections))

    return decorate


def as_ufunc(function: Callable[..., Array]) -> ufunc:
    """Return the ufunc of a function of two arrays, with the methods for its name in `ufunc_methods`."""
    return _make_ufunc(function, 2, function.__doc__)


def _make_ufunc(function: Callable[..., Array], nin: int, doc: str | None) -> ufunc:
    name = function.__name__
    made = ufunc(function, nin, 1, name=name, call=function)
    made._own_name, made.__module__ = name, "xtrace.numpy"
    made.__doc__ = _add_numpy_parameters(doc or "")
    return made


def _add_numpy_parameters(docstring: str) -> str:
    """Return the docstring of an elementwise function, with the parameters of a ufunc as its Args."""
    line = re.search(r"Args:(\n *)\S", docstring)[1]  # type: ignore[index]
    replaced = re.sub(
        r"(Args:\s*)[^:]*(:[^\n]*)", rf"\1args\2{line}out, where: not supported; leave them out.", docstring, count=1
    )
    return replaced.replace("Raises:", f"Raises:{line}NotImplementedError: `out` or `where` is given.", 1)
