"""Settings as flags of absl, for programs that take them from the command line."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from xtrace._src.core.settings import config

_state: dict[str, bool] = {}


def _absl(module: str) -> Any:
    try:
        return importlib.import_module(f"absl.{module}")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "settings become flags of absl, which is not installed; pip install absl-py, or set the environment "
            "variables XTRACE_X instead",
            name=error.name,
        ) from None


def define() -> None:
    """Define an absl flag for each setting, once in a process; absl sets the settings after it has parsed its flags."""
    if _state.get("defined"):
        return
    app, flags = _absl("app"), _absl("flags")
    for option in config.options():
        # A text flag accepts any string; the setting's own parser checks it.
        make = getattr(flags, f"DEFINE_{option.kind.flag}")
        choices = {"enum_values": [c for c in option.kind.choices if c is not None]} if option.kind.choices else {}
        make(option.name, option.value, help=option.description, **choices)
    app.call_after_init(lambda: complete(flags))
    _state["defined"] = True


def parse() -> None:
    """Set the settings from the arguments of the command line that begin with ``--jax``, once in a process."""
    if _state.get("parsed"):
        return
    define()
    flags = _absl("flags")
    flags.FLAGS([sys.argv[0], *[word for word in sys.argv[1:] if word.startswith("--jax")]], known_only=True)
    complete(flags)
    _state["parsed"] = True


def complete(flags: Any) -> None:
    """Set the settings whose flags were given."""
    for option in config.options():
        flag = flags.FLAGS[option.name]
        if flag.present:
            option.set(flag.value)
