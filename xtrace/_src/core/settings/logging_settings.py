"""The settings of logging to stderr, under JAX's names."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager

from xtrace._src.core.settings.options import TEXT, one_of, option


@option("NOTSET", one_of("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", None))
def logging_level(new_val: str | None) -> AbstractContextManager[None]:
    """The level of xtrace's logger, which then writes to stderr."""
    ...


@option("", TEXT)
def debug_log_modules(new_val: str | None) -> AbstractContextManager[None]:
    """The modules, by commas, whose loggers write every message to stderr."""
    ...


def _show_logs(names: list[str], level: str) -> None:
    """Set the level of loggers, which write to stderr unless the program has handlers of its own."""
    for name in names:
        logger = logging.getLogger(name)
        logger.setLevel(level)
        if not logger.hasHandlers():
            logger.addHandler(logging.StreamHandler())


def _log_modules(names: str | None, everywhere: bool) -> None:
    # Programs written for JAX name its modules.
    modules = [part.strip() for part in (names or "").split(",") if part.strip()]
    _show_logs([n.replace("jax", "xtrace", 1) if n.partition(".")[0] == "jax" else n for n in modules], "DEBUG")


logging_level.watch(lambda level, everywhere: _show_logs(["xtrace"], level or "NOTSET"))
debug_log_modules.watch(_log_modules)
