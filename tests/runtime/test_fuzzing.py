"""The fuzzers and the torture of `tools`, with few rounds: files that are wrong are refused or made again."""

import collections
import random
import subprocess
import sys

import pytest

from tools import fuzz_files


@pytest.mark.parametrize(("fuzz", "count"), [
    (fuzz_files.fuzz_exports, 400), (fuzz_files.fuzz_executables, 400), (fuzz_files.fuzz_entries, 200),
    (fuzz_files.fuzz_signed_entries, 200), (fuzz_files.fuzz_arrays, 100), (fuzz_files.fuzz_programs, 2),
])
def test_changed_files_are_refused_in_words(fuzz, count):
    outcomes = collections.Counter()
    fuzz(count, random.Random(7), outcomes)
    assert sum(outcomes.values()) >= count


TORTURE = """
import sys
from tools.torture_compilation_cache import torture
counts = torture(sys.argv[1], processes=3, rounds=40, seed=1)
print(counts)
assert not counts["faults"] and counts["rounds"] == 120 and counts["kills"] and counts["damaged"], counts
"""


def test_processes_share_a_folder_of_programs_and_are_killed(tmp_path):
    # The processes are forks, so nothing may have run before.
    ran = subprocess.run(
        [sys.executable, "-c", TORTURE, str(tmp_path / "programs")], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
