"""Settings as objects: one global value each, overridden in a thread by `with`, read from the environment once."""

from __future__ import annotations

import contextlib
import logging
import operator
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.docstrings import docstring
from xtrace._src.core.function_names import with_function_name
from xtrace._src.core.sentinels import UNSPECIFIED
from xtrace._src.xla.late_modules import late_modules

with late_modules(globals()):
    pass


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


_logger = logging.getLogger("xtrace")
# The names of settings whose notes were logged.
_noted: set[str] = set()
# Generated code compares its `key_everywhere` with the key of the code.
store = _Store()
_thread = _ThreadState()
declared_options: dict[str, Option] = {}
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
    return declared_options[name] if name in declared_options else _contexts[name]


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
    def __call__(self, new_val: object = UNSPECIFIED) -> AbstractContextManager[None]:
        if new_val is UNSPECIFIED:
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


def at_most(limit: int, reason: str) -> Kind:
    """Return the kind of an integer setting that is no larger than `limit`; errors give the `reason`."""

    def parse(value: object) -> int | None:
        number = _integer(value)
        if number is not None and number > limit:
            raise ValueError(f"the setting accepts at most {limit}, since {reason}; got {number}")
        return number

    return Kind("integer", parse, f"an integer of at most {limit}, or None.", 1)


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


BOOLEAN = Kind("bool", _boolean, "a bool, or one as text, such as ``'true'``; by default True.", True, given=False)
INTEGER = Kind("integer", _integer, "an integer or None.", 1)
FLOAT = Kind("float", _float, "a number or None.", 0.5)
TEXT = Kind("string", _text, "a text or None.", "")


def option(
    default: object, kind: Kind, *, name: str | None = None, keyed: bool = False, note: str = ""
) -> Callable[[Callable[..., Any]], Option]:
    """Return the decorator that declares a setting, as `declare_option` does, from a function without a body.

    The function gives the docstring, and the name after ``jax_`` if there is no `name`.
    """

    def declare(function: Callable[..., Any]) -> Option:
        description = " ".join((function.__doc__ or "").split())
        return declare_option(name or f"jax_{function.__name__}", default, kind, description, keyed, note)

    return declare


def declare_option(
    name: str, default: object, kind: Kind, description: str, keyed: bool = False, note: str = ""
) -> Option:
    """Declare a setting and read its environment variable.

    Traces or compiled programs depend on a `keyed` setting, so it is a part of every cache key. A setting with a `note`
    has no effect, for the reason in the note.
    """
    if keyed:
        store.keyed.append(name)
    declared_options[name] = made = Option(name, kind, description, default, note)
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
