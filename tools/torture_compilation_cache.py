"""Torture of the compilation cache: many processes share a folder, are killed, and find damaged entries.

    python -m tools.torture_compilation_cache [--processes 16] [--rounds 1000]

Each round of a process compiles one of a few programs, or loads it from the folder, with its trace or without, and
compares its result with the right one. Meanwhile processes are killed at any moment and go on where they were, entries
are truncated, changed or replaced by one another, and old ones are evicted. No result may be wrong, no round may fail,
and in the end the folder holds right entries only.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import random
import signal
import tempfile
import time
import warnings
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

import xtrace
from xtrace._src.core.settings import compilation_cache_settings as settings
from xtrace._src.runtime.compilation_cache import CompilationCacheInfo
from xtrace._src.runtime.disk_cache import DiskCache

_PROGRAMS = 24
# About two thirds of the programs' sizes, so that eviction never ends.
_MOST_BYTES = 120_000
# A process lives for so many rounds on average.
_LIFETIME = 60


class _Process:
    """A process under torture; `left` are the rounds that it has to do."""

    def __init__(self, folder: str, rounds: int, seed: int) -> None:
        self.left, self._folder, self._seed = rounds, folder, seed
        self.start()

    def start(self) -> None:
        """Start it, or start it again for the rounds that are left."""
        self._seed += 1000
        self.deadline = self.left - random.expovariate(1 / _LIFETIME)
        self.reports, theirs = multiprocessing.Pipe(duplex=False)
        # The modules are loaded, and nothing has run yet: a fork is safe, and saves the start of the interpreter.
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=_work, args=(self._folder, self.left, self._seed, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def kill(self) -> None:
        """Kill it; it leaves nothing."""
        time.sleep(random.random() * 0.02)
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()


def _work(folder: str, rounds: int, seed: int, reports: Connection) -> None:
    """Do rounds, and report each: what went wrong, and how the cache was used."""
    draws = random.Random(seed)
    warnings.simplefilter("ignore")
    logging.getLogger("xtrace").setLevel(logging.ERROR)
    with settings.directory(folder), settings.min_compile_seconds(0.0), settings.max_size(_MOST_BYTES):
        for _ in range(rounds):
            number, x = draws.randrange(_PROGRAMS), draws.randrange(1000)
            fault = ""
            try:
                with settings.trace_cache(draws.random() < 0.5):
                    result = float(xtrace.jit(lambda x, n=number: (x + n) * (n + 1) - x)(np.float32(x)))
                if result != (x + number) * (number + 1) - x:
                    fault = f"program {number} of {x} gave {result}"
            except Exception as error:
                fault = f"program {number}: {type(error).__name__}: {error}"
            reports.send((fault, xtrace.cache_info()))


def _damage(folder: Path, draws: random.Random) -> bool:
    """Spoil an entry as a crash, a bad disk or a bad copy would; return whether there was one."""
    entries = sorted([*folder.glob("*.program"), *folder.glob("*.trace")])
    if not entries:
        return False
    path = draws.choice(entries)
    try:
        content = bytearray(path.read_bytes())
        kind = draws.randrange(4)
        if kind == 0:
            del content[draws.randrange(len(content) + 1) :]
        elif kind == 1:
            content[draws.randrange(len(content))] ^= 1 << draws.randrange(8)
        elif kind == 2:
            content[:] = draws.choice(entries).read_bytes()
        else:
            (folder / f"{path.name}.77.ab{draws.randrange(100)}.temporary").write_bytes(content[:100])
        # Writing in place is what nobody does who shares the folder: readers may see any part of it.
        with open(path, "r+b") as file:
            file.write(content)
            file.truncate()
    except (FileNotFoundError, IndexError):  # It was evicted, or set aside, or is empty.
        return False
    return True


def torture(folder: str, processes: int, rounds: int, seed: int = 0) -> dict[str, Any]:
    """Torture the cache in a folder, and return what happened, by name; ``faults`` must be empty."""
    random.seed(seed)
    draws = random.Random(seed)
    start, running = time.monotonic(), [_Process(folder, rounds, n) for n in range(processes)]
    counts: dict[str, Any] = dict.fromkeys(("rounds", "kills", "damaged", *_COUNTED), 0) | {"faults": []}
    last: dict[int, CompilationCacheInfo] = {}
    while running:
        for each in wait([p.reports for p in running], timeout=60) or [None]:
            process = next((p for p in running if p.reports is each), None)
            if process is None:
                counts["faults"].append("no process did a round for a minute")
                for stuck in running:
                    stuck.kill()
                return counts
            try:
                fault, info = process.reports.recv()
            except EOFError:
                process.process.join()
                counts["faults"].append(f"a process ended with {process.process.exitcode}")
                process.start()
                continue
            counts["rounds"] += 1
            process.left -= 1
            if fault:
                counts["faults"].append(fault)
            _add(counts, last.get(id(process)), info)
            last[id(process)] = info
            if draws.random() < 0.05:
                counts["damaged"] += _damage(Path(folder), draws)
            if process.left == 0:
                process.process.join()
                running.remove(process)
            elif process.left < process.deadline:
                process.kill()
                counts["kills"] += 1
                del last[id(process)]
                process.start()
    right, wrong = DiskCache(folder).verify()
    again = DiskCache(folder).verify()
    if again != (right, []):
        counts["faults"].append(f"after the wrong entries were set aside, {again[1]} are wrong")
    return counts | {"right entries": right, "wrong entries left": len(wrong), "seconds": time.monotonic() - start}


_COUNTED = ("hits", "misses", "stored", "wrong", "rejected", "failed", "trace_hits", "trace_misses")


def _add(counts: dict[str, Any], before: CompilationCacheInfo | None, now: CompilationCacheInfo) -> None:
    for name in _COUNTED:
        counts[name] += getattr(now, name) - (getattr(before, name) if before is not None else 0)


def main() -> int:
    """Torture a folder that is made for it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=1000, help="of each process")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counts = torture(os.path.join(folder, "programs"), options.processes, options.rounds, options.seed)
    faults = counts.pop("faults")
    print(", ".join([f"{name}: {round(count, 1)}" for name, count in counts.items()]))
    print("\n".join(faults[:20]) or "no error and no wrong result")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
