"""PJRT plugins of other makers: those named by the environment, and those of packages that register with JAX.

No Python code of these packages runs, because it imports jax; their shared libraries are found on disk.
"""

from __future__ import annotations

import glob
import mmap
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

VARIABLE = "PJRT_NAMES_AND_LIBRARY_PATHS"
# The packages that `plugins.py` handles itself.
_KNOWN_PACKAGES = ("xla_cuda", "xla_rocm")


class Library(NamedTuple):
    """A plugin's shared library, None if its package has none, and the variable or the package that names it."""

    path: str | None
    source: str


def named_libraries() -> dict[str, Library]:
    """Return the plugins that PJRT_NAMES_AND_LIBRARY_PATHS names, as in ``one:/path/one.so,two:/path/two.so``."""
    plugins = {}
    for part in filter(None, os.environ.get(VARIABLE, "").split(",")):
        name, separator, path = part.partition(":")
        if not (separator and name.strip() and path.strip()):
            raise ValueError(f"{VARIABLE} has {part!r}; expected name:path of a shared library, several by commas")
        plugins[name.strip().lower()] = Library(path.strip(), f"the environment variable {VARIABLE}")
    return plugins


def libraries(folders: Iterable[str]) -> dict[str, Library]:
    """Return all plugins of other makers by the names of their platforms; the environment's take precedence.

    folders: the folders with installed packages.
    """
    plugins = named_libraries()
    for folder in folders:
        for name, package in (*_packages_for_jax(folder), *_entry_points(folder)):
            if name not in plugins and not os.path.basename(package).startswith(_KNOWN_PACKAGES):
                plugins[name] = Library(_library_in(package), f"the package {package}")
    return plugins


def _packages_for_jax(folder: str) -> Iterator[tuple[str, str]]:
    for package in sorted(glob.glob(os.path.join(folder, "jax_plugins", "*", ""))):
        name = os.path.basename(package.rstrip(os.sep))
        if not name.startswith("_"):
            yield name.lower(), package.rstrip(os.sep)


def _entry_points(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the folder of each package with an entry point in the group ``jax_plugins``."""
    try:
        entries = os.listdir(folder)
    except OSError:
        return
    for entry in sorted(entries):
        if not entry.endswith(".dist-info"):
            continue
        try:
            with open(os.path.join(folder, entry, "entry_points.txt"), "rb", buffering=0) as file:
                text = file.read()
        except OSError:
            continue
        # Loading configparser takes longer than reading all files.
        group = text.partition(b"[jax_plugins]")[2].partition(b"\n[")[0]
        for line in group.decode().splitlines():
            name, separator, target = line.partition("=")
            if separator and not name.startswith(("#", ";")):
                yield name.strip().lower(), os.path.join(folder, *target.partition(":")[0].strip().split("."))


def _library_in(package: str) -> str | None:
    """Return the first shared library below a folder that mentions the function of PJRT plugins; None without one."""
    paths = sorted(glob.glob(os.path.join(glob.escape(package), "**", "*.so*"), recursive=True))
    return next((path for path in paths if _mentions_pjrt(path)), None)


def _mentions_pjrt(path: str) -> bool:
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(b"GetPjrtApi") >= 0
    except (OSError, ValueError):  # An empty file cannot be mapped.
        return False
