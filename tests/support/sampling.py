"""Which tests a run takes: all, or those that its seed draws, so that runs of other commits take others."""

from __future__ import annotations

import datetime
import os
import pathlib
import subprocess
import zlib
from typing import Any

# The part of the tests that this run takes.
part_run = 1.0

# The part of the files marked ``thorough`` that a run of all tests takes.
THOROUGH = 0.1


def default_seed() -> str:
    """Return the commit that is tested; outside a repository, the day."""
    try:
        return subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"],
            cwd=pathlib.Path(__file__).parent, capture_output=True, text=True, check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return datetime.date.today().isoformat()


def number_of_draws(sample_seed: str) -> int:
    """Return which calls tests/differential/test_draws.py draws: by XTRACE_DRAWS_SEED, else by the sample's seed."""
    return int(os.environ.get("XTRACE_DRAWS_SEED", zlib.crc32(sample_seed.encode()) % 1000))


class Sample:
    """A part of all tests, with a part again of those that are costly.

    Tables marked ``drawn(part)`` are that part of it unless `whole_tables`; of files marked ``thorough`` it has a tenth
    at most unless `whole_files`.
    """

    def __init__(self, part: float, seed: str, whole_tables: bool = False, whole_files: bool = False) -> None:
        self.part, self.seed, self.whole_tables, self.whole_files = part, seed, whole_tables, whole_files

    def __contains__(self, item: Any) -> bool:
        part, drawn = self.part, item.get_closest_marker("drawn")
        if drawn is not None and not self.whole_tables:
            part *= drawn.args[0]
        if item.get_closest_marker("thorough") is not None and not self.whole_files:
            part = min(part, THOROUGH)
        # A number from the seed and the test's name, the same in all processes of a run.
        return zlib.crc32(f"{self.seed} {item.nodeid}".encode()) < part * 2**32

    def __str__(self) -> str:
        tables = "whole tables" if self.whole_tables else "a part of costly tables"
        files = "whole thorough files" if self.whole_files else f"{THOROUGH:.0%} of thorough files"
        return f"{self.part:.0%} of the tests, {tables}, {files}; --sample-seed {self.seed} draws the same ones"


def sample_of(config: Any) -> Sample:
    """Return the part of the tests that a run takes; of files that it names it takes all."""
    named = any(".py" in str(argument) for argument in config.args)
    whole_tables, whole_files = config.getoption("whole_tables") or named, config.getoption("thorough") or named
    return Sample(config.getoption("sample"), config.getoption("sample_seed"), whole_tables, whole_files)
