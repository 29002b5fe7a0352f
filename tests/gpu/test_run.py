"""The script for a machine with a GPU says why it does nothing on one without."""

import os
import subprocess
import sys
from pathlib import Path


def test_without_a_gpu_it_says_why_and_succeeds():
    """A hidden GPU is like none: the reason is printed, and the exit status is 0."""
    hidden = {"CUDA_VISIBLE_DEVICES": "-1", "ROCR_VISIBLE_DEVICES": "-1", "PYTHON": sys.executable}
    done = subprocess.run(
        [Path(__file__).parent / "run"], env=os.environ | hidden, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("skipped: Backend '") and "this machine shows no " in done.stdout
    assert "_VISIBLE_DEVICES hides it" in done.stdout
