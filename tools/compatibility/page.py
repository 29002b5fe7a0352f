"""The page of compatible libraries, ``docs/compatibility.md``, from the kept results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools.compatibility.causes import find_cause
from tools.compatibility.environments import ROOT
from tools.compatibility.libraries import LIBRARIES

RESULTS = Path(__file__).parent / "results"
_PAGE = ROOT / "docs" / "compatibility.md"

_HEAD = """# Libraries on xtrace

These libraries of JAX's world run on xtrace unmodified, with jax not installed. `python -m tools.compatibility` wrote
this page: it installs each library in one environment with jax 0.10.2 and in another without, where `import jax` means
xtrace, and runs the library's published tests and some programs in both. Columns: the tests that pass on jax, those of
them that pass on xtrace, the seconds that all of them took (two processes on two cores), and the seconds of processor
time that the import takes. Of suites that would take hours on two cores, the tests that run are drawn by their names:
the same ones each time, one in so many as the table says. What came out on jax is kept between runs, and other
programs ran on the machine in some of them, so the seconds of tests say little about speed; `python -m benchmarks` and
`python -m benchmarks.libraries` measure it.

To run a program of yours so: `python -m xtrace run program.py`, or `import xtrace; xtrace.as_jax()` before the first
`import jax`.

| library | version | pass on jax | of these on xtrace | tests on jax | on xtrace | import on jax | on xtrace |
|---|---|---|---|---|---|---|---|
"""


def write_page() -> None:
    """Write the page."""
    results = {n: json.loads(p.read_text()) for n in LIBRARIES if (p := RESULTS / f"{n}.json").exists()}
    rows = [_row(name, result) for name, result in results.items()]
    parts = [_HEAD + "\n".join(rows), _programs(results), _failures(results), _ALSO_COMPARED, _OUTSIDE]
    _PAGE.parent.mkdir(exist_ok=True)
    _PAGE.write_text("\n\n".join(parts) + "\n")


def _row(name: str, result: dict[str, Any]) -> str:
    tests, times = result.get("tests"), result.get("import_seconds") or {}
    shown = ["no published tests" if LIBRARIES[name].tests is None else "not run", "", "", ""]
    if tests:
        share = 100 * tests["pass_on_xtrace"] / tests["pass_on_jax"]
        seconds = tests["seconds"]
        one_of = LIBRARIES[name].one_of
        shown = [
            f"{tests['pass_on_jax']}{f', one in {one_of} drawn' if one_of > 1 else ''}",
            f"{tests['pass_on_xtrace']} ({_percent(share)})", f"{seconds['jax']} s", f"{seconds['xtrace']} s",
        ]
    imports = [f"{times[f]:.2f} s" if f in times else "" for f in ("jax", "xtrace")]
    return " | ".join(["| " + name, result["version"], *shown, *imports]) + " |"


def _percent(share: float) -> str:
    """Return a percentage that says 100 % only for all."""
    return "100 %" if share == 100 else f"{min(share, 99.9):.1f} %"


def _programs(results: dict[str, dict[str, Any]]) -> str:
    lines = [
        "## Programs",
        "",
        "Each prints numbers, which are compared with those under jax. Seconds are of whole processes, with imports",
        "and compilation. They lie in `tools/compatibility/programs/`.",
        "",
        "| program | results compared | that differ | on jax | on xtrace |",
        "|---|---|---|---|---|",
    ]
    for result in results.values():
        for name, run in result["programs"].items():
            seconds = [f"{run['seconds'][f]:.1f} s" if f in run["seconds"] else "" for f in ("jax", "xtrace")]
            lines.append(" | ".join([f"| `{name}`", str(run["results"]), str(len(run["faults"])), *seconds]) + " |")
    return "\n".join(lines)


def _failures(results: dict[str, dict[str, Any]]) -> str:
    lines = ["## Tests that pass on jax only", ""]
    for name, result in results.items():
        causes: dict[str, list[str]] = {}
        for test, message in ((result.get("tests") or {}).get("failures") or {}).items():
            causes.setdefault(find_cause(name, test, message), []).append(test)
        for cause, tests in causes.items():
            count = f"{len(tests)} tests" if len(tests) > 1 else "1 test"
            lines += [f"- **{name}**, {count}: {cause}", *[f"  - `{t}`" for t in tests[:20]]]
            if len(tests) > 20:
                lines.append(f"  - … and {len(tests) - 20} more")
    return "\n".join(lines if len(lines) > 2 else [*lines, "None."])


_ALSO_COMPARED = """## Also compared

Programs over these libraries, or their own tests, were run under jax 0.10.2 and under xtrace, and gave the same
values and dtypes to the rounding of the dtype; they are not part of the tool. Training and models: Keras 3.15 (3,300
of its own tests, and models on one and on several devices), Orbax through Keras, penzai, rlax, mctx, dm-pix, jraph.
Probability: TensorFlow Probability, gpjax, tinygp, dynamax, jaxns (a last digit differs), flowjax, ott-jax, POT.
Optimisation: jaxopt, evosax, evojax, qpax, mpax, linrax. Simulation: brax, MuJoCo MJX, gymnax, pgx, jumanji, craftax,
xminigrid, jaxmarl, jax-cfd, jaxley, jaxlie, netket, pennylane, dynamiqs, jaxquantum, qujax, s2fft, jaxwt, e3nn-jax,
tensorly. Of 115 packages, 4,614 modules import on jax, and on xtrace all but those of jax-md and qwix, which import
Pallas, and four others."""

_OUTSIDE = """## Names that xtrace does not have

Pallas, Mosaic and `jax2tf` are outside of xtrace; importing them is an `ImportError` that says so. Libraries import
colocated Python and the kernels of `jax.experimental.pallas.ops` that may never use them, so their names can be
imported, and raise an error when they are called. Kernels of one's own run through `xtrace.ffi`. Of `jax._src`, which
is private, there are the names that these libraries use, public names in the files from which editors import them, and
the test cases of `test_util`; `xtrace/_src/alias/private_modules.py` lists them."""
