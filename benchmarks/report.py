"""Write measured ratios into the documentation: `python -m benchmarks.report RESULTS.json`.

RESULTS.json is from `python -m benchmarks --json RESULTS.json`. The tables stand between marks in `README.md` and
`benchmarks/README.md`; the chart is `docs/images/benchmarks.svg`.
"""

import argparse
import json
import pathlib
import statistics
from collections.abc import Iterable
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

REPOSITORY = pathlib.Path(__file__).parent.parent
CHART = REPOSITORY / "docs" / "images" / "benchmarks.svg"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
# The groups of rows by how their names start, as the tables call them.
GROUPS = {
    "import": "import", "cold set-up": "set-up outside of `jit`, new process",
    "cold start": "first result, new process",
    "warm start": "first result, programs on disk", "cold trace": "function to text, new process",
    "trace+lower": "function to text", "growth": "growth with nesting", "dispatch": "calls of jitted functions",
    "eager": "single operations", "on 8 devices": "eight devices",
}
# What stands in the way of rows that miss their target, by how their names start.
CAUSES = {
    "cold start: selu": "loading numpy, jaxlib and ml_dtypes, {floor} of jax's import, and XLA's compilation",
    "cold start": "XLA's compilation, which is jax's as well",
    "warm start": "the import, XLA's loading of the program, and its first run",
    "cold trace": "loading numpy, jaxlib and ml_dtypes, {floor} of jax's import",
    "dispatch 200-leaf": "the results are 200 arrays, which jax makes in C++",
    "dispatch": "XLA's execution takes most of both times",
    "trace+lower": "about 6 us of Python for each equation of long programs, more in short ones",
    "growth": "depth 1 costs less beside jax than depth 6",
    "eager": "XLA's execution takes most of both times",
    "on 8 devices: dispatch": "XLA's execution on eight devices takes most of both times",
    "on 8 devices: device_put": "the array is copied, where jax may share its memory",
}


def group_of(row: dict[str, Any]) -> str | None:
    """Return the group of a row with a target, None for the others."""
    if row["target"] is None or row["ratio"] is None:
        return None
    return next((name for start, name in GROUPS.items() if row["name"].startswith(start)), None)


def find_cause(row: dict[str, Any], floor: str) -> str:
    """Return what stands in the way of a row that misses its target."""
    return next((text for start, text in CAUSES.items() if row["name"].startswith(start)), "").format(floor=floor)


def table(header: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    header = list(header)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, ["---"] * len(header), *lines])


def spread(row: dict[str, Any]) -> str:
    return f"{row['ratio']['median']:.2f} ({row['ratio']['low']:.2f} to {row['ratio']['high']:.2f})"


def summary(results: dict[str, Any]) -> str:
    """Return the table of groups, and that of the rows that miss their target."""
    rows = [row for row in results["rows"] if group_of(row)]
    floor = next((spread(row) for row in results["rows"] if row["name"].startswith("import of numpy")), "a part")
    lines = []
    for name in dict.fromkeys(GROUPS.values()):
        members = [row for row in rows if group_of(row) == name]
        if members:
            ratios = [row["ratio"]["median"] for row in members]
            met = sum(row["met"] for row in members)
            lines.append([
                name, f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}",
                f"{met} of {len(members)}",
            ])
    missed: dict[tuple[str | None, str], list[dict[str, Any]]] = {}
    for row in rows:
        if not row["met"]:
            missed.setdefault((group_of(row), find_cause(row, floor)), []).append(row)
    groups = table(["xtrace / jax", "median", "from the best row to the worst", "rows at their target"], lines)
    if not missed:
        return groups
    causes = [
        [group or "", str(len(members)), extent([row["ratio"]["median"] for row in members]),
            extent([row["target"] for row in members]), cause]
        for (group, cause), members in missed.items()
    ]
    header = ["rows that miss their targets", "", "medians", "targets", "in the way"]
    return f"{groups}\n\n{table(header, causes)}"


def extent(values: list[float]) -> str:
    """Return the least and the greatest of values, once if they are shown alike."""
    least, greatest = f"{min(values):.2f}", f"{max(values):.2f}"
    return least if least == greatest else f"{least} to {greatest}"


def all_rows(results: dict[str, Any]) -> str:
    """Return the table of all rows."""
    lines = [
        [row["name"], "error" if row["ratio"] is None else spread(row), f"{row['target']:.2f}" if row["target"] else ""]
        for row in results["rows"]
    ]
    return table(["row", "ratio (10 to 90 % of pairs)", "target"], lines)


def draw(results: dict[str, Any]) -> None:
    """Draw the rows that have a target: the median, the spread, and the target."""
    rows = [row for row in results["rows"] if group_of(row)][::-1]
    figure, axes = plt.subplots(figsize=(9, 0.19 * len(rows) + 1))
    for height, row in enumerate(rows):
        ratio, colour = row["ratio"], "#1a7f37" if row["met"] else "#bc4c00"
        axes.plot([ratio["low"], ratio["high"]], [height, height], color=colour, linewidth=1.5)
        axes.plot(ratio["median"], height, "o", color=colour, markersize=4)
        axes.plot(row["target"], height, "|", color="#57606a", markersize=9)
    axes.axvline(1, color="#57606a", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xticks([0.03, 0.1, 0.3, 1, 2], ["0.03", "0.1", "0.3", "1 (jax)", "2"])
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows], fontsize=7)
    axes.set_ylim(-1, len(rows))
    axes.set_title("time of xtrace / time of jax; the grey mark is the target", fontsize=10)
    axes.grid(axis="x", linewidth=0.3)
    figure.tight_layout()
    figure.savefig(CHART, metadata={"Date": None}, facecolor="white")


def write_between_marks(path: pathlib.Path, text: str) -> None:
    """Put `text` between the marks of a file."""
    before, _, rest = path.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.report", description=__doc__)
    parser.add_argument("results", type=pathlib.Path)
    results = json.loads(parser.parse_args().results.read_text())
    about = results["environment"]
    versions = f"jax {about['jax']}, jaxlib {about['jaxlib']}, Python {about['python']}"
    measured = f"Measured with {versions} on {about['cores']} cores, in {about['rounds']}."
    write_between_marks(REPOSITORY / "README.md", f"{measured}\n\n{summary(results)}")
    write_between_marks(REPOSITORY / "benchmarks" / "README.md", f"{measured}\n\n{all_rows(results)}")
    draw(results)


if __name__ == "__main__":
    main()
