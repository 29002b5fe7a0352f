"""Lowering rules that build operations with jaxlib's MLIR objects (``jax.interpreters.mlir``)."""
# ruff: noqa: I001

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, Union

import numpy as np

from xtrace._src.core import dtypes
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.annotations import DTypeLike
from xtrace._src.core.avals import AbstractToken, ShapedArray, aval_of, is_array_like
from xtrace._src.core.shardings.mesh import Mesh
from xtrace._src.core.primitive import Primitive
from xtrace._late_imports import late_imports as _late_imports
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.extension import lowering_rules
from xtrace._src.extension.lowering_contexts import (
    LoweringParameters,
    LoweringResult,
    LoweringRuleContext,
    ModuleContext,
    ShapePolyLoweringState,
    ShardingContext,
    SPMDAxisContext,
    TokenSet,
    lowerable_effects,
)
from xtrace._src.stablehlo import attributes
from xtrace._late_imports import late_modules

with late_modules(globals()):
    from xtrace._src.ops.calls import ffi
    from xtrace._src.xla.mlir import modules, mlir_objects

__all__ = [
    "AxisContext", "ConstantHandler", "DEVICE_TO_DEVICE_TYPE", "LoweringParameters", "LoweringResult",
    "LoweringRule", "LoweringRuleContext", "Mesh", "MeshAxisName", "ModuleContext", "RECV_FROM_HOST_TYPE",
    "SEND_TO_HOST_TYPE", "SPMDAxisContext", "ShapePolyLoweringState", "ShardingContext", "TokenSet",
    "aval_to_ir_type", "aval_to_ir_types", "dense_int_array", "dense_int_elements", "dtype_to_ir_type",
    "flatten_ir_types", "flatten_ir_values", "i32_attr", "i64_attr", "ir_attribute", "ir_constant", "ir_constants",
    "ir_type_handlers", "lower_fun", "lowerable_effects", "make_ir_context", "module_to_bytecode",
    "module_to_string", "register_constant_handler", "register_lowering", "shape_tensor", "token_type",
    "unflatten_ir_values_like_types",
]

# StableHLO's numbers of the kinds of channels.
DEVICE_TO_DEVICE_TYPE, SEND_TO_HOST_TYPE, RECV_FROM_HOST_TYPE = 1, 2, 3


def register_lowering(
    prim: Primitive, rule: Callable[..., Any], platform: str | None = None, inline: bool = True,
    cacheable: bool = True,
) -> None:
    """Register the lowering rule of a primitive: how to write it in StableHLO.

    Args:
        prim: the primitive.
        rule: `lower_fun` of a function, or ``rule(ctx, *values, **parameters)`` that builds operations with jaxlib's
            MLIR objects at the current insertion point and returns the values of the results. ``ctx.avals_in`` and
            ``ctx.avals_out`` are the types.
        platform: ``"cpu"``, ``"cuda"``, ``"rocm"``, ``"gpu"`` or ``"tpu"``; None for all platforms without a rule.
        inline: not used.
        cacheable: not used.

    Raises:
        TypeError: `prim` is not a primitive, or `rule` is not a function.

    Example:
        >>> from xtrace.interpreters import mlir
        >>> cube_p = xtrace.extend.core.Primitive("cube")
        >>> _ = cube_p.def_abstract_eval(lambda x: x)
        >>> mlir.register_lowering(cube_p, mlir.lower_fun(lambda x: x * x * x, multiple_results=False))
        >>> xtrace.jit(cube_p.bind)(2.0)
        Array(8., dtype=float32, weak_type=True)
    """
    if not isinstance(prim, Primitive):
        raise TypeError(f"register_lowering: prim must be a primitive, got {abbreviate(prim)}")
    if not callable(rule):
        raise TypeError(f"register_lowering: the rule of {prim} must be a function, got {abbreviate(rule)}")
    lowering_rules.register(prim, rule, platform)


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Callable[..., Any]:
    """Make a lowering rule from a function of arrays.

    Args:
        fun: ``fun(*arrays, **parameters)``.
        multiple_results: whether `fun` returns a sequence.

    Returns:
        A rule for `register_lowering`.

    Raises:
        TypeError: `fun` is not a function.

    Example:
        >>> callable(xtrace.interpreters.mlir.lower_fun(jnp.sin, multiple_results=False))
        True
    """
    if not callable(fun):
        raise TypeError(f"lower_fun: fun must be a function, got {abbreviate(fun)}")
    return lowering_rules.LoweredFunction(fun, multiple_results)


def aval_to_ir_type(ctx: object, aval: ShapedArray) -> Any:
    """Return the MLIR type of values of a type.

    Args:
        ctx: the module's context; not used.
        aval: the type.

    Returns:
        An MLIR type.

    Raises:
        TypeError: the type is not an array type.

    Example:
        >>> xtrace.interpreters.mlir.aval_to_ir_type(None, xtrace.typeof(jnp.ones(2)))
        RankedTensorType(tensor<2xf32>)
    """
    types = aval_to_ir_types(ctx, aval)
    if len(types) != 1:
        raise TypeError(f"aval_to_ir_type: values of type {aval} have {len(types)} MLIR types; use aval_to_ir_types")
    return types[0]


def aval_to_ir_types(ctx: object, aval: ShapedArray) -> tuple[Any, ...]:
    """Return the MLIR types of values of a type; an array has one.

    Args:
        ctx: the module's context; not used.
        aval: the type.

    Returns:
        A tuple of MLIR types.

    Raises:
        TypeError: the type is not an array type.

    Example:
        >>> len(xtrace.interpreters.mlir.aval_to_ir_types(None, xtrace.typeof(1.0)))
        1
    """
    for kind in type(aval).__mro__:
        handler = ir_type_handlers.get(kind)
        if handler is not None:
            types = handler(aval)
            return tuple(types) if isinstance(types, (tuple, list)) else (types,)
    raise TypeError(f"aval_to_ir_types: {abbreviate(aval)} is not an array type and has no handler in ir_type_handlers")


def dtype_to_ir_type(dtype: DTypeLike) -> Any:
    """Return the MLIR type of elements of a dtype.

    Args:
        dtype: the dtype.

    Returns:
        An MLIR type.

    Raises:
        TypeError: there is no such dtype.

    Example:
        >>> xtrace.interpreters.mlir.dtype_to_ir_type("float32")
        F32Type(f32)
    """
    return mlir_objects.element_type(ShapedArray((), np.dtype(dtype)).mlir_type)


def ir_constant(val: Any, *, const_lowering: object = None, aval: object = None) -> Any:
    """Build a constant at the current insertion point.

    Args:
        val: an array or a scalar.
        const_lowering: not used.
        aval: its type, an argument of registered handlers.

    Returns:
        An MLIR value.

    Raises:
        TypeError: `val` is not an array.

    Example:
        >>> from xtrace.interpreters import mlir
        >>> one_p = xtrace.extend.core.Primitive("one")
        >>> _ = one_p.def_abstract_eval(lambda: xtrace.typeof(jnp.ones(2)))
        >>> mlir.register_lowering(one_p, lambda ctx: mlir.ir_constant(np.ones(2, np.float32)))
        >>> xtrace.jit(lambda: one_p.bind())()
        Array([1., 1.], dtype=float32)
    """
    values = ir_constants(val, const_lowering=const_lowering, aval=aval)
    if len(values) != 1:
        raise TypeError(f"ir_constant: {abbreviate(val)} is {len(values)} MLIR values; use ir_constants")
    return values[0]


def _build_array_constant(val: Any) -> Any:
    host = np.asarray(val)
    kind = aval_of(host).mlir_type
    return mlir_objects.constant(f"{attributes.dense(dtypes.cast(host, aval_of(host).dtype))} : {kind}")


def ir_constants(val: Any, *, const_lowering: object = None, aval: object = None) -> tuple[Any, ...]:
    """Build a constant, and return the tuple of its values.

    Args:
        val: an array or a scalar.
        const_lowering: not used.
        aval: its type, an argument of registered handlers.

    Returns:
        A tuple of MLIR values, one for an array.

    Raises:
        TypeError: `val` is not an array.

    Example:
        >>> callable(xtrace.interpreters.mlir.ir_constants)
        True
    """
    for kind in type(val).__mro__:
        handler = _constant_handlers.get(kind)
        if handler is not None:
            return tuple(mlir_objects.flatten(handler(val, aval)))
    if not isinstance(val, mlir_objects.ir.Value) and not is_array_like(val):
        raise TypeError(
            f"No constant handler for type: {type(val)}; register one with "
            "xtrace.interpreters.mlir.register_constant_handler"
        )
    return (_build_array_constant(val),)


def i32_attr(i: int) -> Any:
    """Return an MLIR attribute of a 32-bit integer.

    Args:
        i: the integer.

    Returns:
        An MLIR attribute.

    Raises:
        TypeError: `i` is not an integer.

    Example:
        >>> print(xtrace.interpreters.mlir.i32_attr(3))
        3 : i32
    """
    return mlir_objects.integer_attribute(32, i)


def i64_attr(i: int) -> Any:
    """Return an MLIR attribute of a 64-bit integer.

    Args:
        i: the integer.

    Returns:
        An MLIR attribute.

    Raises:
        TypeError: `i` is not an integer.

    Example:
        >>> print(xtrace.interpreters.mlir.i64_attr(3))
        3 : i64
    """
    return mlir_objects.integer_attribute(64, i)


def dense_int_elements(xs: Sequence[int]) -> Any:
    """Return an MLIR attribute of integers, a dense vector.

    Args:
        xs: the integers.

    Returns:
        An MLIR attribute.

    Raises:
        TypeError: an element is not an integer.

    Example:
        >>> print(xtrace.interpreters.mlir.dense_int_elements([1, 2]))
        dense<[1, 2]> : tensor<2xi64>
    """
    return mlir_objects.dense_elements(xs)


def dense_int_array(xs: Sequence[int]) -> Any:
    """Return an MLIR attribute of integers, a dense array.

    Args:
        xs: the integers.

    Returns:
        An MLIR attribute.

    Raises:
        TypeError: an element is not an integer.

    Example:
        >>> print(xtrace.interpreters.mlir.dense_int_array([1, 2]))
        array<i64: 1, 2>
    """
    return mlir_objects.dense_array(xs)


def flatten_ir_values(xs: Iterable[Any]) -> list[Any]:
    """Flatten MLIR values and sequences of values to a list.

    Args:
        xs: MLIR values, and sequences of these.

    Returns:
        A list of MLIR values.

    Raises:
        TypeError: an element is neither.

    Example:
        >>> xtrace.interpreters.mlir.flatten_ir_values([])
        []
    """
    return mlir_objects.flatten(list(xs))


def make_ir_context() -> Any:
    """Return an MLIR context with StableHLO and the other dialects that modules use.

    Returns:
        An MLIR context.

    Raises:
        ImportError: jaxlib has no MLIR bindings.

    Example:
        >>> type(xtrace.interpreters.mlir.make_ir_context()).__name__
        'JaxIrContext'
    """
    return modules.context()


def module_to_string(module: Any, enable_debug_info: bool | None = None) -> str:
    """Return the text of an MLIR module.

    Args:
        module: an MLIR module.
        enable_debug_info: whether the text has locations.

    Returns:
        A string.

    Raises:
        TypeError: `module` is not an MLIR module.

    Example:
        >>> module = xtrace.jit(jnp.sin).lower(1.0).compiler_ir()
        >>> "stablehlo.sine" in xtrace.interpreters.mlir.module_to_string(module)
        True
    """
    return modules.write_text(module, bool(enable_debug_info))


def module_to_bytecode(module: Any) -> bytes:
    """Return the bytecode of an MLIR module.

    Args:
        module: an MLIR module.

    Returns:
        Bytes.

    Raises:
        AttributeError: `module` is not an MLIR module.

    Example:
        >>> module = xtrace.jit(jnp.sin).lower(1.0).compiler_ir()
        >>> xtrace.interpreters.mlir.module_to_bytecode(module)[:4]
        b'ML\\xefR'
    """
    return mlir_objects.bytecode(module)


def ir_attribute(val: Any) -> Any:
    """Convert a value to an MLIR attribute.

    Args:
        val: a boolean, a number, a string, a NumPy array or dtype, or a sequence of these or a dict of these with
            strings as keys; an attribute is returned unchanged.

    Returns:
        An MLIR attribute.

    Raises:
        TypeError: there is no attribute for the value.

    Example:
        >>> print(xtrace.interpreters.mlir.ir_attribute({"axis": 1, "names": ["a", "b"]}))
        {axis = 1 : i64, names = ["a", "b"]}
    """
    if isinstance(val, mlir_objects.ir.Attribute):
        return val
    return mlir_objects.parse_attribute(ffi.attribute_text("ir_attribute", "val", val))


def flatten_ir_types(xs: Iterable[Any]) -> list[Any]:
    """Flatten MLIR types and sequences of types to a list.

    Args:
        xs: MLIR types, and sequences of these.

    Returns:
        A list of MLIR types.

    Raises:
        TypeError: `xs` is not a sequence.

    Example:
        >>> from xtrace.interpreters import mlir
        >>> number = mlir.dtype_to_ir_type("float32")
        >>> mlir.flatten_ir_types([number, (number, number)])
        [F32Type(f32), F32Type(f32), F32Type(f32)]
    """
    return list(mlir_objects.ir_tree_registry.flatten(list(xs))[0])


def unflatten_ir_values_like_types(xs: Iterable[Any], ys: Sequence[Any]) -> list[Any]:
    """Pack MLIR values into the structure of types.

    Args:
        xs: the values.
        ys: types, and sequences of types, as many in all as there are values.

    Returns:
        A list of values, and of sequences of values.

    Raises:
        ValueError: there are more or fewer values than types.

    Example:
        >>> from xtrace.interpreters import mlir
        >>> number = mlir.dtype_to_ir_type("float32")
        >>> mlir.unflatten_ir_values_like_types(["x", "y", "z"], [number, (number, number)])
        ['x', ('y', 'z')]
    """
    leaves, structure = mlir_objects.ir_tree_registry.flatten(list(ys))
    given = list(xs)
    if len(given) != len(leaves):
        raise ValueError(f"unflatten_ir_values_like_types: xs has {len(given)} values, and ys {len(leaves)} types")
    return list(structure.unflatten(given))


def register_constant_handler(type_: type, handler_fun: Callable[..., Any]) -> None:
    """Register the function by which `ir_constant` builds objects of a class.

    Args:
        type_: the class.
        handler_fun: ``handler_fun(value, aval)`` returns an MLIR value, or a sequence of them.

    Raises:
        TypeError: `type_` is not a class, or `handler_fun` is not a function.

    Example:
        >>> from xtrace.interpreters import mlir
        >>> class Scale:
        ...     factor = np.float32(3)
        >>> mlir.register_constant_handler(Scale, lambda scale, aval: mlir.ir_constant(scale.factor))
    """
    if not isinstance(type_, type):
        raise TypeError(f"register_constant_handler: type_ must be a class, got {abbreviate(type_)}")
    if not callable(handler_fun):
        raise TypeError(f"register_constant_handler: handler_fun must be a function, got {abbreviate(handler_fun)}")
    _constant_handlers[type_] = handler_fun


def token_type(context: Any = None) -> Any:
    """Return the MLIR type of tokens.

    Args:
        context: the MLIR context; None for the shared context of xtrace.

    Returns:
        An MLIR type.

    Raises:
        TypeError: `context` is not a context.

    Example:
        >>> print(xtrace.interpreters.mlir.token_type())
        !stablehlo.token
    """
    return mlir_objects.get_token_type(context)


def shape_tensor(ctx: object, sizes: Sequence[Any]) -> Any:
    """Build a vector of sizes, an operand of operations with dynamic shapes.

    Args:
        ctx: the module's context; not used.
        sizes: integers, and MLIR values of scalars.

    Returns:
        An MLIR value, a vector of 32-bit integers.

    Raises:
        TypeError: a size is neither.

    Example:
        >>> from xtrace.interpreters import mlir
        >>> sizes_p = xtrace.extend.core.Primitive("sizes")
        >>> _ = sizes_p.def_abstract_eval(lambda: xtrace.typeof(np.zeros(2, np.int32)))
        >>> mlir.register_lowering(sizes_p, lambda ctx: mlir.shape_tensor(ctx.module_context, (2, 3)))
        >>> xtrace.jit(lambda: sizes_p.bind())()
        Array([2, 3], dtype=int32)
    """
    given = [x.__index__() if hasattr(x, "__index__") else x for x in sizes]
    for size in given:
        if not isinstance(size, (int, mlir_objects.ir.Value)):
            raise TypeError(f"shape_tensor: a size must be an integer or an MLIR value, got {abbreviate(size)}")
    return mlir_objects.concatenate_scalars(given)


LoweringRule = Callable[..., Any]
AxisContext = Union[SPMDAxisContext, ShardingContext]  # noqa: UP007
MeshAxisName = Any


class ConstantHandler(Protocol):
    """A function that builds the constant of an object: see `register_constant_handler`."""

    def __call__(self, val: Any, aval: Any) -> Any: ...


# Functions that build constants, by the class of the value, and MLIR types, by the class of the type.
_constant_handlers: dict[type, ConstantHandler] = {}
ir_type_handlers: dict[type, Callable[[Any], Any]] = {
    ShapedArray: lambda aval: mlir_objects.parse_type(aval.mlir_type), AbstractToken: lambda _: token_type(),
}

_make_public(globals(), __all__)

# These load at their first use, and jaxlib's MLIR bindings with them: programs import the bindings from here.
with _late_imports(globals()):
    from xtrace._src.extension.mlir_programs import (
        core_call_lowering as core_call_lowering, emit_python_callback as emit_python_callback,
        jaxpr_subcomp as jaxpr_subcomp, lower_jaxpr_to_fun as lower_jaxpr_to_fun,
        lower_jaxpr_to_module as lower_jaxpr_to_module, merge_mlir_modules as merge_mlir_modules,
    )
    from xtrace._src.xla.mlir.mlir_objects import Token as Token, Value as Value, ir_tree_registry as ir_tree_registry

with _late_imports(globals(), listed=False):
    from xtrace._src.xla.mlir.mlir_objects import ir as ir
