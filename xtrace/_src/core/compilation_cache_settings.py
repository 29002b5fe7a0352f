"""The settings of the folder of compiled programs, under JAX's names."""

from __future__ import annotations

from xtrace._src.core.config import BOOLEAN, FLOAT, INTEGER, TEXT, option

directory = option(
    "jax_compilation_cache_dir", None, TEXT,
    "A folder of your own that compiled programs are kept in, for later processes; None keeps none.",
)
enabled = option(
    "jax_enable_compilation_cache", True, BOOLEAN, "Off, the folder of compiled programs is neither read nor written."
)
min_compile_seconds = option(
    "jax_persistent_cache_min_compile_time_secs", 1.0, FLOAT, "Programs that compile faster are not kept on disk."
)
min_entry_size = option(
    "jax_persistent_cache_min_entry_size_bytes", 0, INTEGER, "Smaller programs are not kept on disk."
)
max_size = option(
    "jax_compilation_cache_max_size", -1, INTEGER,
    "The size of the folder in bytes, from which on the programs used longest ago are deleted; -1 for no bound.",
)
include_locations = option(
    "jax_compilation_cache_include_metadata_in_key", False, BOOLEAN,
    "Programs of other source lines are other programs of the folder, so that profiles show the right lines.",
)
raise_errors = option(
    "jax_raise_persistent_cache_errors", False, BOOLEAN, "Errors of the folder are raised; off, they are warnings."
)
trace_cache = option(
    "xtrace_trace_cache", False, BOOLEAN,
    "Traces are kept in the folder, too: a later process neither traces nor lowers a function of the same code, which "
    "reads the same values. Where it cannot be told what a function reads, it is traced.",
)
