"""Settings: one global value each, overridden in a thread by context managers, read from the environment once.

Names are JAX's (``jax_enable_x64`` …). The environment variable of a setting is ``XTRACE_X``, or else ``JAX_X``. The
settings of JAX that change nothing here are in `inert_settings.py`.
"""

from __future__ import annotations

import contextlib
import logging
import operator
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from xtrace._src.core.abbreviation import abbreviate
from xtrace._src.core.axis_names import nearest_name
from xtrace._src.core.docstrings import docstring
from xtrace._src.core.function_names import with_function_name
from xtrace._src.xla.late_modules import late_modules

with late_modules(globals()):
    from xtrace._src.core import absl_flags as flags_of_absl


class Key:
    """The values of all settings that a compiled function depends on; interned, so it hashes by address."""

    __slots__ = ("values",)

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values

    def __reduce__(self) -> Any:
        # Generated code compares a key by its address, which no key of another process has.
        return object, ()


class _Overrides:
    """The settings that one thread overrides in ``with`` blocks, and the cache key with these values."""

    __slots__ = ("values", "_key", "_generation")

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self._key = Key(())
        self._generation = -1

    def key(self) -> Key:
        # Read before the values: a global change in between then leaves the key outdated, and it is made again.
        generation = store.generation
        if self._generation != generation:
            self._key = store.intern(self.values)
            self._generation = generation
        return self._key


class _Store:
    """The global values, and the cache key with these values.

    `key_everywhere` is this key while no thread overrides a setting, else None. Generated code compares it only.
    """

    __slots__ = ("lock", "values", "keyed", "keys", "generation", "global_key", "key_everywhere", "overriding")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.values: dict[str, Any] = {}
        self.keyed: list[str] = []
        self.keys: dict[tuple[Any, ...], Key] = {}
        self.generation = 0
        self.global_key = Key(())
        self.key_everywhere: Key | None = self.global_key
        self.overriding = 0

    def __reduce__(self) -> str:
        return "store"

    def intern(self, overrides: dict[str, Any]) -> Key:
        values = tuple(overrides.get(name, self.values.get(name)) for name in self.keyed)
        return self.keys.setdefault(values, Key(values))

    def set(self, name: str, value: object) -> None:
        with self.lock:
            self.values[name] = value
            if name not in self.keyed:
                return
            self.generation += 1
            self.global_key = self.intern({})
            self.key_everywhere = None if self.overriding else self.global_key

    def count_overriding(self, change: int) -> None:
        """Add `change`, 1 or -1, to the number of ``with`` blocks that override settings in any thread."""
        with self.lock:
            self.overriding += change
            self.key_everywhere = None if self.overriding else self.global_key


class _ThreadState(threading.local):
    overrides: _Overrides | None = None


_MISSING = object()
_logger = logging.getLogger("xtrace")
# The names of settings whose notes were logged.
_noted: set[str] = set()
# Generated code compares its `key_everywhere` with the key of the code.
store = _Store()
_thread = _ThreadState()
_options: dict[str, Option] = {}
_contexts: dict[str, Option] = {}
# A copy, because each look-up in os.environ encodes the name.
_environment = dict(os.environ)


def cache_key() -> Key:
    """Return the one `Key` for the current values of the settings that compiled programs depend on."""
    everywhere = store.key_everywhere
    if everywhere is not None:
        return everywhere
    overrides = _thread.overrides
    return store.global_key if overrides is None else overrides.key()


def changed_settings(key: Key) -> dict[str, Any]:
    """Return the settings that differ from their defaults, with their values in `key`."""
    values = zip(store.keyed, key.values)
    return {name: value for name, value in values if value != _find_keyed(name).default}


def _find_keyed(name: str) -> Option:
    return _options[name] if name in _options else _contexts[name]


def keyed_differences(key: Key, before: Key) -> list[tuple[str, Any, Any]]:
    """Return the settings in which two keys differ: tuples of the name, the value in `key` and that in `before`."""
    # A context may have been declared after the older key was made.
    older = (*before.values, *[_find_keyed(name).default for name in store.keyed[len(before.values):]])
    pairs = zip(store.keyed, key.values, older, strict=True)
    return [(name, now, then) for name, now, then in pairs if now != then]


def carry_settings(function: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that calls `function` in another thread under the present settings of this thread."""
    overrides = _thread.overrides

    def run() -> Any:
        outer, _thread.overrides = _thread.overrides, overrides
        store.count_overriding(1)
        try:
            return function()
        finally:
            _thread.overrides = outer
            store.count_overriding(-1)

    return function if overrides is None else run


class Kind(NamedTuple):
    """The values of a setting: `parse` converts a user's value or text, `flag` names the kind of absl flag.

    accepts: a description of the values. example: one value. choices: all values, if they are few. given: whether the
    setting's context manager needs a value.
    """

    flag: str
    parse: Callable[[Any], Any]
    accepts: str
    example: Any
    choices: tuple[str | None, ...] = ()
    given: bool = True


class Option:
    """One setting. ``option.value`` reads it; ``with option(new_value):`` overrides it in this thread.

    note: the reason why the setting has no effect, empty if it has one. watchers: functions of a value, and of whether
    it is for all threads. They are called before a value takes effect, and at the end of a block, then with the value
    of the outer block or None.
    """

    __slots__ = ("name", "kind", "description", "default", "note", "watchers")

    def __init__(self, name: str, kind: Kind, description: str, default: Any, note: str) -> None:
        self.name, self.kind, self.description, self.default, self.note = name, kind, description, default, note
        self.watchers: list[Callable[[Any, bool], None]] = []

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The docstring of a call of the setting, which overrides it in a block."""
        note = f"\n    It changes nothing here: {self.note}" if self.note else ""
        errors = {"ValueError": "`new_val` is another value."}
        if self.kind.given:
            errors = {"TypeError": "`new_val` is not given.", **errors}
        return docstring(
            f"Override the setting `{self.name}` for a block of code, in this thread.\n\n    {self.description}{note}",
            {"new_val": self.kind.accepts}, "A context manager.", errors,
            (f"with xtrace.{self._short}({self.kind.example!r}): xtrace.config.{self.name}", repr(self.kind.example)),
        )

    @property
    def value(self) -> Any:
        """The setting's value in this thread."""
        overrides = _thread.overrides
        if overrides is not None and self.name in overrides.values:
            return overrides.values[self.name]
        return store.values[self.name]

    @with_function_name("setting")
    def __call__(self, new_val: object = _MISSING) -> AbstractContextManager[None]:
        if new_val is _MISSING:
            if self.kind.given:
                raise TypeError(f"{self.name} has no value to turn on; write with {self._short}(value)")
            new_val = True
        return self._overridden(self.parse_value(new_val))

    @contextlib.contextmanager
    def _overridden(self, value: object) -> Iterator[None]:
        outer = self.enter(value)
        try:
            yield
        finally:
            self.leave(outer)

    def enter(self, value: object) -> Any:
        """Override the value in this thread, until `leave` is called with the result."""
        outer = _thread.overrides
        values = dict(outer.values) if outer is not None else {}
        values[self.name] = value
        self._tell(value, False)
        store.count_overriding(1)
        _thread.overrides = _Overrides(values)
        return outer

    def leave(self, outer: Any) -> None:
        """End the innermost override of this thread; `outer` is the result of `enter`."""
        _thread.overrides = outer
        store.count_overriding(-1)
        self._tell(outer.values.get(self.name) if outer is not None else None, False)

    def set(self, value: object) -> None:
        """Set the value for all threads."""
        parsed = self.parse_value(value)
        self._tell(parsed, True)
        store.set(self.name, parsed)

    def watch(self, watcher: Callable[[Any, bool], None]) -> None:
        """Call `watcher` when the value changes, and now if it is not the default."""
        self.watchers.append(watcher)
        if self.value != self.default:
            watcher(self.value, True)

    def _tell(self, value: object, everywhere: bool) -> None:
        for watch in self.watchers:
            watch(value, everywhere)

    def parse_value(self, value: object) -> Any:
        """Return the value that `value` stands for; a TypeError or ValueError names the setting."""
        try:
            parsed = self.kind.parse(value)
            hash(parsed)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self.name}: {error}") from None
        if self.note and parsed != self.default:
            self.log_note()
        return parsed

    def log_note(self) -> None:
        """Log once that the setting has no effect."""
        if self.name not in _noted:
            _noted.add(self.name)
            _logger.warning("the setting %s changes nothing: %s", self.name, self.note)

    @property
    def _short(self) -> str:
        return self.name.removeprefix("jax_").removeprefix("xtrace_")

    def __bool__(self) -> bool:
        raise TypeError(f"the setting {self.name} has no truth value; its value is in {self._short}.value")

    def __repr__(self) -> str:
        return f"<setting {self.name} = {self.value!r}>"


def _boolean(value: object) -> bool:
    if isinstance(value, str):
        if value.lower() in ("1", "true", "yes", "on", "y", "t"):
            return True
        if value.lower() in ("0", "false", "no", "off", "n", "f", ""):
            return False
    elif value is None or value in (0, 1):
        return bool(value)
    raise ValueError(f"a boolean setting was given {abbreviate(value)}; write true or false")


def _integer(value: Any) -> int | None:
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return int(value)
    elif value is None or hasattr(value, "__index__"):
        return None if value is None else operator.index(value)
    raise ValueError(f"an integer setting was given {abbreviate(value)}; write an integer or None")


def _float(value: object) -> float | None:
    if value is None or isinstance(value, (int, float, str)):
        with contextlib.suppress(ValueError):
            return None if value is None else float(value)
    raise ValueError(f"a number setting was given {abbreviate(value)}; write a number or None")


def _text(value: object) -> str | None:
    if value is None or isinstance(value, (str, os.PathLike)):
        return None if value is None else os.fspath(value)
    raise ValueError(f"a text setting was given {abbreviate(value)}; write a string or None")


def one_of(*choices: str | None) -> Kind:
    """Return the kind of a setting whose value is one of `choices`."""

    def parse(value: object) -> Any:
        # JAX has enumerations for some of its settings.
        text = getattr(value, "value", value)
        text = getattr(value, "name", value) if isinstance(text, int) else text
        if not isinstance(text, (str, type(None))) or text not in choices:
            raise ValueError(f"the setting accepts {', '.join(map(repr, choices))}; got {abbreviate(value)}")
        return text

    rows = [", ".join(map(repr, choices[i : i + 4])) for i in range(0, len(choices), 4)]
    return Kind("enum", parse, "one of " + ",\n            ".join(rows) + ".", choices[1], choices)


def some_of(*choices: str) -> Kind:
    """Return the kind of a setting whose value is some of `choices`, joined by commas."""

    def parse(value: object) -> Any:
        chosen = [part.strip() for part in str(value).split(",") if part.strip()]
        if not set(chosen) <= set(choices):
            raise ValueError(
                f"the setting accepts {', '.join(map(repr, choices))}, joined by commas; got {abbreviate(value)}"
            )
        return ",".join(chosen)

    return Kind("string", parse, f"some of {', '.join(choices)}, joined by commas.", choices[0])


def _device(value: Any) -> Any:
    if value is None or hasattr(value, "device_kind") or (isinstance(value, str) and value.lower() in _PLATFORMS):
        return value
    raise ValueError(
        "the setting accepts a device, one of xtrace.devices(), or the name of a platform, "
        f"{', '.join(map(repr, _PLATFORMS))}; got {abbreviate(value)}"
    )


_PLATFORMS = ("cpu", "cuda", "gpu", "rocm", "tpu")
BOOLEAN = Kind("bool", _boolean, "a bool, or one as text, such as ``'true'``; by default True.", True, given=False)
INTEGER = Kind("integer", _integer, "an integer or None.", 1)
FLOAT = Kind("float", _float, "a number or None.", 0.5)
TEXT = Kind("string", _text, "a text or None.", "")


def option(name: str, default: object, kind: Kind, doc: str, *, keyed: bool = False, note: str = "") -> Option:
    """Declare a setting and read its environment variable.

    Traces or compiled programs depend on a `keyed` setting, so it is a part of every cache key. A setting with a `note`
    has no effect, for the reason in the note.
    """
    if keyed:
        store.keyed.append(name)
    _options[name] = made = Option(name, kind, doc, default, note)
    variables = f"XTRACE_{made._short.upper()}", name.upper()
    text = _environment.get(variables[0], _environment.get(variables[1]))
    value = default
    if text is not None:
        try:
            value = made.parse_value(text)
        except ValueError as error:
            words = str(error).removeprefix(f"{name}: ")
            raise ValueError(f"environment variable {' (or '.join(variables)}): {words}") from None
    store.set(name, value)
    return made


def context(name: str, default: object = None) -> Option:
    """Declare a part of a thread's context on which traces depend; unlike a setting, users do not see it."""
    store.keyed.append(name)
    made = _contexts[name] = Option(name, Kind("", lambda value: value, "", None), "", default, "")
    store.set(name, default)
    return made


_PRECISIONS = (
    "default high highest bfloat16 tensorfloat32 float32 ANY_F8_ANY_F8_F32 ANY_F8_ANY_F8_F32_FAST_ACCUM "
    "ANY_F8_ANY_F8_ANY ANY_F8_ANY_F8_ANY_FAST_ACCUM F16_F16_F16 F16_F16_F32 BF16_BF16_BF16 BF16_BF16_F32 "
    "BF16_BF16_F32_X3 BF16_BF16_F32_X6 BF16_BF16_F32_X9 TF32_TF32_F32 TF32_TF32_F32_X3 F32_F32_F32 "
    "F64_F64_F64"
)
enable_x64 = option(
    "jax_enable_x64", False, BOOLEAN, "64-bit types are kept; off, they become their 32-bit forms.", keyed=True
)
numpy_dtype_promotion = option(
    "jax_numpy_dtype_promotion", "standard", one_of("standard", "strict"),
    "'strict' makes the implicit promotion of two different dtypes an error.", keyed=True,
)
numpy_rank_promotion = option(
    "jax_numpy_rank_promotion", "allow", one_of("allow", "warn", "raise"),
    "What happens when operands of different rank broadcast.", keyed=True,
)
default_matmul_precision = option(
    "jax_default_matmul_precision", None, one_of(None, *_PRECISIONS.split()),
    "Precision of contractions that name none.", keyed=True,
)
default_device = option(
    "jax_default_device", None,
    Kind("string", _device, "a device of ``xtrace.devices()``, the name of a platform, or None.", "cpu"),
    "The device uncommitted data goes to; None is the first one.", keyed=True,
)
threefry_partitionable = option(
    "jax_threefry_partitionable", True, BOOLEAN, "Random bits that do not depend on how they are sharded.", keyed=True
)
default_prng_impl = option(
    "jax_default_prng_impl", "threefry2x32", one_of("threefry2x32", "rbg", "unsafe_rbg"),
    "The generator behind new keys.", keyed=True,
)
disable_jit = option(
    "jax_disable_jit", False, BOOLEAN, "jit calls the Python function, operation by operation.", keyed=True
)
check_tracer_leaks = option("jax_check_tracer_leaks", False, BOOLEAN, "Look for escaped tracers when a trace ends.")
enable_checks = option("jax_enable_checks", False, BOOLEAN, "Check every jaxpr that is made.")
log_compiles = option("jax_log_compiles", False, BOOLEAN, "Log every trace and compilation with its time.")
host_evaluation = option(
    "xtrace_host_evaluation", True, BOOLEAN,
    "Evaluate small programs of the library with NumPy when they are first called, and compile those called again.",
)
explain_cache_misses = option("jax_explain_cache_misses", False, BOOLEAN, "Say why a jitted function traced again.")
recompilation_limit = option(
    "xtrace_recompilation_limit", 32, INTEGER,
    "How often a function may be compiled before a warning says why that happens; 0 or None for no warning.",
)
debug_nans = option("jax_debug_nans", False, BOOLEAN, "Raise where a NaN first appears.", keyed=True)
debug_infs = option("jax_debug_infs", False, BOOLEAN, "Raise where an infinity first appears.", keyed=True)
debug_key_reuse = option(
    "jax_debug_key_reuse", False, BOOLEAN, "Raise where a random key is used a second time.", keyed=True
)
traceback_filtering = option(
    "jax_traceback_filtering", "auto", one_of("auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames"),
    "Leave xtrace's frames out of tracebacks, with a note, or mark them for IPython and pytest to skip.",
)
dump_ir_to = option("jax_dump_ir_to", "", TEXT, "The directory that the programs of each compilation are written to.")
dump_ir_modes = option(
    "jax_dump_ir_modes",
    "jaxpr,stablehlo,hlo",
    some_of("jaxpr", "stablehlo", "hlo", "jaxpr_html", "eqn_count_pprof"),
    "Which programs are written to jax_dump_ir_to, by commas: those that jit traced, lowered, and XLA optimised; the "
    "first also as a page of HTML, and as a profile for pprof of how many equations each line of your code makes.",
)
source_url_schema = option(
    "jax_source_url_schema", None, TEXT,
    "Links of the pages in jax_dump_ir_to, with {file} and {line} where the file's name and the line's number go.",
)
platforms = option("jax_platforms", None, TEXT, "Comma-separated platforms to use, the first one the default.")
num_cpu_devices = option(
    "jax_num_cpu_devices", -1, INTEGER, "How many devices the CPU client shows; read when it is made."
)
cpu_collectives = option(
    "jax_cpu_collectives_implementation", "gloo", one_of("gloo", "mpi", "megascale", None),
    "How CPUs of several processes exchange data; jaxlib's own wheels have gloo. None leaves it out.",
)
cpu_local_topology_timeout = option(
    "jax_cpu_get_local_topology_timeout_minutes", 2, INTEGER,
    "How long the CPU client of a process waits for those on its machine.",
)
cpu_global_topology_timeout = option(
    "jax_cpu_get_global_topology_timeout_minutes", 5, INTEGER,
    "How long the CPU client of a process waits for all others.",
)
enable_recoverability = option(
    "jax_enable_recoverability", False, BOOLEAN,
    "Processes live on when others of the program have ended; read by distributed.initialize.",
)

no_tracing = option("jax_no_tracing", False, BOOLEAN, "Tracing a function is an error.")
no_execution = option("jax_no_execution", False, BOOLEAN, "Running a program is an error.", keyed=True)
legacy_prng_key = option(
    "jax_legacy_prng_key", "allow", one_of("allow", "warn", "error"),
    "What happens when a random function is given a key that is an array of uint32.", keyed=True,
)
enable_custom_prng = option(
    "jax_enable_custom_prng", False, BOOLEAN, "random.PRNGKey makes typed keys, as random.key does.", keyed=True
)
random_seed_offset = option("jax_random_seed_offset", 0, INTEGER, "Is added to the seeds of new keys.", keyed=True)
high_dynamic_range_gumbel = option(
    "jax_high_dynamic_range_gumbel", False, BOOLEAN, "random.gumbel's mode is 'high' by default.", keyed=True
)
check_static_indices = option(
    "jax_check_static_indices", False, BOOLEAN, "x[i] with a Python number i out of bounds is an error.", keyed=True
)
allow_f16_reductions = option(
    "jax_allow_f16_reductions", True, BOOLEAN, "Off, lax.reduce_sum in 16-bit floats is an error.", keyed=True
)
captured_constants_warn_bytes = option(
    "jax_captured_constants_warn_bytes", 2_000_000_000, INTEGER,
    "How many bytes a program may close over before a warning; -1 for none.",
)
explicit_x64_dtypes = option(
    "jax_explicit_x64_dtypes", "warn", one_of("warn", "error", "allow"),
    "What happens when a 64-bit dtype is asked for by name without jax_enable_x64.", keyed=True,
)
_LEVELS = one_of("UNKNOWN", "O0", "O1", "O2", "O3")
optimization_level = option(
    "jax_optimization_level", "UNKNOWN", _LEVELS, "How much XLA does to make programs fast.", keyed=True
)
memory_fitting_level = option(
    "jax_memory_fitting_level", "O2", _LEVELS, "How much XLA does to make programs fit in memory.", keyed=True
)
exec_time_optimization_effort = option(
    "jax_exec_time_optimization_effort", 0.0, FLOAT, "XLA's effort for fast programs, from -1 to 1.", keyed=True
)
memory_fitting_effort = option(
    "jax_memory_fitting_effort", 0.0, FLOAT, "XLA's effort for programs with little memory, from -1 to 1.", keyed=True
)
disable_most_optimizations = option(
    "jax_disable_most_optimizations", False, BOOLEAN, "Programs compile fast and run slowly.", keyed=True
)
compiler_enable_remat_pass = option(
    "jax_compiler_enable_remat_pass", True, BOOLEAN, "XLA may compute values twice to save memory.", keyed=True
)
platform_name = option("jax_platform_name", "", TEXT, "The default platform, where jax_platforms names none.")
xla_backend = option("jax_xla_backend", "", TEXT, "An older name of jax_platform_name.")
cpu_enable_async_dispatch = option(
    "jax_cpu_enable_async_dispatch", True, BOOLEAN, "Programs on CPU run while Python goes on; read with the client."
)
cuda_visible_devices = option(
    "jax_cuda_visible_devices", "all", TEXT, "Which CUDA devices there are, by commas; read when the client is made."
)
rocm_visible_devices = option(
    "jax_rocm_visible_devices", "all", TEXT, "Which AMD GPUs there are, by commas; read when the client is made."
)
pjrt_client_create_options = option(
    "jax_pjrt_client_create_options", None, TEXT, "Options of an accelerator's client, as in 'name:value;name:value'."
)
include_debug_info_in_dumps = option(
    "jax_include_debug_info_in_dumps", True, BOOLEAN, "Files in jax_dump_ir_to name your source's lines."
)
source_file_regex = option(
    "jax_hlo_source_file_canonicalization_regex", None, TEXT,
    "What is left out of the names of source files in programs.", keyed=True,
)
log_checkpoint_residuals = option(
    "jax_log_checkpoint_residuals", False, BOOLEAN, "Log the values that each checkpoint keeps."
)
_TRANSFERS = one_of(None, "allow", "log", "disallow", "log_explicit", "disallow_explicit")
transfer_guard_host_to_device = option(
    "jax_transfer_guard_host_to_device", None, _TRANSFERS, "What happens when data goes from the host to a device."
)
transfer_guard_device_to_device = option(
    "jax_transfer_guard_device_to_device", None, _TRANSFERS, "What happens when data goes to another device."
)
transfer_guard_device_to_host = option(
    "jax_transfer_guard_device_to_host", None, _TRANSFERS, "What happens when data goes from a device to the host."
)
every_transfer_guard = option(
    "jax_transfer_guard", None, _TRANSFERS, "What happens when data goes from one memory to another."
)
# The mesh of `set_mesh`, the axes of `use_abstract_mesh`, and the mesh of ``with mesh:``.
mesh = context("mesh")
abstract_mesh = context("abstract_mesh")
naming_mesh = context("naming_mesh")
# The annotations of programs that are lowered in this block, outermost first; None for none.
frontend_annotations = context("frontend_annotations")
thread_guard = option(
    "jax_thread_guard", False, BOOLEAN, "Programs over several processes are an error in all threads but this one."
)
array_garbage_collection_guard = option(
    "jax_array_garbage_collection_guard", None, one_of(None, "allow", "log", "fatal"),
    "What happens when only Python's garbage collector frees an array.",
)


def transfer_guards() -> tuple[Option, Option, Option]:
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
    """Return the arguments `x64`, `mode` and `wide` of `dtypes.promote`."""
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
        return [*super().__dir__(), *_options]

    x64_enabled = property(lambda self: enable_x64.value, doc="Whether 64-bit types are kept.")

    @property
    def values(self) -> dict[str, Any]:
        """All settings with their values in this thread."""
        return {name: one.value for name, one in _options.items()}

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


def find_setting(name: str) -> Option:
    """Return the setting called `name`; an AttributeError names the nearest one."""
    setting = _options.get(name)
    if setting is None:
        near = nearest_name(str(name), _options)
        hint = f"did you mean {near!r}?" if near is not None else "xtrace.config.values has all of them"
        raise AttributeError(f"there is no setting {name!r}; {hint}")
    return setting


def options() -> list[Option]:
    """Return all settings."""
    return list(_options.values())


config = Config()
