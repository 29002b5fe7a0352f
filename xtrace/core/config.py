"""Settings: one global value each, overridden in a thread by context managers, read from the environment once.

Names are JAX's (``jax_enable_x64`` …). The environment variable of a setting is ``XTRACE_X``, or else ``JAX_X``.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any


class Key:
    """The values of all settings that a compiled function depends on; interned, so it hashes by address."""

    __slots__ = ("values",)

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values


class _Overrides:
    """The settings one thread has changed inside ``with`` blocks, and the cache key they give."""

    __slots__ = ("values", "_key", "_generation")

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        self._key = Key(())
        self._generation = -1

    def key(self) -> Key:
        # Read first: a change of a global value in between must leave the key outdated, not wrong.
        generation = _store.generation
        if self._generation != generation:
            self._key = _store.intern(self.values)
            self._generation = generation
        return self._key


class _Store:
    """The global values, and the key they give.

    `key_everywhere` is that key while no thread overrides anything, else None: generated code compares just this.
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

    def intern(self, overrides: dict[str, Any]) -> Key:
        values = tuple(overrides.get(name, self.values.get(name)) for name in self.keyed)
        return self.keys.setdefault(values, Key(values))

    def set(self, name: str, value: Any) -> None:
        with self.lock:
            self.values[name] = value
            self.generation += 1
            self.global_key = self.intern({})
            self.key_everywhere = None if self.overriding else self.global_key

    def count_overriding(self, change: int) -> None:
        """Note that one more, or one less, ``with`` block is in force in some thread."""
        with self.lock:
            self.overriding += change
            self.key_everywhere = None if self.overriding else self.global_key


class _ThreadState(threading.local):
    overrides: _Overrides | None = None


_store = _Store()
_thread = _ThreadState()
_options: dict[str, Option] = {}


def cache_key() -> Key:
    """Return the one `Key` for the current values of every setting that changes what a function compiles to."""
    everywhere = _store.key_everywhere
    if everywhere is not None:
        return everywhere
    overrides = _thread.overrides
    return _store.global_key if overrides is None else overrides.key()


def changed(key: Key) -> dict[str, Any]:
    """Return the settings, with their values in `key`, that are not what they are by default."""
    values = zip(_store.keyed, key.values, strict=True)
    return {name: value for name, value in values if value != _options[name].default}


def keyed_differences(key: Key, before: Key) -> list[tuple[str, Any, Any]]:
    """Return the settings that two keys differ in, each with its value in either."""
    pairs = zip(_store.keyed, key.values, before.values, strict=True)
    return [(name, now, then) for name, now, then in pairs if now != then]


def store() -> _Store:
    """Return the object whose `key_everywhere` generated code compares with the key it was made for."""
    return _store


class Option:
    """One setting. ``option.value`` reads it; ``with option(new_value):`` overrides it in this thread."""

    __slots__ = ("name", "parse", "description", "default")

    def __init__(self, name: str, parse: Callable[[Any], Any], description: str, default: Any) -> None:
        self.name, self.parse, self.description, self.default = name, parse, description, default

    @property
    def value(self) -> Any:
        """The setting's value in this thread."""
        overrides = _thread.overrides
        if overrides is not None and self.name in overrides.values:
            return overrides.values[self.name]
        return _store.values[self.name]

    @contextlib.contextmanager
    def __call__(self, new_val: Any = True) -> Iterator[None]:
        outer = _thread.overrides
        values = dict(outer.values) if outer is not None else {}
        values[self.name] = self.parsed(new_val)
        _store.count_overriding(1)
        _thread.overrides = _Overrides(values)
        try:
            yield
        finally:
            _thread.overrides = outer
            _store.count_overriding(-1)

    def parsed(self, value: Any) -> Any:
        """Return the value that `value` stands for; a TypeError or ValueError names the setting."""
        try:
            found = self.parse(value)
            hash(found)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self.name}: {error}") from None
        return found

    def __repr__(self) -> str:
        return f"<setting {self.name} = {self.value!r}>"


def _boolean(value: Any) -> bool:
    if isinstance(value, str):
        if value.lower() in ("1", "true", "yes", "on", "y", "t"):
            return True
        if value.lower() in ("0", "false", "no", "off", "n", "f", ""):
            return False
        raise ValueError(f"a boolean setting was given {value!r}; write true or false")
    return bool(value)


def _one_of(*choices: str | None) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if value not in choices:
            raise ValueError(f"the setting accepts {', '.join(map(repr, choices))}; got {value!r}")
        return value

    return parse


def _some_of(*choices: str) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        chosen = [part.strip() for part in str(value).split(",") if part.strip()]
        if not set(chosen) <= set(choices):
            raise ValueError(f"the setting accepts {', '.join(map(repr, choices))}, joined by commas; got {value!r}")
        return ",".join(chosen)

    return parse


def _text_or_none(value: Any) -> str | None:
    return os.fspath(value) if value else None


def _anything(value: Any) -> Any:
    return value


def _integer_or_none(value: Any) -> int | None:
    return None if value is None else int(value)


def option(name: str, default: Any, parse: Callable[[Any], Any], doc: str, *, keyed: bool = False) -> Option:
    """Declare a setting; a `keyed` one is part of every cache key because it changes what is traced or compiled."""
    suffix = name.removeprefix("jax_").removeprefix("xtrace_").upper()
    text = os.environ.get(f"XTRACE_{suffix}", os.environ.get(f"JAX_{suffix}"))
    if text is not None:
        try:
            default = parse(text)
        except ValueError as error:
            raise ValueError(f"environment variable XTRACE_{suffix} (or JAX_{suffix}): {error}") from None
    if keyed:
        _store.keyed.append(name)
    _store.set(name, default)
    _options[name] = Option(name, parse, doc, default)
    return _options[name]


enable_x64 = option(
    "jax_enable_x64", False, _boolean, "64-bit types are kept; off, they become their 32-bit forms.", keyed=True
)
numpy_dtype_promotion = option(
    "jax_numpy_dtype_promotion",
    "standard",
    _one_of("standard", "strict"),
    "'strict' makes the implicit promotion of two different dtypes an error.",
    keyed=True,
)
numpy_rank_promotion = option(
    "jax_numpy_rank_promotion",
    "allow",
    _one_of("allow", "warn", "raise"),
    "What happens when operands of different rank broadcast.",
    keyed=True,
)
default_matmul_precision = option(
    "jax_default_matmul_precision", None, _anything, "Precision of contractions that name none.", keyed=True
)
default_device = option(
    "jax_default_device", None, _anything, "The device uncommitted data goes to; None is the first one.", keyed=True
)
threefry_partitionable = option(
    "jax_threefry_partitionable", True, _boolean, "Random bits that do not depend on how they are sharded.", keyed=True
)
default_prng_impl = option(
    "jax_default_prng_impl",
    "threefry2x32",
    _one_of("threefry2x32", "rbg", "unsafe_rbg"),
    "The generator behind new keys.",
    keyed=True,
)
disable_jit = option(
    "jax_disable_jit", False, _boolean, "jit calls the Python function, operation by operation.", keyed=True
)
check_tracer_leaks = option("jax_check_tracer_leaks", False, _boolean, "Look for escaped tracers when a trace ends.")
enable_checks = option("jax_enable_checks", False, _boolean, "Check every jaxpr that is made.")
log_compiles = option("jax_log_compiles", False, _boolean, "Log every trace and compilation with its time.")
explain_cache_misses = option("jax_explain_cache_misses", False, _boolean, "Say why a jitted function traced again.")
recompilation_limit = option(
    "xtrace_recompilation_limit",
    32,
    _integer_or_none,
    "How often a function may be compiled before a warning says why that happens; 0 or None for no warning.",
)
debug_nans = option("jax_debug_nans", False, _boolean, "Raise where a NaN first appears.", keyed=True)
debug_infs = option("jax_debug_infs", False, _boolean, "Raise where an infinity first appears.", keyed=True)
debug_key_reuse = option(
    "jax_debug_key_reuse", False, _boolean, "Raise where a random key is used a second time.", keyed=True
)
traceback_filtering = option(
    "jax_traceback_filtering",
    "auto",
    _one_of("auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames"),
    "Leave xtrace's frames out of tracebacks, with a note, or mark them for IPython and pytest to skip.",
)
dump_ir_to = option(
    "jax_dump_ir_to", None, _text_or_none, "The directory that the programs of each compilation are written to."
)
dump_ir_modes = option(
    "jax_dump_ir_modes",
    "jaxpr,stablehlo,hlo",
    _some_of("jaxpr", "stablehlo", "hlo"),
    "Which programs are written to jax_dump_ir_to, by commas: those that jit traced, lowered, and XLA optimised.",
)
platforms = option("jax_platforms", None, _anything, "Comma-separated platforms to use, the first one the default.")
num_cpu_devices = option(
    "jax_num_cpu_devices", None, _integer_or_none, "How many devices the CPU client shows; read when it is made."
)


def checks_numbers() -> bool:
    """Return whether results are looked at for NaNs or infinities in this thread."""
    return bool(debug_nans.value or debug_infs.value)


class Config:
    """``xtrace.config``: ``config.update("jax_enable_x64", True)`` sets globally; ``config.jax_enable_x64`` reads."""

    __slots__ = ()

    def update(self, name: str, val: Any) -> None:
        """Set the setting `name` to `val` for all threads; an unknown name is an AttributeError."""
        found = _options.get(name)
        if found is None:
            raise AttributeError(_unknown(name))
        _store.set(name, found.parsed(val))

    def read(self, name: str) -> Any:
        """Return the value of the setting `name` in this thread."""
        found = _options.get(name)
        if found is None:
            raise AttributeError(_unknown(name))
        return found.value

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"settings are changed with config.update({name!r}, {value!r})")

    def __getattr__(self, name: str) -> Any:
        found = _options.get(name)
        if found is None:
            raise AttributeError(_unknown(name))
        return found.value

    @property
    def values(self) -> dict[str, Any]:
        """All settings with their values in this thread."""
        return {name: one.value for name, one in _options.items()}


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, _options, 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; the settings are {', '.join(sorted(_options))}"
    return f"there is no setting {name!r}{hint}"


config = Config()
