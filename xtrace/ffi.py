"""Foreign functions: compiled code of the user's own in XLA programs (``jax.ffi``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xtrace._late_imports import late_modules as _late_modules
from xtrace._src.core.avals import AbstractToken
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.extension.lowering_rules import TextRule
from xtrace._src.ops.calls.ffi import ForeignLowering, ffi_call
from xtrace._src.stablehlo.builder import symbol as _symbol
from xtrace._src.xla.custom_calls import ffi as _ffi

with _late_modules(globals()):
    from xtrace._src.extension import mlir_functions as _mlir_functions

__all__ = [
    "abstract_token", "build_ffi_lowering_function", "ffi_call", "ffi_lowering", "include_dir", "pycapsule",
    "register_ffi_target", "register_ffi_target_as_batch_partitionable", "register_ffi_type", "register_ffi_type_id",
]

# The type of tokens, for handlers that take or return them.
abstract_token = AbstractToken()


def ffi_lowering(
    call_target_name: str, *, operand_layouts: Sequence[Any] | None = None, result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None, skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """Return the lowering rule of a primitive that calls a foreign function; its parameters are attributes.

    Args:
        call_target_name: the name that the function is registered under.
        operand_layouts, result_layouts: for each array its axes, the fastest-varying first; None for row-major order.
        backend_config: a dict of further attributes besides the primitive's parameters; below version 4 a string.
        skip_ffi_layout_processing: not used; layouts are passed on unchanged.
        lowering_args: ``api_version``, ``has_side_effect``, ``operand_output_aliases``.

    Returns:
        A rule for `xtrace.interpreters.mlir.register_lowering`.

    Raises:
        TypeError: there is no such argument, or `call_target_name` is not a string.

    Example:
        >>> callable(xtrace.ffi.ffi_lowering("my_handler"))
        True
    """
    foreign = ForeignLowering(
        "ffi_lowering", call_target_name, operand_layouts, result_layouts, backend_config, **lowering_args
    )
    return TextRule(foreign.emit, _symbol(call_target_name))


def build_ffi_lowering_function(
    call_target_name: str, *, operand_layouts: Sequence[Any] | None = None, result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None, skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """Return a function that builds the call of a foreign function in a lowering rule.

    Args:
        call_target_name: the name that the function is registered under.
        operand_layouts, result_layouts: for each array its axes, the fastest-varying first; None for row-major order.
        backend_config: a dict of further attributes besides the attributes of the call; below version 4 a string.
        skip_ffi_layout_processing: not used; layouts are passed on unchanged.
        lowering_args: ``api_version``, ``has_side_effect``, ``operand_output_aliases``.

    Returns:
        A function of the rule's context, MLIR values, and attributes by name. It returns an MLIR operation with the
        result types of the context.

    Raises:
        TypeError: there is no such argument, or `call_target_name` is not a string.

    Example:
        >>> callable(xtrace.ffi.build_ffi_lowering_function("my_handler", has_side_effect=True))
        True
    """
    foreign = ForeignLowering(
        "build_ffi_lowering_function", call_target_name, operand_layouts, result_layouts, backend_config,
        **lowering_args,
    )

    def build(ctx: Any, *operands: Any, **attributes: Any) -> Any:
        # The first access to this module loads jaxlib's MLIR.
        return _mlir_functions.build_foreign_call(foreign, ctx, operands, attributes)

    return build


def register_ffi_target(name: str, fn: object, platform: str = "cpu", api_version: int = 1, **kwargs: object) -> None:
    """Register a handler under the name that `ffi_call` uses.

    Args:
        name: the name.
        fn: a capsule of the handler, as `pycapsule` makes, or a dict of capsules for the stages ``instantiate``,
            ``prepare``, ``initialize`` and ``execute``.
        platform: ``"cpu"``, ``"cuda"``, ``"rocm"`` or ``"tpu"``.
        api_version: 1 for XLA's typed interface, 0 for the older one.
        kwargs: options that XLA's registration takes.

    Raises:
        TypeError: `name` is not a string.

    Example:
        >>> import ctypes
        >>> xtrace.ffi.register_ffi_target("example_abs", xtrace.ffi.pycapsule(ctypes.CDLL(None).abs), api_version=0)
    """
    if not isinstance(name, str):
        raise TypeError(f"register_ffi_target: name must be a string, got {abbreviate(name)}")
    if type(fn).__name__ not in ("PyCapsule", "dict"):
        raise TypeError(
            f"register_ffi_target: fn must be a capsule, see ffi.pycapsule, or a dict of them; got {abbreviate(fn)}"
        )
    _ffi.register_target(name, fn, platform, api_version, **kwargs)


def register_ffi_type(name: str, type_registration: object, platform: str = "cpu") -> None:
    """Register a type of the state of handlers.

    Args:
        name: the name of the type.
        type_registration: a dict with the capsules ``type_id`` and ``type_info``.
        platform: ``"cpu"``, ``"cuda"``, ``"rocm"`` or ``"tpu"``.

    Raises:
        TypeError: `name` is not a string, or `type_registration` is not a dict of capsules.

    Example:
        >>> try: xtrace.ffi.register_ffi_type("example_state", None)
        ... except TypeError: "a library provides the capsules"
        'a library provides the capsules'
    """
    _ffi.register_type(name, type_registration, platform)


def register_ffi_type_id(name: str, obj: object, platform: str = "cpu") -> None:
    """Register the id of a type of the state of handlers.

    Args:
        name: the name of the type.
        obj: a capsule of the id.
        platform: ``"cpu"``, ``"cuda"``, ``"rocm"`` or ``"tpu"``.

    Raises:
        TypeError: `name` is not a string, or `obj` is not a capsule.

    Example:
        >>> try: xtrace.ffi.register_ffi_type_id("example_state", None)
        ... except TypeError: "a library provides the capsule"
        'a library provides the capsule'
    """
    _ffi.register_type(name, obj, platform)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Register that calls of a handler may be split over devices along their batch axes.

    Args:
        name: the name of the handler.

    Raises:
        TypeError: `name` is not a string.

    Example:
        >>> xtrace.ffi.register_ffi_target_as_batch_partitionable("example_batched")
    """
    _ffi.mark_batch_partitionable(name)


def pycapsule(funcptr: object) -> Any:
    """Convert a function pointer of ctypes to a capsule that `register_ffi_target` takes.

    Args:
        funcptr: a function of a library that ctypes loaded, such as ``library.Handler``.

    Returns:
        A capsule.

    Raises:
        TypeError: `funcptr` is not a function of ctypes.

    Example:
        >>> import ctypes
        >>> type(xtrace.ffi.pycapsule(ctypes.CDLL(None).abs)).__name__
        'PyCapsule'
    """
    return _ffi.capsule(funcptr)


def include_dir() -> str:
    """Return the folder of the header files for handlers.

    Returns:
        A path, a string.

    Raises:
        RuntimeError: jaxlib is installed without header files.

    Example:
        >>> import os
        >>> os.path.isdir(xtrace.ffi.include_dir())
        True
    """
    return _ffi.include_folder()


_make_public(globals(), __all__)
