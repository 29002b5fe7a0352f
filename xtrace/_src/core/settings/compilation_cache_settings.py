"""The settings of the folder of compiled programs, under JAX's names."""

from __future__ import annotations

from contextlib import AbstractContextManager

from xtrace._src.core.settings.options import BOOLEAN, FLOAT, INTEGER, TEXT, option


@option(None, TEXT, name="jax_compilation_cache_dir")
def directory(new_val: str | None) -> AbstractContextManager[None]:
    """A folder of your own that compiled programs are kept in, for later processes; None keeps none."""
    ...


@option(True, BOOLEAN, name="jax_enable_compilation_cache")
def enabled(new_val: bool = True) -> AbstractContextManager[None]:
    """Off, the folder of compiled programs is neither read nor written."""
    ...


@option(1.0, FLOAT, name="jax_persistent_cache_min_compile_time_secs")
def min_compile_seconds(new_val: float | None) -> AbstractContextManager[None]:
    """Programs that compile faster are not kept on disk."""
    ...


@option(0, INTEGER, name="jax_persistent_cache_min_entry_size_bytes")
def min_entry_size(new_val: int | None) -> AbstractContextManager[None]:
    """Smaller programs are not kept on disk."""
    ...


@option(-1, INTEGER, name="jax_compilation_cache_max_size")
def max_size(new_val: int | None) -> AbstractContextManager[None]:
    """The size of the folder in bytes, from which on the programs used longest ago are deleted; -1 for no bound."""
    ...


@option(False, BOOLEAN, name="jax_compilation_cache_include_metadata_in_key")
def include_locations(new_val: bool = True) -> AbstractContextManager[None]:
    """Programs of other source lines are other programs of the folder, so that profiles show the right lines."""
    ...


@option(False, BOOLEAN, name="jax_raise_persistent_cache_errors")
def raise_errors(new_val: bool = True) -> AbstractContextManager[None]:
    """Errors of the folder are raised; off, they are warnings."""
    ...


@option(False, BOOLEAN, name="xtrace_trace_cache")
def trace_cache(new_val: bool = True) -> AbstractContextManager[None]:
    """Traces are kept in the folder, too: a later process neither traces nor lowers a function of the same code, which
    reads the same values. Where it cannot be told what a function reads, it is traced.
    """
    ...
