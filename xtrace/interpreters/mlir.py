"""Lowering rules built with jaxlib's MLIR objects: ``jax.interpreters.mlir``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from xtrace._src.core import dtypes
from xtrace._src.core.abbreviation import abbreviate
from xtrace._src.core.annotations import DTypeLike
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.late import make_public as _make_public
from xtrace._src.core.primitive import Primitive
from xtrace._src.extension import lowering
from xtrace._src.extension.lowering import LoweringRuleContext, ModuleContext
from xtrace._src.stablehlo import attributes
from xtrace._src.xla import mlir_rules, modules

__all__ = [
    "LoweringRule", "LoweringRuleContext", "ModuleContext", "Value", "aval_to_ir_type", "aval_to_ir_types",
    "dense_int_array", "dense_int_elements", "dtype_to_ir_type", "flatten_ir_values", "i32_attr", "i64_attr",
    "ir_constant", "ir_constants", "lower_fun", "make_ir_context", "module_to_bytecode", "module_to_string",
    "register_lowering",
]

def register_lowering(
    prim: Primitive, rule: Callable[..., Any], platform: str | None = None, inline: bool = True,
    cacheable: bool = True,
) -> None:
    """Register how a primitive is written in StableHLO.

    Args:
        prim: the primitive.
        rule: `lower_fun` of a function, or ``rule(ctx, *values, **parameters)`` that builds operations with jaxlib's
            MLIR objects at the insertion point in force and returns the values of the results. ``ctx.avals_in`` and
            ``ctx.avals_out`` are the types.
        platform: ``"cpu"``, ``"cuda"``, ``"rocm"``, ``"gpu"`` or ``"tpu"``; None for all without a rule of their own.
        inline: not used.
        cacheable: not used.

    Raises:
        TypeError: `prim` is no primitive, or `rule` no function.

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
    lowering.register(prim, rule, platform)


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Callable[..., Any]:
    """Return the lowering rule that writes the operations of a function of arrays.

    Args:
        fun: ``fun(*arrays, **parameters)``.
        multiple_results: whether it returns a sequence.

    Returns:
        A rule for `register_lowering`.

    Raises:
        TypeError: `fun` is no function.

    Example:
        >>> callable(xtrace.interpreters.mlir.lower_fun(jnp.sin, multiple_results=False))
        True
    """
    if not callable(fun):
        raise TypeError(f"lower_fun: fun must be a function, got {abbreviate(fun)}")
    return lowering.LoweredFunction(fun, multiple_results)


def aval_to_ir_type(ctx: object, aval: ShapedArray) -> Any:
    """Return the MLIR type of values of a type.

    Args:
        ctx: the module's context; not used.
        aval: the type.

    Returns:
        An MLIR type.

    Raises:
        TypeError: the type is none of arrays.

    Example:
        >>> xtrace.interpreters.mlir.aval_to_ir_type(None, xtrace.typeof(jnp.ones(2)))
        RankedTensorType(tensor<2xf32>)
    """
    if not isinstance(aval, ShapedArray):
        raise TypeError(f"aval_to_ir_type: {abbreviate(aval)} is no type of arrays")
    return mlir_rules.parse_type(aval.mlir_type)


def aval_to_ir_types(ctx: object, aval: ShapedArray) -> tuple[Any, ...]:
    """Return the MLIR types of values of a type, of which there is one.

    Args:
        ctx: the module's context; not used.
        aval: the type.

    Returns:
        A tuple of MLIR types.

    Raises:
        TypeError: the type is none of arrays.

    Example:
        >>> len(xtrace.interpreters.mlir.aval_to_ir_types(None, xtrace.typeof(1.0)))
        1
    """
    return (aval_to_ir_type(ctx, aval),)


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
    return mlir_rules.element_type(ShapedArray((), np.dtype(dtype)).mlir_type)


def ir_constant(val: Any, *, const_lowering: object = None, aval: object = None) -> Any:
    """Build a constant at the insertion point in force.

    Args:
        val: an array or a scalar.
        const_lowering: not used.
        aval: not used.

    Returns:
        An MLIR value.

    Raises:
        TypeError: `val` is no array.

    Example:
        >>> from xtrace.interpreters import mlir
        >>> one_p = xtrace.extend.core.Primitive("one")
        >>> _ = one_p.def_abstract_eval(lambda: xtrace.typeof(jnp.ones(2)))
        >>> mlir.register_lowering(one_p, lambda ctx: mlir.ir_constant(np.ones(2, np.float32)))
        >>> xtrace.jit(lambda: one_p.bind())()
        Array([1., 1.], dtype=float32)
    """
    host = np.asarray(val)
    kind = aval_of(host).mlir_type
    return mlir_rules.constant(f"{attributes.dense(dtypes.cast(host, aval_of(host).dtype))} : {kind}")


def ir_constants(val: Any, *, const_lowering: object = None, aval: object = None) -> tuple[Any, ...]:
    """Build a constant, and return it as a tuple of one value: `ir_constant`.

    Args:
        val: an array or a scalar.
        const_lowering: not used.
        aval: not used.

    Returns:
        A tuple of one MLIR value.

    Raises:
        TypeError: `val` is no array.

    Example:
        >>> callable(xtrace.interpreters.mlir.ir_constants)
        True
    """
    return (ir_constant(val),)


def i32_attr(i: int) -> Any:
    """Return an MLIR attribute of a 32-bit integer.

    Args:
        i: the integer.

    Returns:
        An MLIR attribute.

    Raises:
        TypeError: `i` is no integer.

    Example:
        >>> print(xtrace.interpreters.mlir.i32_attr(3))
        3 : i32
    """
    return mlir_rules.integer_attribute(32, i)


def i64_attr(i: int) -> Any:
    """Return an MLIR attribute of a 64-bit integer.

    Args:
        i: the integer.

    Returns:
        An MLIR attribute.

    Raises:
        TypeError: `i` is no integer.

    Example:
        >>> print(xtrace.interpreters.mlir.i64_attr(3))
        3 : i64
    """
    return mlir_rules.integer_attribute(64, i)


def dense_int_elements(xs: Sequence[int]) -> Any:
    """Return an MLIR attribute of integers, as a vector.

    Args:
        xs: the integers.

    Returns:
        An MLIR attribute.

    Raises:
        TypeError: an element is no integer.

    Example:
        >>> print(xtrace.interpreters.mlir.dense_int_elements([1, 2]))
        dense<[1, 2]> : tensor<2xi64>
    """
    return mlir_rules.dense_elements(xs)


def dense_int_array(xs: Sequence[int]) -> Any:
    """Return an MLIR attribute of integers, as an array.

    Args:
        xs: the integers.

    Returns:
        An MLIR attribute.

    Raises:
        TypeError: an element is no integer.

    Example:
        >>> print(xtrace.interpreters.mlir.dense_int_array([1, 2]))
        array<i64: 1, 2>
    """
    return mlir_rules.dense_array(xs)


def flatten_ir_values(xs: Iterable[Any]) -> list[Any]:
    """Return the MLIR values among values and sequences of values.

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
    return mlir_rules.flatten(list(xs))


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
        TypeError: `module` is no MLIR module.

    Example:
        >>> module = xtrace.jit(jnp.sin).lower(1.0).compiler_ir()
        >>> "stablehlo.sine" in xtrace.interpreters.mlir.module_to_string(module)
        True
    """
    return modules.text_of(module, bool(enable_debug_info))


def module_to_bytecode(module: Any) -> bytes:
    """Return an MLIR module as MLIR's bytecode.

    Args:
        module: an MLIR module.

    Returns:
        Bytes.

    Raises:
        AttributeError: `module` is no MLIR module.

    Example:
        >>> module = xtrace.jit(jnp.sin).lower(1.0).compiler_ir()
        >>> xtrace.interpreters.mlir.module_to_bytecode(module)[:4]
        b'ML\\xefR'
    """
    return mlir_rules.bytecode(module)


# Programs find jaxlib's bindings of MLIR here.
ir = mlir_rules.ir
LoweringRule = Callable[..., Any]
Value = ir.Value

_make_public(globals(), __all__)
