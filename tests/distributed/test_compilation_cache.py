"""Programs over several processes that are kept on disk: all processes load them, or none does."""

import os

from tests.distributed.processes import run

_COUNT = """
from xtrace._src.core.settings import compilation_cache_settings as settings

def compute():
    # As after a start of the process: the counts of hits, misses and stored programs, and the result.
    xtrace.clear_caches()
    before = xtrace.cache_info()
    x = xtrace.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("data")))
    result = float(xtrace.jit(lambda x: jnp.linalg.cholesky(x.sum() * jnp.eye(3)).sum() + (x * 2).sum())(x))
    assert abs(result - 3 * 28 ** 0.5 - 56) < 1e-4, result
    after = xtrace.cache_info()
    return [getattr(after, name) - getattr(before, name) for name in ("hits", "misses", "stored")]

xtrace.config.update("jax_compilation_cache_dir", folder)
xtrace.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
"""


def outputs_of(program, folder, count=2):
    codes, outputs = run(f"folder = {folder}\n{_COUNT}{program}", count)
    assert codes == [0] * count, outputs
    return [text.splitlines() for text in outputs]


def test_processes_that_share_a_folder_load_what_the_first_one_stored(tmp_path):
    folder = str(tmp_path / "programs")
    cold = outputs_of("print(*compute())", repr(folder))
    assert cold == [["0 1 1"], ["0 1 0"]]
    assert len(os.listdir(folder)) == 1
    # The text is that of the whole program; what runs is stripped.
    warm = outputs_of(
        """
print(*compute())
x = xtrace.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("data")))
f = xtrace.jit(lambda x: jnp.linalg.cholesky(x.sum() * jnp.eye(3)).sum() + (x * 2).sum())
print("all-reduce" in f.lower(x).compile().as_text(), [float(f(x * n)) > 50 * n for n in (1, 2, 3, 4, 5)])
""",
        repr(folder),
    )
    assert [lines[0] for lines in warm] == ["1 0 0", "1 0 0"]
    assert [lines[1] for lines in warm] == ["True [True, True, True, True, True]"] * 2


def test_all_processes_compile_if_one_has_no_usable_entry(tmp_path):
    """Each process has a folder of its own; nobody waits for a process that loads while it compiles."""
    lines = outputs_of(
        """
import contextlib, os, warnings
from pathlib import Path
from xtrace._src.runtime.disk_cache import DiskCache, Entry
from xtrace.experimental import multihost_utils

warnings.simplefilter("ignore")

def program():
    (path,) = Path(folder).glob("*.program")
    return path

def flip():
    content = bytearray(program().read_bytes())
    content[len(content) // 2] ^= 4
    program().write_bytes(content)

def replace():
    DiskCache(folder).write(bytes.fromhex(program().stem), Entry(b"no program", 1.0))

print(*compute(), "cold")
print(*compute(), "warm")
for number, damage in enumerate((lambda: program().unlink(), flip, replace, lambda: os.chmod(program(), 0o666))):
    # The damage is in one process or the other.
    if process == number % 2:
        damage()
    print(*compute(), f"damage {number}")
    if process == number % 2 and number == 3:
        os.chmod(program(), 0o600)
    print(*compute(), "warm")
with settings.enabled(False) if process else contextlib.nullcontext():
    print(*compute(), "off in process 1")
with settings.enabled(False) if not process else contextlib.nullcontext():
    print(*compute(), "off in process 0")
print(*compute(), "warm")
""",
        f"{str(tmp_path / 'programs')!r} + str(process)",
    )
    both = [("cold", "0 1 1")] + [("warm", "1 0 0")]
    for number in range(4):
        both += [(f"damage {number}", "0 1 1"), ("warm", "1 0 0")]
    for process, text in enumerate(lines):
        expected = [*both, *[
            (f"off in process {off}", "0 0 0" if process == off else "0 1 1") for off in (1, 0)
        ], ("warm", "1 0 0")]
        assert text == [f"{counts} {name}" for name, counts in expected], text
