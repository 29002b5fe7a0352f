"""Hooks of mkdocs: pages that are made while the site is built, and read nowhere else."""

from __future__ import annotations

import concurrent.futures
import pathlib
import sys
import tempfile
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

_REPOSITORY = pathlib.Path(__file__).parents[2]
_SHIM = "https://unpkg.com/iframe-worker/shim"
sys.path.insert(0, str(_REPOSITORY))

from tests.documentation import pages  # noqa: E402
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
        # Its pictures are those of the site.
        "benchmarks.md": (_REPOSITORY / "benchmarks" / "README.md").read_text(encoding="utf-8").replace("../docs/", ""),
        "changes.md": (_REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"),
        "layers.svg": layers.draw(),
    }
    made |= {f"reference/{name}.md": reference.page(module) for name, module in reference.public_modules().items()}
    for path in _notebooks():
        page, pictures = notebooks.convert(path)
        made[f"notebooks/{path.stem}.md"] = page
        made |= {f"notebooks/{name}": picture for name, picture in pictures.items()}
    made |= _explorer_pages()
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def _explorer_pages() -> dict[str, bytes]:
    """Return the pages of the explorer that programs of the documentation save, by their paths in the site."""
    folder = _REPOSITORY / "docs"
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.md"))}
    saving = {path: text for path, text in sources.items() if pages.saved_pages(text)}

    def run(path: pathlib.Path) -> dict[str, bytes]:
        programs = [block.text for block in pages.blocks(saving[path]) if block.language == "python"]
        with tempfile.TemporaryDirectory() as work:
            pages.run_programs(programs, pathlib.Path(work))
            within = path.parent.relative_to(folder)
            return {str(within / page.name): page.read_bytes() for page in pathlib.Path(work).glob("*.html")}

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return {name: page for made in pool.map(run, saving) for name, page in made.items()}


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
