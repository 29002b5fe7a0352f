"""Import of a user's function from ``FILE.py:FUNCTION``, and tracebacks without xtrace's frames."""

from __future__ import annotations

import contextlib
import difflib
import importlib.machinery
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from xtrace._src.core.settings import config
from xtrace.cli.errors import WRONG_COMMAND, CommandError
from xtrace.cli.programs import STARTING, find_fault_of_source


def user_traceback(error: BaseException) -> str:
    """Return the traceback of `error` without xtrace's frames; only the error if no frame remains.

    The setting ``jax_traceback_filtering`` at "off" brings the frames back.
    """
    report = traceback.TracebackException.from_exception(error)
    if config.traceback_filtering.value != "off":
        _remove_our_frames(report)
    return "".join(report.format()).rstrip()


def _remove_our_frames(report: traceback.TracebackException) -> None:
    frames = [frame for frame in report.stack if not frame.filename.startswith(STARTING)]
    # With None for the frames, the headline "Traceback" disappears as well.
    report.stack = traceback.StackSummary.from_list(frames) if frames else None  # type: ignore[assignment]
    for inner in (report.__cause__, report.__context__, *(report.exceptions or ())):
        if inner is not None:
            _remove_our_frames(inner)


def load_function(target: str) -> Callable[..., Any]:
    """Import the file of ``FILE.py:FUNCTION``, and return the function; FUNCTION may have dots, as in ``model.apply``.

    Raises `CommandError` for a missing file or function, and if the file raises.
    """
    file, colon, name = target.rpartition(":")
    if not colon or not file or not name:
        raise CommandError(f"{target}: expected FILE.py:FUNCTION, such as model.py:forward", WRONG_COMMAND)
    path = Path(file)
    if not path.is_file():
        raise CommandError(_describe_missing_file(path), WRONG_COMMAND)
    fault = find_fault_of_source(file)
    if fault is not None:
        raise CommandError(f"{path} is no Python source: {fault}", WRONG_COMMAND)
    return _find(_import(path), name, path)


def _describe_missing_file(path: Path) -> str:
    if path.is_dir():
        return f"{path} is a folder; expected a Python file"
    names = [entry.name for entry in path.parent.glob("*.py")] if path.parent.is_dir() else []
    return f"there is no file {path}" + _suggest(difflib.get_close_matches(path.name, names))


def _import(path: Path) -> ModuleType:
    """Return the file as a module, imported with its folder first on the path, and with its prints on stderr."""
    name = path.stem if path.stem not in sys.modules else f"_inspected_{path.stem}"
    loader = importlib.machinery.SourceFileLoader(name, str(path.resolve()))
    spec = importlib.util.spec_from_file_location(name, path.resolve(), loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            loader.exec_module(module)
    except SystemExit as error:
        del sys.modules[name]
        raise CommandError(
            f"{path} called sys.exit({error.code!r}) while it was imported; "
            'put what it runs under `if __name__ == "__main__":`'
        ) from error
    except Exception as error:
        del sys.modules[name]
        raise CommandError(f"{path} raised while it was imported:\n\n{user_traceback(error)}") from error
    return module


def _find(module: ModuleType, name: str, path: Path) -> Callable[..., Any]:
    value: object = module
    for part in name.split("."):
        owner = value
        try:
            value = getattr(owner, part)
        except AttributeError:
            raise CommandError(_describe_missing_function(owner, part, path), WRONG_COMMAND) from None
    if not callable(value):
        raise CommandError(f"{name} in {path} is {type(value).__name__}, not a function", WRONG_COMMAND)
    return value


def _describe_missing_function(owner: Any, part: str, path: Path) -> str:
    if not isinstance(owner, ModuleType):
        near = difflib.get_close_matches(part, dir(owner))
        return f"{type(owner).__name__} in {path} has no attribute {part}" + _suggest(near)
    functions = {name: value for name, value in vars(owner).items() if callable(value)}
    own = [name for name, value in functions.items() if getattr(value, "__module__", None) == owner.__name__]
    return f"there is no {part} in {path}" + _suggest(difflib.get_close_matches(part, functions) or sorted(own)[:10])


def _suggest(names: list[str]) -> str:
    return f"; near it: {', '.join(names)}" if names else ""
