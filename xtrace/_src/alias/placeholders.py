"""Modules of jax that xtrace does without, but that libraries import before they know whether they need them."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, NoReturn

_COLOCATED = "jax.experimental.colocated_python"
_KERNELS = "jax.experimental.pallas.ops"
# Pallas itself cannot be imported, so these are entered in sys.modules, where the import system looks first.
KERNEL_MODULES = (
    _KERNELS, f"{_KERNELS}.gpu", f"{_KERNELS}.tpu",
    *[f"{_KERNELS}.gpu.{name}" for name in (
        "attention", "decode_attention", "layer_norm", "paged_attention", "rms_norm", "softmax",
    )],
    *[f"{_KERNELS}.tpu.{name}" for name in (
        "flash_attention", "matmul", "megablox", "megablox.gmm", "paged_attention",
        "paged_attention.paged_attention_kernel", "ragged_paged_attention", "ragged_paged_attention.kernel",
        "splash_attention", "splash_attention.splash_attention_kernel", "splash_attention.splash_attention_mask",
        "splash_attention.splash_attention_mask_info",
    )],
)
# The modules, and the error of a call of one of their names.
PLACEHOLDERS: dict[str, str] = {
    **dict.fromkeys(
        (_COLOCATED, f"{_COLOCATED}.func", f"{_COLOCATED}.serialization"),
        "Colocated Python is outside of what xtrace does; call a Python function with xtrace.pure_callback or "
        "xtrace.experimental.io_callback",
    ),
    **dict.fromkeys(
        KERNEL_MODULES,
        "kernels of Pallas are outside of what xtrace does; call xtrace.nn.dot_product_attention and other functions "
        "that XLA compiles, or kernels of your own with xtrace.ffi",
    ),
}


def make_placeholder(name: str) -> ModuleType:
    """Return a new module for the module `name` of jax, whose public names raise NotImplementedError when called."""
    module = ModuleType(name, f"Names that can be imported, and not called: {PLACEHOLDERS[name]}.")

    def getattribute(attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        if f"{name}.{attribute}" in PLACEHOLDERS:
            return importlib.import_module(f"{name}.{attribute}")

        def refuse(cls: object, *_: object, **__: object) -> NoReturn:
            raise NotImplementedError(f"{attribute}: {PLACEHOLDERS[name]}")

        return type(attribute, (), {"__new__": refuse, "__module__": name})

    module.__getattr__ = getattribute  # type: ignore[method-assign]
    module.__path__ = []
    return module
