"""Ratios that were measured are written into the pages between their marks."""

from benchmarks import report


def row(name, median, target):
    ratio = {"median": median, "low": median - 0.1, "high": median + 0.1}
    return {"name": name, "ratio": ratio, "target": target, "met": target is None or median <= target}


RESULTS = {
    "environment": {},
    "rows": [
        row("cold start: selu", 0.4, 0.27), row("import of numpy, jaxlib and ml_dtypes alone", 0.25, None),
        row("dispatch 1 array", 0.5, 0.95), row("dispatch 2 arrays", 0.7, 0.95), row("lines of text mlp", 1.0, 1.0),
        {"name": "eager a", "ratio": None, "target": None, "met": None},
    ],
}


def test_groups_and_missed_targets_are_tables():
    groups, missed = report.summary(RESULTS).split("\n\n")
    assert groups.splitlines()[2:] == [
        "| first result, new process | 0.40 | 0.40 to 0.40 | 0 of 1 |",
        "| calls of jitted functions | 0.60 | 0.50 to 0.70 | 2 of 2 |",
    ]
    cause = "loading numpy, jaxlib and ml_dtypes, 0.25 (0.15 to 0.35) of jax's import, and XLA's compilation"
    assert missed.splitlines()[2:] == [f"| first result, new process | 1 | 0.40 | 0.27 | {cause} |"]


def test_rows_that_miss_their_targets_for_one_cause_share_a_line():
    rows = [row("eager a", 1.0, 0.8), row("eager b", 0.9, 0.4), row("eager c", 0.1, 0.4)]
    *_, line = report.summary({"environment": {}, "rows": rows}).splitlines()
    assert line == "| single operations | 2 | 0.90 to 1.00 | 0.40 to 0.80 | XLA's execution takes most of both times |"


def test_every_row_is_in_the_table():
    lines = report.all_rows(RESULTS).splitlines()[2:]
    assert len(lines) == 6 and lines[1].endswith("| 0.25 (0.15 to 0.35) |  |") and lines[-1] == "| eager a | error |  |"


def test_text_is_written_between_the_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    for _ in range(2):
        report.write_between_marks(page, "new")
    assert page.read_text() == f"before\n{report.BEGIN}\nnew\n{report.END}\nafter\n"
