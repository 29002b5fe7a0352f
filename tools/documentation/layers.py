"""Draws the layers of the package and their imports, read from the sources."""

from __future__ import annotations

import collections
import math

from tests.architecture.source_tree import LAYERS, imports, late_imports, of_package, rank, read_package, resolve, unit

_ROW, _LEFT, _RIGHT = 34, 170, 520  # pixels: a row, where bars begin, where arcs begin
_PUBLIC, _COMMAND = "public modules", "cli"


def layer_of(module: str) -> str:
    """Return the row of a module in the picture."""
    height = rank(module)
    if height < len(LAYERS):
        return LAYERS[height].rpartition(".")[2]
    return _COMMAND if height > len(LAYERS) + 1 else _PUBLIC


def measure() -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    """Return the lines of each layer, in order, and how often one imports another."""
    modules = read_package()
    lines = {name.rpartition(".")[2]: 0 for name in LAYERS} | {_PUBLIC: 0, _COMMAND: 0}
    edges: collections.Counter[tuple[str, str]] = collections.Counter()
    for module in modules.values():
        lines[layer_of(module.name)] += len(module.lines)
        targets = [resolve(item, modules) for item in imports(module) if of_package(item)]
        targets += [name for name, _ in late_imports(module)]
        for target in targets:
            if unit(target) != unit(module.name) and layer_of(target) != layer_of(module.name):
                edges[layer_of(module.name), layer_of(target)] += 1
    return lines, dict(edges)


def draw() -> str:
    """Return the picture as SVG, which is readable on light and dark pages."""
    lines, edges = measure()
    order = list(lines)
    middle = {name: _ROW * (row + 1) for row, name in enumerate(order)}
    height, longest = _ROW * (len(order) + 1), max(lines.values())
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 {height}" role="img"'
        ' aria-label="Layers of xtrace and their imports" font-family="sans-serif" font-size="13">',
        f'<rect width="900" height="{height}" rx="6" fill="#f7f8fa"/>',
    ]
    for (importer, imported), count in sorted(edges.items(), key=lambda edge: -edge[1]):
        start, end = middle[importer], middle[imported]
        bend = _RIGHT + 30 + 16 * abs(start - end) / _ROW
        parts.append(
            f'<path d="M{_RIGHT} {start} C{bend:.0f} {start} {bend:.0f} {end} {_RIGHT} {end}" fill="none"'
            f' stroke="hsl({order.index(imported) * 47 % 360} 55% 45%)" stroke-opacity="0.55"'
            f' stroke-width="{0.6 + 0.8 * math.log2(count + 1):.1f}">'
            f"<title>{importer} imports {imported} {count} times</title></path>"
        )
    for name, y in middle.items():
        width = 60 + (_RIGHT - _LEFT - 70) * math.sqrt(lines[name] / longest)
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 4}" text-anchor="end" fill="#1f2328">{name}</text>')
        parts.append(
            f'<rect x="{_LEFT}" y="{y - 11}" width="{width:.0f}" height="22" rx="3"'
            f' fill="hsl({order.index(name) * 47 % 360} 55% 80%)"/>'
        )
        parts.append(f'<text x="{_LEFT + 8}" y="{y + 4}" fill="#1f2328">{lines[name]:,}</text>')
    return "\n".join([*parts, "</svg>"])
