"""The names of jaxlib's MLIR modules, and its functions on programs in MLIR."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

from jaxlib import _jax
from jaxlib.mlir import ir

from xtrace._src.xla.mlir import modules


def find_names(module: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a module with the names of a module of ``jaxlib.mlir``."""
    namespace = importlib.import_module(f"jaxlib.mlir.{module}")
    public = sorted([
        name for name, value in vars(namespace).items() if not name.startswith("_") and type(value) is not ModuleType
    ])

    def getattribute(name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module jaxlib.mlir.{module} has no public attribute {name!r}")
        return getattr(namespace, name)

    return public, getattribute, lambda: list(public)


def to_artifact(module: Any, target: str, mixed: bool) -> bytes:
    """Return the portable artifact, in a version of StableHLO, of a module, its text or its bytecode.

    Raises JaxRuntimeError with MLIR's messages for an unknown version or an operation without a portable form.
    """
    given = modules.write_text(module, debug_info=True) if isinstance(module, ir.Module) else module
    return bytes(_with_messages(lambda: _jax.mlir.serialize_portable_artifact(given, target, mixed)))


def from_artifact(artifact: bytes, context: Any) -> Any:
    """Return the module of a portable artifact, in an MLIR context; None is the context of all parsed modules."""
    return _with_messages(
        lambda: _jax.mlir.deserialize_portable_artifact(artifact, modules.context() if context is None else context)
    )


def from_hlo(computation: bytes) -> bytes:
    """Return the bytecode of the StableHLO module of an HLO program."""
    return _jax.mlir.hlo_to_stablehlo(computation)


def with_static_shapes(module: bytes, assertions: bool, validate: bool, shardy: bool) -> bytes:
    """Return the bytecode of a module in which the sizes of ``main``'s arguments determine the unknown sizes."""
    return bytes(_with_messages(lambda: _jax.mlir.refine_polymorphic_shapes(module, assertions, validate, shardy)))


def _with_messages(call: Callable[[], Any]) -> Any:
    """Return ``call()``; an error of XLA gets MLIR's messages as notes, which would go to the terminal otherwise."""
    with modules.collect_diagnostics() as messages:
        try:
            return call()
        except _jax.JaxRuntimeError as error:
            for message in messages:
                error.add_note(message)
            raise
