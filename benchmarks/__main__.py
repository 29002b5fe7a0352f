"""`python -m benchmarks`: xtrace side by side with jax, as ratios."""

import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import shutil
import sys
from typing import Any

from benchmarks.measure import QUICK, Plan, Result, measure_rows, percentiles
from benchmarks.rows import ROWS, warm_start_folder

UNITS = {"us": 1e6, "ms": 1e3, "MB": 1e-6, "kB": 1e-3, "B": 1, "lines": 1, "instr": 1, "times": 1}


def environment() -> dict[str, Any]:
    """What a reader needs to compare two runs."""
    return {
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("jax", "jaxlib", "numpy")},
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


def cells(result: Result) -> list[str]:
    """The columns of one line; after an error the last line of its traceback stands in their place."""
    if result.error:
        return [result.row.name, "error: " + result.error.splitlines()[-1]]
    spread = percentiles(result.ratios)
    scale = UNITS[result.row.unit]
    absolute = [f"{percentiles(side).median * scale:,.2f}" for side in (result.subject, result.reference)]
    return [
        result.row.name,
        f"{spread.median:.3f}",
        f"{spread.low:.3f}-{spread.high:.3f}",
        "" if result.target is None else f"{result.target:.2f}" + (" (spread)" if result.row.against_spread else ""),
        {None: "", True: "yes", False: "NO"}[result.met],
        *absolute,
        result.row.unit,
    ]


def table(results: list[Result], subject: str, reference: str) -> str:
    """The results in aligned columns."""
    header = ["row", "ratio", "10-90%", "target", "met", subject, reference, ""]
    lines = [header, *(cells(result) for result in results)]
    full = [line for line in lines if len(line) == len(header)]
    widths = [max(len(line[column]) for line in full) for column in range(len(header))]
    widths[0] = max(len(line[0]) for line in lines)
    left = (0, len(header) - 1)
    return "\n".join(
        "  ".join(
            cell.ljust(widths[column]) if column in left or len(line) != len(header) else cell.rjust(widths[column])
            for column, cell in enumerate(line)
        ).rstrip()
        for line in lines
    )


def as_json(results: list[Result]) -> list[dict[str, Any]]:
    """One dict a row; the samples are per operation, in seconds or bytes, in pairs."""
    return [
        {
            "name": result.row.name,
            "ratio": None if result.error else percentiles(result.ratios)._asdict(),
            "target": None if result.error else result.target,
            "met": None if result.error else result.met,
            "subject": result.subject,
            "reference": result.reference,
            "control": result.control,
            "error": result.error,
        }
        for result in results
    ]


def report(line: str) -> None:
    """Progress, for a person who watches."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="measure the rows that start with one of these (default: all)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all samples and tracebacks there")
    parser.add_argument("--quick", action="store_true", help="one short round, for a first look")
    parser.add_argument("--list", action="store_true", help="print the names of the rows and stop")
    parser.add_argument("--subject", default="xtrace", help="the library under test (jax: calibrate the harness)")
    parser.add_argument("--reference", default="jax", help="the library it is compared with")
    options = parser.parse_args()

    rows = [row for row in ROWS if not options.names or row.name.startswith(tuple(options.names))]
    if not rows:
        parser.error(f"no row starts with {' or '.join(map(repr, options.names))}; --list prints the names")
    if options.list:
        print("\n".join(row.name for row in rows))
        return 0
    about = environment() | {"rounds": "one short round" if options.quick else "three rounds"}
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    results = measure_rows(rows, options.subject, options.reference, QUICK if options.quick else Plan(), report)
    for library in (options.subject, options.reference):
        shutil.rmtree(warm_start_folder(os.getpid(), library), ignore_errors=True)
    report("")
    print(table(results, options.subject, options.reference))
    if options.json:
        options.json.write_text(json.dumps({"environment": about, "rows": as_json(results)}, indent=1) + "\n")
    return 1 if any(result.error for result in results) else 0


if __name__ == "__main__":
    raise SystemExit(main())
