"""Pictures of shardings: the pieces of an array of one or two axes, each with its devices."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from xtrace._src.core.annotations import Shape

# A character is about 2.5 times as high as it is wide.
_HEIGHT_TO_WIDTH = 2.5
_LINES = 10
_COLORS = (
    "#aec7e8", "#ffbb78", "#98df8a", "#ff9896", "#c5b0d5", "#c49c94", "#f7b6d2", "#dbdb8d", "#9edae5", "#c7c7c7",
)

# The rows of a picture: each piece is the tuple of its devices.
Grid = list[list[tuple[Any, ...]]]


def make_grid(sharding: Any, shape: Shape) -> Grid:
    """Return the devices of each piece, in rows and columns; an array of one axis is a row."""
    pieces: dict[tuple[int, ...], list[Any]] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        place = tuple([s.start or 0 for s in index])
        pieces.setdefault((0,) * (2 - len(place)) + place, []).append(device)
    rows = sorted({row for row, _ in pieces})
    columns = sorted({column for _, column in pieces})
    ordered = {place: tuple(sorted(held, key=lambda d: d.id)) for place, held in pieces.items()}
    return [[ordered[row, column] for column in columns] for row in rows]


def format_devices(devices: Sequence[Any]) -> str:
    """Return the text in a piece, such as ``CPU 0,1``."""
    return f"{devices[0].platform.upper()} {','.join([str(d.id) for d in devices])}"


def draw_lines(grid: Grid, shape: Shape, scale: float, min_width: int, max_width: int) -> list[list[tuple[str, Any]]]:
    """Return the lines of a picture, lists of pairs: a string, and the devices of its piece (None for borders)."""
    rows, columns = len(grid), len(grid[0])
    high = int(_LINES * scale)
    aspect = (shape[1] if len(shape) == 2 else 1) / max(shape[0], 1)
    width = max(int(int(high * aspect) * _HEIGHT_TO_WIDTH / columns), min_width) - 2
    height = max(int(high / rows) - 1, 1) if len(shape) == 2 else 1
    widest = max(len(format_devices(devices)) for row in grid for devices in row)
    width = max(min(width, (max_width - 1) // columns - 1), widest)
    lines = [_border("┌┬┐", columns, width)]
    for number, row in enumerate(grid):
        if number:
            lines.append(_border("├┼┤", columns, width))
        for line in range(height):
            texts = [_center(format_devices(devices) if line == (height - 1) // 2 else "", width) for devices in row]
            pairs = [pair for text, devices in zip(texts, row, strict=True) for pair in ((text, devices), ("│", None))]
            lines.append([("│", None), *pairs])
    lines.append(_border("└┴┘", columns, width))
    return lines


def _border(corners: str, columns: int, width: int) -> list[tuple[str, Any]]:
    left, middle, right = tuple(corners)
    return [(left + middle.join(["─" * width] * columns) + right, None)]


def _center(text: str, width: int) -> str:
    left = (width - len(text)) // 2
    return " " * left + text + " " * (width - len(text) - left)


def choose_colors(grid: Grid, color_map: Any = None) -> dict[Any, str]:
    """Return a colour for each set of devices; `color_map` maps numbers from 0 to 1 to red, green, blue and alpha."""
    held = list(dict.fromkeys([devices for row in grid for devices in row]))
    if color_map is None:
        return {devices: _COLORS[i % len(_COLORS)] for i, devices in enumerate(held)}
    colors = {}
    for i, devices in enumerate(held):
        red, green, blue = [round(255 * part) for part in color_map(i / max(len(held) - 1, 1))[:3]]
        colors[devices] = f"#{red:02x}{green:02x}{blue:02x}"
    return colors


def draw_html(sharding: Any, caption: str) -> str | None:
    """Return the HTML of a table for notebooks; None for a sharding without devices, or of more than two axes."""
    spec = getattr(sharding, "spec", ())
    try:
        # One element for each part: the picture does not depend on sizes.
        shape = sharding.tiles(min(max(len(spec), 1), 2)).parts
        grid = make_grid(sharding, shape)
    except ValueError:
        return None
    colors = choose_colors(grid)
    rows = "".join([
        "<tr>" + "".join([
            f'<td style="background:{colors[devices]};color:#000;border:1px solid #000;padding:0.4em 1em;'
            f'text-align:center">{html.escape(format_devices(devices))}</td>' for devices in row
        ]) + "</tr>"
        for row in grid
    ])
    return (
        '<table style="border-collapse:collapse"><caption style="text-align:left"><code style="white-space:pre">'
        f"{html.escape(caption)}</code></caption>{rows}</table>"
    )
