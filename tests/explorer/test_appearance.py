"""How the page looks: screenshots are compared with those that were looked at, square by square.

A golden is the mean brightness of each square of a coarse grid, so that another font changes it little, and a pane that
is missing, a theme that does not apply or a layout that breaks changes it much. ``UPDATE_GOLDENS=1`` stores new ones,
with the screenshots beside them in the temporary folder that the test prints: look at these.
"""

import base64
import json
import os
from pathlib import Path

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp

pytestmark = [pytest.mark.thorough, pytest.mark.slow]
GOLDENS = Path(__file__).parent / "goldens.json"
SQUARES = 32, 20
# The means of squares of text differ by up to about 12 of 255 between fonts; a panel that is missing changes 40.
OF_ALL, OF_ONE = 5, 40
# Decoded by the browser: no other package is needed.
BRIGHTNESS = """async ([source, columns, rows]) => {
    const image = new Image();
    image.src = source;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    const sums = new Array(columns * rows).fill(0), counts = new Array(columns * rows).fill(0);
    for (let y = 0; y < image.height; y++)
        for (let x = 0; x < image.width; x++) {
            const square = Math.floor(y * rows / image.height) * columns + Math.floor(x * columns / image.width);
            const pixel = 4 * (y * image.width + x);
            sums[square] += (data[pixel] + data[pixel + 1] + data[pixel + 2]) / 3;
            counts[square] += 1;
        }
    return sums.map((sum, i) => Math.round(sum / counts[i]));
}"""


def network(w1, w2, x):
    h = jnp.tanh(x @ w1)
    return jnp.mean((h @ w2) ** 2)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    xtrace.explore(network, jnp.ones((8, 16)), jnp.ones((16, 4)), jnp.ones((32, 8))).save(path)
    return path


@pytest.mark.parametrize("width", [1280, 1920])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_looks_as_it_did(browser, file, theme, width, tmp_path):
    page = browser.new_page(
        viewport={"width": width, "height": width * 5 // 8}, color_scheme=theme, reduced_motion="reduce"
    )
    page.goto(file.as_uri())
    page.wait_for_selector(".line")
    page.wait_for_timeout(200)
    picture = page.screenshot()
    page.close()
    blank = browser.new_page()
    source = "data:image/png;base64," + base64.b64encode(picture).decode()
    seen = np.array(blank.evaluate(BRIGHTNESS, [source, *SQUARES]))
    blank.close()
    goldens = json.loads(GOLDENS.read_text()) if GOLDENS.exists() else {}
    name = f"{theme} {width}"
    if os.environ.get("UPDATE_GOLDENS"):
        (tmp_path / f"{name}.png").write_bytes(picture)
        print(tmp_path)
        text = json.dumps(goldens | {name: seen.tolist()}, separators=(",", ":"))
        GOLDENS.write_text(text.replace("],", "],\n") + "\n")
    differences = np.abs(seen - np.array(json.loads(GOLDENS.read_text())[name]))
    assert differences.mean() < OF_ALL and differences.max() < OF_ONE
