"""Where results are with several devices: as in jax. A run takes a part that its seed draws; see `places.py`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.sampling import number_of_draws

pytestmark = pytest.mark.thorough

PARTS = 64


@pytest.mark.slow
def test_results_are_where_they_are_in_jax(pytestconfig: pytest.Config) -> None:
    number = number_of_draws(pytestconfig.getoption("sample_seed"))
    parts = 1 if pytestconfig.getoption("whole_tables") else PARTS
    command = [sys.executable, "-m", "tests.differential.places", str(number % parts), str(parts)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "", f"python -m tests.differential.places {number % parts} {parts}\n{done.stdout}"
