"""Hooks of mkdocs: pages that are made while the site is built, and read nowhere else."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

_REPOSITORY = pathlib.Path(__file__).parents[2]
_SHIM = "https://unpkg.com/iframe-worker/shim"
sys.path.insert(0, str(_REPOSITORY))

from tools.documentation import layers, notebooks, reference, surface  # noqa: E402


def on_config(config: Any) -> Any:
    """Put the notebooks and the modules of the reference into the navigation."""
    modules = [{name: f"reference/{name}.md"} for name in reference.public_modules()]
    books = [f"notebooks/{path.stem}.md" for path in _notebooks()]
    config.nav = _replace(config.nav, {"NOTEBOOKS": books, "MODULES": modules})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made: the reference, the notebooks, wrong programs, benchmarks, changes, the picture."""
    made: dict[str, str | bytes] = {
        "wrong_programs.md": (_REPOSITORY / "notebooks" / "wrong_programs.md").read_text(encoding="utf-8"),
        "benchmarks.md": (_REPOSITORY / "benchmarks" / "README.md").read_text(encoding="utf-8"),
        "changes.md": (_REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"),
        "layers.svg": layers.draw(),
    }
    made |= {f"reference/{name}.md": reference.page(module) for name, module in reference.public_modules().items()}
    for path in _notebooks():
        page, pictures = notebooks.convert(path)
        made[f"notebooks/{path.stem}.md"] = page
        made |= {f"notebooks/{name}": picture for name, picture in pictures.items()}
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def _notebooks() -> list[pathlib.Path]:
    return sorted((_REPOSITORY / "notebooks").glob("*.ipynb"))


def _replace(nav: Any, lists: dict[str, Any]) -> Any:
    if isinstance(nav, dict):
        return {title: _replace(part, lists) for title, part in nav.items()}
    if isinstance(nav, list):
        return [_replace(part, lists) for part in nav]
    return lists.get(nav, nav)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the comparison with JAX's names into its page."""
    if page.file.src_uri != "differences.md":
        return markdown
    return markdown.replace("\nSURFACE\n", f"\n{surface.table()}\n")


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Take the script that searches on disk from the site; the theme would load it from the network."""
    script = get_relative_url("assets/iframe-worker.js", page.url)
    assert output.count(_SHIM) <= 1
    return output.replace(_SHIM, script)
