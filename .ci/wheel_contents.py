"""``wheel_contents.py WHEEL SDIST``: both have every file of the package, and the wheel has nothing else."""

import pathlib
import sys
import tarfile
import zipfile

# What git ignores, and what only runs leave behind.
_LEFT_OUT = ("__pycache__", ".mypy_cache", ".ruff_cache")


def package_files(root: pathlib.Path) -> set[str]:
    """Return the package's files as they are in the repository: sources, stubs, and whatever it reads when it runs."""
    files = (path for path in (root / "xtrace").rglob("*") if path.is_file())
    return {str(path.relative_to(root)) for path in files if not set(_LEFT_OUT) & set(path.parts)}


def faults(wheel: set[str], sdist: set[str], expected: set[str]) -> list[str]:
    """Return in words what is missing and what is too much, given the names of files in each."""
    found = [f"the wheel lacks {name}" for name in sorted(expected - wheel)]
    found += [f"the sdist lacks {name}" for name in sorted((expected | {"pyproject.toml", "README.md"}) - sdist)]
    besides = {name for name in wheel - expected if ".dist-info/" not in name}
    return found + [f"the wheel has {name}, which is not in the repository" for name in sorted(besides)]


def main(wheel: str, sdist: str) -> int:
    """Print what is wrong; the exit code is 1 if something is."""
    with zipfile.ZipFile(wheel) as file:
        in_wheel = set(file.namelist())
    with tarfile.open(sdist) as file:
        in_sdist = {name.partition("/")[2] for name in file.getnames()}
    wrong = faults(in_wheel, in_sdist, package_files(pathlib.Path(__file__).parents[1]))
    print("\n".join(wrong) or f"{len(in_wheel)} files in the wheel")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
