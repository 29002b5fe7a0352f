"""Programs in MLIR: their portable form, and jaxlib's objects that build them (``jax.extend.mlir``)."""

from __future__ import annotations

from typing import Any

from xtrace._late_imports import late_imports as _late_imports
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function as _called_function
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.shardings.shardings import open_dimensions
from xtrace._src.stablehlo.shardy import Meshes
from xtrace._src.xla.mlir import mlir_names, mlir_objects

__all__ = [
    "deserialize_portable_artifact", "hlo_to_stablehlo", "lower_with_sharding_in_types", "refine_polymorphic_shapes",
    "serialize_portable_artifact",
]


def serialize_portable_artifact(mlir_module: Any, target: str, use_mixed_serialization: bool = False) -> bytes:
    """Serialize a StableHLO module in the form for other versions of StableHLO.

    Args:
        mlir_module: an MLIR module, its text or its bytecode.
        target: the oldest version of StableHLO for readers, such as ``"1.9.0"``.
        use_mixed_serialization: whether to allow operations of other dialects, unchanged.

    Returns:
        Bytes.

    Raises:
        TypeError: `mlir_module` is not a module, or `target` is not a string.
        JaxRuntimeError: there is no such version, or an operation has no portable form.

    Example:
        >>> from xtrace.extend import mlir
        >>> module = xtrace.jit(jnp.sin).lower(1.0).compiler_ir()
        >>> mlir.serialize_portable_artifact(module, "1.9.0")[:4]
        b'ML\\xefR'
    """
    if not isinstance(target, str):
        raise TypeError(
            f"serialize_portable_artifact: target must be a version such as '1.9.0', got {abbreviate(target)}"
        )
    if not isinstance(mlir_module, (str, bytes, mlir_objects.ir.Module)):
        raise TypeError(
            "serialize_portable_artifact: mlir_module must be an MLIR module, its text or its bytecode, got "
            f"{abbreviate(mlir_module)}"
        )
    return mlir_names.to_artifact(mlir_module, target, use_mixed_serialization)


def deserialize_portable_artifact(mlir_module: bytes, context: Any = None) -> Any:
    """Parse the result of `serialize_portable_artifact`.

    Args:
        mlir_module: the bytes.
        context: the MLIR context of the module; None for the shared context of xtrace.

    Returns:
        An MLIR module.

    Raises:
        TypeError: `mlir_module` is not bytes.
        JaxRuntimeError: the bytes are not such a module.

    Example:
        >>> from xtrace.extend import mlir
        >>> module = xtrace.jit(jnp.sin).lower(1.0).compiler_ir()
        >>> artifact = mlir.serialize_portable_artifact(module, "1.9.0")
        >>> "stablehlo.sine" in str(mlir.deserialize_portable_artifact(artifact))
        True
    """
    return mlir_names.from_artifact(_check_bytes("mlir_module", mlir_module), context)


def hlo_to_stablehlo(computation: bytes) -> bytes:
    """Convert a program in XLA's own form, HLO, to StableHLO.

    Args:
        computation: the program, a serialized HloModuleProto.

    Returns:
        The bytecode of the module.

    Raises:
        TypeError: `computation` is not bytes.
        JaxRuntimeError: the bytes are not such a program.

    Example:
        >>> from xtrace.extend import mlir
        >>> program = xtrace.jit(jnp.sin).lower(1.0).compiler_ir("hlo").as_serialized_hlo_module_proto()
        >>> module = mlir.ir.Module.parse(mlir.hlo_to_stablehlo(program), xtrace.interpreters.mlir.make_ir_context())
        >>> "stablehlo.sine" in str(module)
        True
    """
    return mlir_names.from_hlo(_check_bytes("computation", computation))


def refine_polymorphic_shapes(
    mlir_module: bytes, enable_shape_assertions: bool = True, validate_static_shapes: bool = True,
    enable_shardy: bool = False,
) -> bytes:
    """Replace the unknown sizes in a StableHLO module by sizes inferred from the inputs of ``main``.

    Args:
        mlir_module: the text or the bytecode of the module, whose function ``main`` takes arrays of known sizes.
        enable_shape_assertions: whether to check the conditions on sizes in the module.
        validate_static_shapes: whether a remaining unknown size is an error.
        enable_shardy: whether the shardings are in Shardy's form.

    Returns:
        The bytecode of the module.

    Raises:
        TypeError: `mlir_module` is not bytes.
        JaxRuntimeError: the bytes are not a module, or a size remains unknown.

    Example:
        >>> from xtrace.extend import mlir
        >>> text = b'''func.func @main(%x: tensor<2xf32>) -> tensor<?xf32> {
        ...   %y = stablehlo.custom_call @double(%x) : (tensor<2xf32>) -> tensor<?xf32>
        ...   return %y : tensor<?xf32>
        ... }'''
        >>> len(mlir.refine_polymorphic_shapes(text, validate_static_shapes=False)) > 0
        True
    """
    return mlir_names.with_static_shapes(
        _check_bytes("mlir_module", mlir_module), bool(enable_shape_assertions),
        bool(validate_static_shapes), bool(enable_shardy),
    )


def lower_with_sharding_in_types(ctx: Any, op: Any, aval: ShapedArray) -> Any:
    """Add the sharding of a type over explicit mesh axes to a value of a lowering rule.

    Args:
        ctx: the `LoweringRuleContext`; not used.
        op: the MLIR value.
        aval: its type; the value is returned unchanged for a type without a sharding.

    Returns:
        An MLIR value.

    Raises:
        TypeError: `aval` is not an array type.

    Example:
        >>> from xtrace.extend import mlir
        >>> mlir.lower_with_sharding_in_types(None, "value", xtrace.typeof(jnp.ones(2)))
        'value'
    """
    if not isinstance(aval, ShapedArray):
        raise TypeError(f"lower_with_sharding_in_types: {abbreviate(aval)} is not an array type")
    sharding = aval.explicit_sharding
    if sharding is None:
        return op
    free = open_dimensions(sharding, aval.ndim)
    return mlir_objects.constrain(op, Meshes().inline_sharding(sharding, aval.ndim, free))


def _check_bytes(name: str, given: object) -> bytes:
    if not isinstance(given, bytes):
        raise TypeError(f"{_called_function()}: {name} must be bytes, got {abbreviate(given)}")
    return given


_make_public(globals(), __all__)

# These load at their first use.
with _late_imports(globals()):
    from xtrace.extend.mlir import dialects as dialects
    from xtrace.extend.mlir import ir as ir
    from xtrace.extend.mlir import passmanager as passmanager
