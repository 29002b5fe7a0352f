"""Options of compilations (``jax.interpreters.pxla``)."""

from __future__ import annotations

from typing import Any

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.shardings.mesh import thread_resources  # noqa: F401
from xtrace._src.xla.executables import executables

__all__ = ["create_compile_options"]


def create_compile_options(
    computation: Any, tuple_args: bool, allow_prop_to_inputs: Any, allow_prop_to_outputs: Any, backend: Any,
    np_dev: Any, compiler_options: dict[str, Any] | None,
) -> Any:
    """Return XLA's options for the compilation of a module for devices.

    Args:
        computation: the module; not used.
        tuple_args: must be False.
        allow_prop_to_inputs: a flag for each input, True to let the compiler choose its sharding.
        allow_prop_to_outputs: a flag for each result, True to let the compiler choose its sharding.
        backend: the client; not used.
        np_dev: the devices.
        compiler_options: flags of XLA by name, or None.

    Returns:
        jaxlib's CompileOptions.

    Raises:
        NotImplementedError: `tuple_args` is True.

    Example:
        >>> import numpy as np
        >>> xtrace.interpreters.pxla.create_compile_options(
        ...     None, False, (False,), (False,), None, np.array(xtrace.devices()[:1]), None).num_partitions
        1
    """
    if tuple_args:
        raise NotImplementedError("create_compile_options: tuple_args is not supported; leave it at False")
    devices = list(np_dev.ravel())
    partitioned = executables.Partitioned(list(allow_prop_to_inputs), list(allow_prop_to_outputs))
    return executables.options_for(devices, compiler_options or {}, partitioned if len(devices) > 1 else None)


_make_public(globals(), __all__)
