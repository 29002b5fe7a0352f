"""The built page in the package is that of its sources."""

import hashlib
import shutil
import subprocess

import pytest

from tests.architecture.source_tree import ROOT

SOURCES = ROOT / "tools" / "explorer_page"
ASSETS = ROOT / "xtrace" / "_src" / "explorer" / "assets"


def test_the_built_page_is_that_of_its_sources():
    names = sorted(["package-lock.json", "style.css", *[f"src/{p.name}" for p in (SOURCES / "src").iterdir()]])
    digest = hashlib.sha256(b"".join([(SOURCES / name).read_bytes() for name in names])).hexdigest()[:16]
    first = (ASSETS / "page.js").read_text(encoding="utf-8").partition("\n")[0]
    assert first == f"// explorer page {digest}", "build it: cd tools/explorer_page && npm ci && npm run build"


def test_the_script_and_the_style_can_stand_in_a_page():
    assert "</script" not in (ASSETS / "page.js").read_text(encoding="utf-8").lower()
    assert "</style" not in (ASSETS / "page.css").read_text(encoding="utf-8").lower()


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: apt-get install nodejs")
def test_the_modules_of_the_page_pass_their_own_tests():
    done = subprocess.run(["node", "--test", "tests/"], cwd=SOURCES, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:]
