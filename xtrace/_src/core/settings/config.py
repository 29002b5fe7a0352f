"""The settings, under JAX's names (``jax_enable_x64`` …), and the public object `config`.

The environment variable of a setting is ``XTRACE_X``, or else ``JAX_X``. The settings of JAX that change nothing here
are in `inert_settings.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.name_suggestions import nearest_name

with late_modules(globals()):
    from xtrace._src.core.settings import absl_flags as flags_of_absl
from xtrace._src.core.settings.setting import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    TEXT,
    Kind,
    at_most,
    declare_context,
    declared_settings,
    one_of,
    setting,
    some_of,
)
from xtrace._src.core.settings.setting import Setting as Setting
from xtrace._src.core.settings.setting import cache_key as cache_key
from xtrace._src.core.settings.setting import carry_settings as carry_settings
from xtrace._src.core.settings.setting import changed_settings as changed_settings
from xtrace._src.core.settings.setting import keyed_differences as keyed_differences
from xtrace._src.core.settings.setting import store as store


def _device(value: Any) -> Any:
    if value is None or hasattr(value, "device_kind") or (isinstance(value, str) and value.lower() in _PLATFORMS):
        return value
    raise ValueError(
        "the setting accepts a device, one of xtrace.devices(), or the name of a platform, "
        f"{', '.join(map(repr, _PLATFORMS))}; got {abbreviate(value)}"
    )


_PLATFORMS = ("cpu", "cuda", "gpu", "rocm", "tpu")


_PRECISIONS = (
    "default high highest bfloat16 tensorfloat32 float32 ANY_F8_ANY_F8_F32 ANY_F8_ANY_F8_F32_FAST_ACCUM "
    "ANY_F8_ANY_F8_ANY ANY_F8_ANY_F8_ANY_FAST_ACCUM F16_F16_F16 F16_F16_F32 BF16_BF16_BF16 BF16_BF16_F32 "
    "BF16_BF16_F32_X3 BF16_BF16_F32_X6 BF16_BF16_F32_X9 TF32_TF32_F32 TF32_TF32_F32_X3 F32_F32_F32 "
    "F64_F64_F64"
)


@setting(False, BOOLEAN, keyed=True)
def enable_x64(new_val: bool = True) -> AbstractContextManager[None]:
    """64-bit types are kept; off, they become their 32-bit forms."""
    ...


@setting("standard", one_of("standard", "strict"), keyed=True)
def numpy_dtype_promotion(new_val: str | None) -> AbstractContextManager[None]:
    """'strict' makes the implicit promotion of two different dtypes an error."""
    ...


@setting("allow", one_of("allow", "warn", "raise"), keyed=True)
def numpy_rank_promotion(new_val: str | None) -> AbstractContextManager[None]:
    """What happens when operands of different rank broadcast."""
    ...


@setting(None, one_of(None, *_PRECISIONS.split()), keyed=True)
def default_matmul_precision(new_val: str | None) -> AbstractContextManager[None]:
    """Precision of contractions that name none."""
    ...


@setting(
    None, Kind("string", _device, "a device of ``xtrace.devices()``, the name of a platform, or None.", "cpu"),
    keyed=True,
)
def default_device(new_val: object) -> AbstractContextManager[None]:
    """The device of uncommitted data; None is the first device."""
    ...


@setting(True, BOOLEAN, keyed=True)
def threefry_partitionable(new_val: bool = True) -> AbstractContextManager[None]:
    """Random bits that do not depend on how they are sharded."""
    ...


@setting("threefry2x32", one_of("threefry2x32", "rbg", "unsafe_rbg"), keyed=True)
def default_prng_impl(new_val: str | None) -> AbstractContextManager[None]:
    """The generator behind new keys."""
    ...


@setting(False, BOOLEAN, keyed=True)
def disable_jit(new_val: bool = True) -> AbstractContextManager[None]:
    """jit calls the Python function, operation by operation."""
    ...


@setting(False, BOOLEAN)
def check_tracer_leaks(new_val: bool = True) -> AbstractContextManager[None]:
    """Look for escaped tracers when a trace ends."""
    ...


@setting(False, BOOLEAN)
def enable_checks(new_val: bool = True) -> AbstractContextManager[None]:
    """Check every jaxpr that is made."""
    ...


@setting(False, BOOLEAN)
def log_compiles(new_val: bool = True) -> AbstractContextManager[None]:
    """Log every trace and compilation with its time."""
    ...


@setting(True, BOOLEAN, name="xtrace_host_evaluation")
def host_evaluation(new_val: bool = True) -> AbstractContextManager[None]:
    """Evaluate small programs of the library with NumPy when they are first called, and compile those called again."""
    ...


@setting(False, BOOLEAN)
def explain_cache_misses(new_val: bool = True) -> AbstractContextManager[None]:
    """Say why a jitted function traced again."""
    ...


@setting(32, INTEGER, name="xtrace_recompilation_limit")
def recompilation_limit(new_val: int | None) -> AbstractContextManager[None]:
    """How often a function may be compiled before a warning says why that happens; 0 or None for no warning."""
    ...


@setting(False, BOOLEAN, keyed=True)
def debug_nans(new_val: bool = True) -> AbstractContextManager[None]:
    """Raise where a NaN first appears."""
    ...


@setting(False, BOOLEAN, keyed=True)
def debug_infs(new_val: bool = True) -> AbstractContextManager[None]:
    """Raise where an infinity first appears."""
    ...


@setting(False, BOOLEAN, keyed=True)
def debug_key_reuse(new_val: bool = True) -> AbstractContextManager[None]:
    """Raise where a random key is used a second time."""
    ...


@setting("auto", one_of("auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames"))
def traceback_filtering(new_val: str | None) -> AbstractContextManager[None]:
    """Leave xtrace's frames out of tracebacks, with a note, or mark them for IPython and pytest to skip."""
    ...


@setting("", TEXT)
def dump_ir_to(new_val: str | None) -> AbstractContextManager[None]:
    """The directory that the programs of each compilation are written to."""
    ...


@setting("jaxpr,stablehlo,hlo", some_of("jaxpr", "stablehlo", "hlo", "jaxpr_html", "eqn_count_pprof"))
def dump_ir_modes(new_val: str | None) -> AbstractContextManager[None]:
    """Which programs are written to jax_dump_ir_to, by commas: those that jit traced, lowered, and XLA optimised; the
    first also as a page of HTML, and as a profile for pprof of how many equations each line of your code makes.
    """
    ...


@setting(None, TEXT)
def source_url_schema(new_val: str | None) -> AbstractContextManager[None]:
    """Links of the pages in jax_dump_ir_to, with {file} and {line} where the file's name and the line's number go."""
    ...


@setting(None, TEXT)
def platforms(new_val: str | None) -> AbstractContextManager[None]:
    """Comma-separated platforms to use, the first one the default."""
    ...


@setting(-1, at_most(2048, "XLA numbers the CPU devices of a process up to 2047"))
def num_cpu_devices(new_val: int | None) -> AbstractContextManager[None]:
    """How many devices the CPU client shows; read when it is made."""
    ...


@setting("gloo", one_of("gloo", "mpi", "megascale", None), name="jax_cpu_collectives_implementation")
def cpu_collectives(new_val: str | None) -> AbstractContextManager[None]:
    """How CPUs of several processes exchange data; jaxlib's own wheels have gloo. None leaves it out."""
    ...


@setting(2, INTEGER, name="jax_cpu_get_local_topology_timeout_minutes")
def cpu_local_topology_timeout(new_val: int | None) -> AbstractContextManager[None]:
    """How long the CPU client of a process waits for the other processes on its machine."""
    ...


@setting(5, INTEGER, name="jax_cpu_get_global_topology_timeout_minutes")
def cpu_global_topology_timeout(new_val: int | None) -> AbstractContextManager[None]:
    """How long the CPU client of a process waits for all other processes."""
    ...


@setting(False, BOOLEAN)
def enable_recoverability(new_val: bool = True) -> AbstractContextManager[None]:
    """Processes live on when others of the program have ended; read by distributed.initialize."""
    ...


@setting(False, BOOLEAN)
def no_tracing(new_val: bool = True) -> AbstractContextManager[None]:
    """Tracing a function is an error."""
    ...


@setting(False, BOOLEAN, keyed=True)
def no_execution(new_val: bool = True) -> AbstractContextManager[None]:
    """Running a program is an error."""
    ...


@setting("allow", one_of("allow", "warn", "error"), keyed=True)
def legacy_prng_key(new_val: str | None) -> AbstractContextManager[None]:
    """What happens when a random function is given a key that is an array of uint32."""
    ...


@setting(False, BOOLEAN, keyed=True)
def enable_custom_prng(new_val: bool = True) -> AbstractContextManager[None]:
    """random.PRNGKey makes typed keys, as random.key does."""
    ...


@setting(0, INTEGER, keyed=True)
def random_seed_offset(new_val: int | None) -> AbstractContextManager[None]:
    """A number that is added to the seeds of new keys."""
    ...


@setting(False, BOOLEAN, keyed=True)
def high_dynamic_range_gumbel(new_val: bool = True) -> AbstractContextManager[None]:
    """random.gumbel's mode is 'high' by default."""
    ...


@setting(False, BOOLEAN, keyed=True)
def check_static_indices(new_val: bool = True) -> AbstractContextManager[None]:
    """x[i] with a Python number i out of bounds is an error."""
    ...


@setting(True, BOOLEAN, keyed=True)
def allow_f16_reductions(new_val: bool = True) -> AbstractContextManager[None]:
    """Off, lax.reduce_sum in 16-bit floats is an error."""
    ...


@setting(2_000_000_000, INTEGER)
def captured_constants_warn_bytes(new_val: int | None) -> AbstractContextManager[None]:
    """How many bytes a program may close over before a warning; -1 for none."""
    ...


@setting("warn", one_of("warn", "error", "allow"), keyed=True)
def explicit_x64_dtypes(new_val: str | None) -> AbstractContextManager[None]:
    """What happens when a 64-bit dtype is asked for by name without jax_enable_x64."""
    ...


_LEVELS = one_of("UNKNOWN", "O0", "O1", "O2", "O3")


@setting("UNKNOWN", _LEVELS, keyed=True)
def optimization_level(new_val: object) -> AbstractContextManager[None]:
    """How much XLA does to make programs fast."""
    ...


@setting("O2", _LEVELS, keyed=True)
def memory_fitting_level(new_val: object) -> AbstractContextManager[None]:
    """How much XLA does to make programs fit in memory."""
    ...


@setting(0.0, FLOAT, keyed=True)
def exec_time_optimization_effort(new_val: float | None) -> AbstractContextManager[None]:
    """XLA's effort for fast programs, from -1 to 1."""
    ...


@setting(0.0, FLOAT, keyed=True)
def memory_fitting_effort(new_val: float | None) -> AbstractContextManager[None]:
    """XLA's effort for programs with little memory, from -1 to 1."""
    ...


@setting(False, BOOLEAN, keyed=True)
def disable_most_optimizations(new_val: bool = True) -> AbstractContextManager[None]:
    """Programs compile fast and run slowly."""
    ...


@setting(True, BOOLEAN, keyed=True)
def compiler_enable_remat_pass(new_val: bool = True) -> AbstractContextManager[None]:
    """XLA may compute values twice to save memory."""
    ...


@setting("", TEXT)
def platform_name(new_val: str | None) -> AbstractContextManager[None]:
    """The default platform, where jax_platforms names none."""
    ...


@setting("", TEXT)
def xla_backend(new_val: str | None) -> AbstractContextManager[None]:
    """An older name of jax_platform_name."""
    ...


@setting(True, BOOLEAN)
def cpu_enable_async_dispatch(new_val: bool = True) -> AbstractContextManager[None]:
    """Programs on CPU run while Python goes on; read with the client."""
    ...


@setting("all", TEXT)
def cuda_visible_devices(new_val: str | None) -> AbstractContextManager[None]:
    """Which CUDA devices there are, by commas; read when the client is made."""
    ...


@setting("all", TEXT)
def rocm_visible_devices(new_val: str | None) -> AbstractContextManager[None]:
    """Which AMD GPUs there are, by commas; read when the client is made."""
    ...


@setting(None, TEXT)
def pjrt_client_create_options(new_val: str | None) -> AbstractContextManager[None]:
    """Options of an accelerator's client, as in 'name:value;name:value'."""
    ...


@setting(True, BOOLEAN)
def include_debug_info_in_dumps(new_val: bool = True) -> AbstractContextManager[None]:
    """Files in jax_dump_ir_to name your source's lines."""
    ...


@setting(None, TEXT, name="jax_hlo_source_file_canonicalization_regex", keyed=True)
def source_file_regex(new_val: str | None) -> AbstractContextManager[None]:
    """A regular expression; its matches are left out of the names of source files in programs."""
    ...


@setting(False, BOOLEAN)
def log_checkpoint_residuals(new_val: bool = True) -> AbstractContextManager[None]:
    """Log the values that each checkpoint keeps."""
    ...


_TRANSFERS = one_of(None, "allow", "log", "disallow", "log_explicit", "disallow_explicit")


@setting(None, _TRANSFERS)
def transfer_guard_host_to_device(new_val: object) -> AbstractContextManager[None]:
    """What happens when data goes from the host to a device."""
    ...


@setting(None, _TRANSFERS)
def transfer_guard_device_to_device(new_val: object) -> AbstractContextManager[None]:
    """What happens when data goes to another device."""
    ...


@setting(None, _TRANSFERS)
def transfer_guard_device_to_host(new_val: object) -> AbstractContextManager[None]:
    """What happens when data goes from a device to the host."""
    ...


@setting(None, _TRANSFERS, name="jax_transfer_guard")
def every_transfer_guard(new_val: object) -> AbstractContextManager[None]:
    """What happens when data goes from one memory to another."""
    ...


# The mesh of `set_mesh`, the axes of `use_abstract_mesh`, and the mesh of ``with mesh:``.
mesh = declare_context("mesh")
abstract_mesh = declare_context("abstract_mesh")
naming_mesh = declare_context("naming_mesh")
# The annotations of programs that are lowered in this block, outermost first; None for none.
frontend_annotations = declare_context("frontend_annotations")


@setting(False, BOOLEAN)
def thread_guard(new_val: bool = True) -> AbstractContextManager[None]:
    """Programs over several processes are an error in all threads but this one."""
    ...


@setting(None, one_of(None, "allow", "log", "fatal"))
def array_garbage_collection_guard(new_val: str | None) -> AbstractContextManager[None]:
    """What happens when only Python's garbage collector frees an array."""
    ...


def transfer_guards() -> tuple[Setting, Setting, Setting]:
    """Return the guards of transfers from host to device, between devices, and from device to host."""
    return transfer_guard_host_to_device, transfer_guard_device_to_device, transfer_guard_device_to_host


@contextlib.contextmanager
def transfer_guard(new_val: str) -> Iterator[None]:
    """Set the response to transfers between host and devices, and between devices, for a block of code.

    Args:
        new_val: ``"allow"``; ``"log"`` or ``"disallow"`` for implicit transfers; ``"log_explicit"`` or
            ``"disallow_explicit"`` for those of `device_put` and `device_get`, too.

    Returns:
        A context manager.

    Raises:
        ValueError: `new_val` is another value.

    Example:
        >>> with xtrace.transfer_guard("disallow"): xtrace.config.jax_transfer_guard
        'disallow'
    """
    with contextlib.ExitStack() as stack:
        for guard in (every_transfer_guard, *transfer_guards()):
            stack.enter_context(guard(new_val))
        yield


def _set_every_transfer_guard(level: str | None, everywhere: bool) -> None:
    if everywhere:
        for guard in transfer_guards():
            guard.set(level)


every_transfer_guard.watch(_set_every_transfer_guard)


def keeps_wide_dtypes() -> bool:
    """Return whether a 64-bit dtype that is given by name is kept, also if the default dtypes have 32 bits."""
    return bool(enable_x64.value or explicit_x64_dtypes.value == "allow")


def promotion_settings() -> tuple[bool, str, bool]:
    """Return the arguments `x64`, `mode` and `wide` of `type_promotion.promote`."""
    return enable_x64.value, numpy_dtype_promotion.value, keeps_wide_dtypes()


def checks_numbers() -> bool:
    """Return whether this thread checks results for NaNs or infinities."""
    return bool(debug_nans.value or debug_infs.value)


class Config:
    """``xtrace.config``: ``config.update("jax_enable_x64", True)`` sets globally; ``config.jax_enable_x64`` reads."""

    __slots__ = ()

    def update(self, name: str, val: object) -> None:
        """Set the setting `name` to `val` for all threads; an unknown name is an AttributeError."""
        find_setting(name).set(val)

    def read(self, name: str) -> Any:
        """Return the value of the setting `name` in this thread."""
        return find_setting(name).value

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"settings are changed with config.update({name!r}, {value!r})")

    def __getattr__(self, name: str) -> Any:
        return find_setting(name).value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *declared_settings]

    x64_enabled = property(lambda self: enable_x64.value, doc="Whether 64-bit types are kept.")

    @property
    def values(self) -> dict[str, Any]:
        """All settings with their values in this thread."""
        return {name: one.value for name, one in declared_settings.items()}

    def config_with_absl(self) -> None:
        """Define an absl flag for each setting; ``absl.app.run`` sets the settings whose flags were given.

        Raises ModuleNotFoundError if absl is not installed.
        """
        flags_of_absl.define()

    def parse_flags_with_absl(self) -> None:
        """Take the settings from the arguments of the command line that begin with ``--jax``, once in a process.

        For programs that do not call ``absl.app.run``. Raises ModuleNotFoundError if absl is not installed.
        """
        flags_of_absl.parse()

    def complete_absl_config(self, absl_flags: object) -> None:
        """Set the settings whose flags were given, once ``absl_flags.FLAGS`` is parsed."""
        flags_of_absl.complete(absl_flags)


def find_setting(name: str) -> Setting:
    """Return the setting called `name`; an AttributeError names the nearest one."""
    setting = declared_settings.get(name)
    if setting is None:
        near = nearest_name(str(name), declared_settings)
        hint = f"did you mean {near!r}?" if near is not None else "xtrace.config.values has all of them"
        raise AttributeError(f"there is no setting {name!r}; {hint}")
    return setting


def all_settings() -> list[Setting]:
    """Return all settings."""
    return list(declared_settings.values())


config = Config()
