"""The environments that libraries run in: one without jax, where xtrace takes its name, and one with it on top."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.compatibility.libraries import JAX, LIBRARIES, REQUIREMENTS, Library

ROOT = Path(__file__).resolve().parents[2]


class Environment(NamedTuple):
    """A Python with the libraries, and the arguments with which ``import jax`` means one frontend or the other."""

    frontend: str
    python: Path
    variables: Mapping[str, str]
    pytest: Sequence[str]
    script: Sequence[str]

    def run(
        self, arguments: Sequence[str], folder: Path, seconds: float, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run Python with `arguments` in a `folder`, for at most so many seconds, with `variables` besides its own."""
        return subprocess.run(
            [str(self.python), *arguments], cwd=folder, env={**os.environ, **self.variables, **(variables or {})},
            timeout=seconds, capture_output=True, text=True, check=False,
        )


class InstallationError(RuntimeError):
    """pip could not install the libraries; `offline` says whether the package index was not reached."""

    def __init__(self, output: str) -> None:
        super().__init__(f"pip could not install the libraries:\n{output[-2000:]}")
        faults = r"retrying|connection|timed? ?out|name resolution|max retries"
        self.offline = re.search(faults, output.lower()) is not None


def make_environments() -> tuple[Environment, Environment]:
    """Return the environments with jax and with xtrace, made if these are not there.

    They are kept in ``${XDG_CACHE_HOME:-~/.cache}/xtrace-compatibility``, by a hash of the names and versions in them.
    """
    packages = [*REQUIREMENTS, *[f"{library.name}=={library.version}" for library in LIBRARIES.values()]]
    key = hashlib.sha256("\n".join([sys.version, sys.base_prefix, *packages]).encode()).hexdigest()[:16]
    folder = cache_folder() / key
    libraries, jax = folder / "libraries", folder / "jax"
    if not (folder / "complete").exists():
        venv.create(libraries, with_pip=True, clear=True)
        # The libraries require jax, which must not be there; so that the packages they need besides are listed.
        _install(libraries, [r for r in REQUIREMENTS if r not in _OF_JAX])
        _install(libraries, ["--no-deps", *_OF_JAX, *packages[len(REQUIREMENTS) :]])
        venv.create(jax, with_pip=True, clear=True)
        _install(jax, ["--no-deps", JAX])
        (_site_packages(jax) / "libraries.pth").write_text(f"{_site_packages(libraries)}\n")
        (folder / "complete").touch()
    # Imports are timed: both frontends have their bytecode kept.
    common = {"JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": "", "XLA_FLAGS": ""}
    return (
        Environment("jax", jax / "bin" / "python", common, (), ()),
        Environment(
            "xtrace", libraries / "bin" / "python", {**common, "PYTHONPATH": str(ROOT)},
            ("-p", "xtrace.pytest_plugin"), ("-m", "xtrace", "run"),
        ),
    )


# Requirements that require jax themselves.
_OF_JAX = ("jaxopt", "orbax-checkpoint", "orbax-export")


def cache_folder() -> Path:
    """Return the folder of environments and source distributions."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "xtrace-compatibility"


def fetch_sources(library: Library, python: Path) -> Path:
    """Return the folder of a library's source distribution, downloaded by pip if it is not there."""
    folder = cache_folder() / "sources"
    unpacked = folder / f"{library.name.replace('-', '_')}-{library.version}"
    if not unpacked.exists():
        requirement = f"{library.name}=={library.version}"
        arguments = ["download", "-q", "--no-deps", "--no-binary", library.name, "-d", str(folder), requirement]
        _run_pip(python, arguments)
        with tarfile.open(f"{unpacked}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return unpacked


def _install(folder: Path, arguments: Sequence[str]) -> None:
    _run_pip(folder / "bin" / "python", ["install", "-q", *arguments])


def _run_pip(python: Path, arguments: Sequence[str]) -> None:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallationError(done.stderr)


def _site_packages(folder: Path) -> Path:
    return next((folder / "lib").glob("python3*")) / "site-packages"
