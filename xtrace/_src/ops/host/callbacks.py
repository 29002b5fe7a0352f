"""Callbacks from compiled programs to Python: pure callbacks, callbacks with effects, and debug callbacks.

`Function` holds the user's function; `host_calls` writes the call for each platform.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

import numpy as np

from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of, is_array_like
from xtrace._src.core.callables import function_name
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.positions import describe, user_position
from xtrace._src.core.integers import integer_tuple
from xtrace._src.core.jaxprs.effects import Effect, debug_effect, io_effect, ordered_debug_effect, ordered_io_effect
from xtrace._src.core.jaxprs.ir import ALWAYS_PRINTED
from xtrace._src.core.primitive import Derived, Primitive
from xtrace._src.core.pytrees import key_paths, pytree, pytree_differences
from xtrace._src.core.settings import config
from xtrace._src.ops.arrays.slicing import index_in_dim
from xtrace._src.ops.host.callback_lowering import emit_host_call
from xtrace._src.ops.host.mapped_calls import batch_by_method, call_in_turn, check_method
from xtrace._src.runtime.arrays import ConcreteArray, new_array
from xtrace._src.runtime.callback_errors import Failure
from xtrace._src.runtime.callbacks import inside_callback
from xtrace._src.runtime.transfer import committed_device, in_layout, to_concrete
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.element_functions import CALLING_PYTHON
from xtrace._src.xla.pytree_registry import PyTreeDef


class Function:
    """A user's function of trees, called with leaves; equal if function, trees and settings are equal.

    static: the leaves that are no arrays, with their positions. out_tree: the tree of the result; None if the result is
    ignored. x64: whether 64-bit results keep their dtype.
    """

    __slots__ = ("callback_func", "in_tree", "static", "out_tree", "x64")

    def __init__(
        self, callback_func: Callable[..., Any], in_tree: PyTreeDef, static: tuple[tuple[int, Any], ...],
        out_tree: Any = None
    ) -> None:
        self.callback_func, self.in_tree, self.static, self.out_tree = callback_func, in_tree, static, out_tree
        self.x64 = config.enable_x64.value

    def __call__(self, *leaves: Any) -> Any:
        args, kwargs = merge_static(self.in_tree, self.static, leaves)
        return self.callback_func(*args, **kwargs)

    def check_result(self, avals: Sequence[ShapedArray], result: Any) -> list[np.ndarray[Any, Any]]:
        """Return the leaves of a result as NumPy arrays of the types `avals`.

        TypeError if the number of leaves differs; TypeError or ValueError, with the path, for a leaf of another type.
        """
        leaves, tree = pytree.tree_flatten(result)
        if tree.num_leaves != self.out_tree.num_leaves:
            raise TypeError(
                f"{self.name} returned a tree that differs from result_shape_dtypes "
                f"{pytree_differences.treedef_difference(self.out_tree, tree)}: expected {self.out_tree}, got {tree}"
            )
        paths = [key_paths.keystr(path) for path, _ in pytree.tree_flatten_with_path(result)[0]]
        return [self._check_leaf(path, a, x) for path, a, x in zip(paths, avals, leaves, strict=True)]

    def _check_leaf(self, path: str, aval: ShapedArray, value: Array) -> np.ndarray[Any, Any]:
        where = f"result{path} of {self.name}"
        try:
            data = value.host() if isinstance(value, ConcreteArray) else np.asarray(value)
            dtype = dtypes.canonicalize(data.dtype, self.x64)
        except TypeError:
            raise TypeError(
                f"{where} is no array: expected {aval.str_short()}, got {abbreviate(value)}"
            ) from None
        if data.shape != aval.shape or dtype != aval.dtype:
            got = ShapedArray(data.shape, dtype).str_short()
            advice = "Convert it to the dtype" if data.shape == aval.shape else "Return an array of the shape"
            raise ValueError(
                f"{where} has the wrong type: expected {aval.str_short()}, got {got}. {advice} in "
                "result_shape_dtypes, or change result_shape_dtypes to the type that the function returns."
            )
        return data if data.dtype == aval.dtype else dtypes.cast(data, aval.dtype)

    @property
    def name(self) -> str:
        """Return the function's name for messages."""
        return function_name(self.callback_func)

    def _identity(self) -> Any:
        function = self.callback_func
        return (id(function.__self__), function.__func__) if type(function) is MethodType else id(function)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Function):
            return NotImplemented
        own, others = ((f._identity(), f.in_tree, f.static, f.out_tree, f.x64) for f in (self, other))
        return own == others

    def __hash__(self) -> int:
        return hash((self._identity(), self.in_tree))

    def __repr__(self) -> str:
        # Addresses are masked, so that jaxprs print the same in every run.
        function = re.sub("at 0x[0-9a-fA-F]+", "at 0xXXXXXXXXXXXX", str(self.callback_func))
        return f"_FlatCallback(callback_func={function}, in_tree={self.in_tree})"


def merge_static(tree: PyTreeDef, static: Sequence[tuple[int, Any]], leaves: Sequence[Any]) -> Any:
    """Return the tree of `leaves` with the `static` leaves at their positions."""
    merged = list(leaves)
    for place, value in static:
        merged.insert(place, value)
    return pytree.tree_unflatten(tree, merged)


def split_static(arguments: object) -> tuple[list[Any], Any, tuple[tuple[int, Any], ...]]:
    """Return the array leaves of `arguments`, the tree, and the other leaves with their positions."""
    leaves, tree = pytree.tree_flatten(arguments)
    static = tuple([(i, x) for i, x in enumerate(leaves) if not is_array_like(x)])
    places = {i for i, _ in static}
    return [x for i, x in enumerate(leaves) if i not in places], tree, static


# Indexed by `ordered`.
_DEBUG, _IO = (debug_effect, ordered_debug_effect), (io_effect, ordered_io_effect)


def _debug_abstract(*avals: ShapedArray, **_: object) -> list[ShapedArray]:
    """Call a Python function for its effects."""
    return []


def _debug_jvp(
    primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], **parameters: object
) -> tuple[list[Any], list[Any]]:
    """Bind on the primals, and ignore the tangents: there are no results."""
    primitive.bind(*primals, **parameters)
    return [], []


def _debug_transpose(cotangents: Sequence[Any], *operands: Array, **parameters: object) -> list[Any]:
    return [None] * len(operands)


def _debug_batch(
    primitive: Primitive, mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], **parameters: object
) -> tuple[list[Any], list[int | None]]:
    """Bind once for each index of the mapped axis, in order."""
    for i in range(mapped.size):
        primitive.bind(
            *[x if a is None else index_in_dim(x, i, a, False) for x, a in zip(operands, axes, strict=True)],
            **parameters,
        )
    return [], []


def debug_primitive(name: str, parameters: Sequence[str], **rules: Any) -> Primitive:
    """Return a primitive without results; differentiation ignores it, and vmap binds it once for each index."""
    operation = Primitive(
        name, parameters, abstract=_debug_abstract, jvp=Derived(_debug_jvp), linearize=Derived(_debug_jvp),
        transpose=_debug_transpose, batch=Derived(_debug_batch), multiple_results=True, memoised=False,
        **rules,
    )
    CALLING_PYTHON.add(operation)
    return operation


def _debug_callback_emit(
    builder: FunctionBuilder, *values: Value, callback: Function, effect: Effect, partitioned: bool
) -> list[Value]:
    def call(*arrays: ArrayLike) -> list[Any]:
        callback(*arrays)
        return []

    name = f"the callback {callback.name} of debug.callback"
    return emit_host_call(builder, values, callback, name, call, effect, partitioned=partitioned)


def _debug_callback_evaluate(*arrays: Array, callback: Function, effect: Effect, **_: object) -> list[Any]:
    with inside_callback(effect.ordered):
        callback(*arrays)
    return []


debug_callback_p = debug_primitive(
    "debug_callback", ("callback", "effect", "partitioned"), emit=_debug_callback_emit,
    evaluate=_debug_callback_evaluate, effects=lambda *, effect, **_: frozenset((effect,)),
)


def debug_callback(
    callback: Callable[..., None] | None = None, *args: ArrayLike, ordered: bool = False, partitioned: bool = False,
    **kwargs: object,
) -> Any:
    """Call a Python function for its effects each time the program runs.

    Args:
        callback: a function whose result is ignored; without it, a decorator with the other arguments is returned.
        args: trees; array leaves are passed as arrays, other leaves, such as strings, unchanged.
        ordered: whether calls are made in the order of the program. Unordered calls come in any order, and
            transformations and XLA may repeat or drop them; under `vmap` there is one call for each index.
        partitioned: whether each device of a mesh makes the call with its shards, instead of one device with the whole
            arrays.
        kwargs: further arguments, by name.

    Raises:
        TypeError: `callback` cannot be called.

    Example:
        >>> xtrace.debug.callback(print, "x is", 1)
        x is 1
        >>> xtrace.effects_barrier()
    """
    if callback is None:
        return functools.partial(debug_callback, ordered=ordered, partitioned=partitioned)
    if not callable(callback):
        raise TypeError(
            "first argument to debug.callback must be callable, but got an object of type "
            f"{type(callback)}: {abbreviate(callback)}"
        )
    leaves, tree, static = split_static((args, kwargs))
    debug_callback_p.bind_positional(
        leaves, (Function(callback, tree, static), _DEBUG[bool(ordered)], bool(partitioned))
    )
    return None


def _refuse_jvp(kind: str, advice: str) -> Callable[..., Any]:
    def refuse(primals: Sequence[Any], tangents: Sequence[Any], *, callback: Function, **_: object) -> Any:
        raise ValueError(
            f"{kind} callbacks do not support JVP: the derivative of {callback.name} is unknown. {advice}"
        )

    return refuse


def _no_transpose(cotangents: Sequence[Any], *operands: Array, callback: Function, **_: object) -> Any:
    raise ValueError(f"callbacks cannot be transposed: {callback.name} is not known to be linear; use custom_vjp")


def _abstract_results(*avals: ShapedArray, result_avals: Sequence[ShapedArray], **_: object) -> list[ShapedArray]:
    """Return the results of a Python function, of the declared types."""
    return list(result_avals)


def _check_results(callback: Function, avals: Sequence[ShapedArray]) -> Callable[..., list[np.ndarray[Any, Any]]]:
    return lambda *arrays: callback.check_result(avals, callback(*arrays))


def _evaluate(
    operation: str, callback: Function, avals: Sequence[ShapedArray], arrays: Sequence[ConcreteArray],
    ordered: bool = False,
) -> list[Any]:
    """Return the results of an eager call; errors are the same as in a compiled program."""
    arrays = [in_layout(a, None) for a in arrays]
    values = [new_array(a.aval.update(weak_type=False), a.buffer) if a.aval.weak_type else a for a in arrays]
    try:
        with inside_callback(ordered):
            results = _check_results(callback, avals)(*values)
    except Exception as error:
        caller = f"the callback {callback.name} of {operation}, called at {describe(user_position())},"
        failure = Failure(error, caller)
        raise failure.make_error() from error
    device = next((d for d in map(committed_device, arrays) if d is not None), None)
    return [to_concrete(x, device) for x in results]


def _pure_emit(builder: FunctionBuilder, *values: Value, callback: Function, result_avals: Any, **_: object) -> Any:
    name = f"the callback {callback.name} of pure_callback"
    return emit_host_call(builder, values, callback, name, _check_results(callback, result_avals), None)


def _pure_evaluate(*arrays: Any, callback: Function, result_avals: Any, **_: object) -> list[Any]:
    return _evaluate("pure_callback", callback, result_avals, arrays)


def _pure_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], **parameters: Any
) -> tuple[list[Any], list[int]]:
    described = f"pure_callback needs a vmap_method for {parameters['callback'].name}"
    return batch_by_method(pure_callback_p, described, "pure_callback", mapped, operands, axes, parameters)


_pure_jvp = _refuse_jvp("Pure", "Use custom_jvp or custom_vjp around the function that calls it.")
pure_callback_p = Primitive(
    "pure_callback", ("callback", "result_avals", "sharding", "vmap_method"),
    abstract=_abstract_results, emit=_pure_emit, evaluate=_pure_evaluate, jvp=_pure_jvp, linearize=_pure_jvp,
    transpose=_no_transpose, batch=_pure_batch, multiple_results=True, memoised=False,
    unprinted=dict.fromkeys(("sharding", "vmap_method"), ALWAYS_PRINTED),
)


def _io_emit(
    builder: FunctionBuilder, *values: Value, callback: Function, ordered: bool, result_avals: Any, **_: object
) -> Any:
    name = f"the callback {callback.name} of io_callback"
    return emit_host_call(builder, values, callback, name, _check_results(callback, result_avals), _IO[ordered])


def _io_evaluate(*arrays: Any, callback: Function, ordered: bool, result_avals: Any, **_: object) -> list[Any]:
    return _evaluate("io_callback", callback, result_avals, arrays, ordered)


def _io_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], **parameters: Any
) -> tuple[list[Any], list[int]]:
    if parameters["ordered"]:
        raise ValueError(
            "Cannot `vmap` ordered IO callback: the order of the calls of "
            f"{parameters['callback'].name} for the indices of the mapped axis is undefined. Use ordered=False, or "
            "lax.map or scan instead of vmap."
        )
    results = call_in_turn(functools.partial(io_callback_p.bind, **parameters), operands, axes)
    return results, [0] * len(parameters["result_avals"])


_io_jvp = _refuse_jvp("IO", "Give it lax.stop_gradient(x), or use custom_jvp around the function that calls it.")
io_callback_p = Primitive(
    "io_callback", ("callback", "ordered", "result_avals", "sharding"),
    abstract=_abstract_results, emit=_io_emit, evaluate=_io_evaluate, jvp=_io_jvp, linearize=_io_jvp,
    transpose=_no_transpose, batch=_io_batch, multiple_results=True, memoised=False,
    unprinted={"sharding": ALWAYS_PRINTED}, effects=lambda *, ordered, **_: frozenset((_IO[ordered],)),
)


CALLING_PYTHON.update((pure_callback_p, io_callback_p))


def _prepare_call(
    function: str, callback: object, result_shape_dtypes: object, args: object, kwargs: object
) -> tuple[list[Any], Function, tuple[ShapedArray, ...]]:
    """Return the operands of a call, the function, and its result types; errors name the bad argument."""
    if not callable(callback):
        raise TypeError(
            f"{function}: the callback must be callable, got {type(callback).__name__} {abbreviate(callback)}"
        )
    leaves, tree = pytree.tree_flatten((args, kwargs))
    for position, leaf in enumerate(leaves):
        try:
            aval_of(leaf)
        except TypeError as error:
            (which, *path), _ = pytree.tree_flatten_with_path((args, kwargs))[0][position]
            name = ("args", "kwargs")[which.idx] + key_paths.keystr(tuple(path))
            raise TypeError(
                f"{function}: {name}, an argument of {function_name(callback)}, is no array: {error}. Close over other "
                "values, or set them with functools.partial"
            ) from None
    described, out_tree = pytree.tree_flatten(result_shape_dtypes)
    avals = tuple([_result_aval(function, result_shape_dtypes, i, x) for i, x in enumerate(described)])
    return leaves, Function(callback, tree, (), out_tree), avals


def _result_aval(function: str, whole: object, position: int, described: Any) -> ShapedArray:
    def where() -> str:
        path, _ = pytree.tree_flatten_with_path(whole)[0][position]
        return f"{function}: result_shape_dtypes{key_paths.keystr(path)}"

    if not hasattr(described, "shape") or not hasattr(described, "dtype"):
        raise AttributeError(
            f"{where()} must have a shape and a dtype, such as ShapeDtypeStruct((3,), 'float32'); it is "
            f"{abbreviate(described)}"
        )
    if isinstance(described.dtype, dtypes.ExtendedDType):
        raise TypeError(
            f"{where()} is of dtype {described.dtype.name}, which NumPy does not have: return the integers, "
            "random.key_data(keys), and convert them to keys with random.wrap_key_data"
        )
    dtype = np.dtype(described.dtype)
    if dtypes.canonicalize(dtype, config.enable_x64.value) != dtype:
        raise ValueError(
            f"result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled: {where()} is "
            f"{dtype.name}. Return a smaller type, or enable jax_enable_x64"
        )
    return ShapedArray(integer_tuple("shape", described.shape), dtype)


def pure_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Any = None,
    vmap_method: str | None = None, **kwargs: Any,
) -> Any:
    """Call a pure Python function each time the program runs, and return its results.

    Args:
        callback: a function of arrays that returns a tree of NumPy or other arrays. It may be called more than once, or
            not at all if its results are not used.
        result_shape_dtypes: a tree like its result, of objects with a shape and a dtype.
        args: its arguments, trees of arrays.
        sharding: not supported on several devices; leave it at None.
        vmap_method: the behaviour under `vmap`: one call for each index (``"sequential"``, ``"sequential_unrolled"``),
            or one call with a leading axis. That axis has size 1 in unmapped operands (``"expand_dims"``), or they are
            repeated along it (``"broadcast_all"``) or lack it (``"legacy_vectorized"``). None for an error.
        kwargs: further arguments, by name.

    Returns:
        A tree of arrays of the types of `result_shape_dtypes`.

    Raises:
        JaxRuntimeError: at run time, the function raises an error, which is the cause, or returns other types.
        TypeError: `callback` cannot be called, or an argument is no array.
        ValueError: the call is differentiated without a `custom_jvp` or `custom_vjp` rule.

    Example:
        >>> xtrace.jit(lambda x: xtrace.pure_callback(np.sin, xtrace.ShapeDtypeStruct((), jnp.float32), x))(0.0)
        Array(0., dtype=float32)
    """
    check_method(vmap_method)
    leaves, function, avals = _prepare_call("pure_callback", callback, result_shape_dtypes, args, kwargs)
    results = pure_callback_p.bind_positional(leaves, (function, avals, sharding, vmap_method))
    return pytree.tree_unflatten(function.out_tree, results)


def io_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Any = None, ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with effects each time the program runs, and return its results.

    Args:
        callback: a function of arrays that returns a tree of NumPy or other arrays; it is called once each time.
        result_shape_dtypes: a tree like its result, of objects with a shape and a dtype.
        args: its arguments, trees of arrays.
        sharding: not supported on several devices; leave it at None.
        ordered: whether calls are made in the order of the program, and of the programs that a thread calls.
        kwargs: further arguments, by name.

    Returns:
        A tree of arrays of the types of `result_shape_dtypes`.

    Raises:
        JaxRuntimeError: at run time, the function raises an error, which is the cause, or returns other types.
        TypeError: `callback` cannot be called, or an argument is no array.
        ValueError: the call is differentiated, or is mapped and `ordered`.

    Example:
        >>> xtrace.experimental.io_callback(lambda: np.float32(2.0), xtrace.ShapeDtypeStruct((), jnp.float32))
        Array(2., dtype=float32)
    """
    leaves, function, avals = _prepare_call("io_callback", callback, result_shape_dtypes, args, kwargs)
    results = io_callback_p.bind_positional(leaves, (function, bool(ordered), avals, sharding))
    return pytree.tree_unflatten(function.out_tree, results)
