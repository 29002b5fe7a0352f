"""Fuzzing of the files that xtrace reads: exported functions, entries of its folder, compiled functions, arrays.

    python -m tools.fuzz_files [--mutations 10000]

Each file is changed, cut, or replaced by random bytes. What reads it must raise a ValueError in words, or compile
again; it never gives a wrong result, and never ends the process. A part of the changed entries get a right checksum, so
that the code behind it reads them, too; only XLA's own code is not given to XLA, which would run it.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import logging
import math
import random
import resource
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import xtrace
import xtrace.numpy as jnp
from xtrace import export
from xtrace._src.api.compilation import serialized_programs
from xtrace._src.api.jit import static_arguments
from xtrace._src.api.kept_traces.kept_traces import KeptTrace
from xtrace._src.api.tracing import abstract_leaves
from xtrace._src.core.avals import aval_of_value
from xtrace._src.core.settings import compilation_cache_settings as settings
from xtrace._src.export.serialization import DIGEST_MARK, DIGEST_SIZE
from xtrace._src.runtime.checked_bytes import WrongBytesError
from xtrace._src.runtime.compilation_cache import KeptCode
from xtrace._src.runtime.disk_cache import TRACE, DiskCache, Entry
from xtrace._src.serialization.zarr import ZarrArray, open_array
from xtrace._src.xla.executables import executables
from xtrace._src.xla.executables.stripped_executables import strip_executable
from xtrace.experimental.serialize_executable import deserialize_and_load, serialize

X = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)

Outcomes = collections.Counter[str]


def mutate(content: bytes, draws: random.Random) -> bytes:
    """Return other bytes: with bits turned, a part cut out, put in, doubled or overwritten, or random ones."""
    changed = bytearray(content)
    while changed == content:
        place, size = draws.randrange(len(content)), draws.randint(1, 64)
        match draws.randrange(8):
            case 0 | 1:
                for _ in range(draws.choice((1, 1, 1, 4))):
                    changed[draws.randrange(len(changed))] ^= 1 << draws.randrange(8)
            case 2:
                del changed[place:]
            case 3:
                del changed[place : place + size]
            case 4:
                changed[place:place] = draws.randbytes(size)
            case 5:
                changed[place:place] = changed[place : place + size]
            case 6:
                changed[place : place + size] = bytes([draws.choice((0, 1, 127, 255))]) * size
            case 7:
                changed[:] = draws.randbytes(draws.randint(0, 400))
        changed = changed or bytearray(b"\0")
    return bytes(changed)


def factorize(x: Any) -> Any:
    """Compute something with linear algebra, a loop, and several results."""
    return {"l": jnp.linalg.cholesky(x), "s": xtrace.lax.fori_loop(0, 3, lambda i, c: c * 2 + i, x.sum())}


def _refusal(read: Callable[[], Any], start: str) -> str | None:
    """Return None if ``read()`` succeeds, otherwise its message, which must begin with `start` and be one in words."""
    try:
        read()
    except ValueError as error:
        assert str(error).startswith(start), error
        return str(error)
    return None


def fuzz_exports(count: int, draws: random.Random, outcomes: Outcomes) -> None:
    """Change files of exported functions: with their digest, none is read; without one, as jax's, many are refused."""
    shape = export.symbolic_shape("2*n + floordiv(m, 2), n, m", constraints=["mod(m, 2) == 0"])
    files = [
        bytes(exported.serialize(vjp_order=1)) for exported in (
            export.export(xtrace.jit(factorize), platforms=["cpu", "cuda"])(X),
            export.export(xtrace.jit(lambda x: jnp.cumsum(x, 1)))(xtrace.ShapeDtypeStruct(shape, "float32")),
        )
    ]
    for i in range(count):
        saved = files[i // 2 % 2]
        bare = saved[:4] + bytes(4) + saved[8 : -DIGEST_SIZE - len(DIGEST_MARK)]
        if i % 2:
            changed = mutate(saved, draws)
            message = _refusal(lambda data=changed: export.deserialize(data), "deserialize: ")
            assert message is not None
            outcomes["exports refused by their digest"] += 1
            continue
        changed = mutate(bare, draws)
        try:
            found = export.deserialize(changed)
        except ValueError as error:
            assert str(error).startswith("deserialize: "), error
            outcomes["exports without digest refused"] += 1
            continue
        outcomes["exports without digest read"] += 1
        # What was changed is in the program or a name; programs without a digest are read by another process.
        assert not found._is_intact


def fuzz_programs(count: int, draws: random.Random, outcomes: Outcomes) -> None:
    """Change the text and the bytecode of modules; another process reads each."""
    text = xtrace.jit(factorize).lower(X).as_text().encode()
    artifact = export.export(xtrace.jit(factorize))(X).mlir_module_serialized
    for i in range(count):
        changed = mutate(text if i % 2 else artifact, draws)
        try:
            xtrace.from_stablehlo(changed)
        except ValueError as error:
            assert str(error).startswith(("from_stablehlo: ", "deserialize: ")), error
            outcomes["modules refused"] += 1
        else:
            outcomes["modules read"] += 1


# The changed entries for each program that is compiled again, which takes most of the time.
_ENTRIES_FOR_EACH_COMPILATION = 40


def _example(x: Any) -> Any:
    return {"a": (x + 2) * 3 - x, "b": [x]}


@contextlib.contextmanager
def _filled_folder() -> Iterator[Path]:
    """Yield a folder, in use, with the program and the trace of `_example`."""
    with tempfile.TemporaryDirectory() as root, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(root) / "programs"
        with (
            settings.directory(str(folder)), settings.min_compile_seconds(0.0), settings.max_size(1 << 20),
            settings.trace_cache(True),
        ):
            _run_example(0)
            yield folder


def _run_example(x: int) -> None:
    xtrace.clear_caches()
    result = xtrace.jit(_example)(np.float32(x))
    assert float(result["a"]) == (x + 2) * 3 - x and float(result["b"][0]) == x, (x, result)


def fuzz_entries(count: int, draws: random.Random, outcomes: Outcomes) -> None:
    """Change entries of the folder: none is read, all are set aside, and programs are compiled again."""
    with _filled_folder() as folder:
        cache = DiskCache(str(folder))
        paths = [*folder.glob("*.program"), *folder.glob("*.trace")]
        assert len(paths) == 2
        right = [path.read_bytes() for path in paths]
        for i in range(count):
            path, content = paths[i % 2], right[i % 2]
            path.write_bytes(mutate(content, draws))
            if i % _ENTRIES_FOR_EACH_COMPILATION == 0:
                paths[1].write_bytes(right[1])
                _run_example(i)
                outcomes["programs compiled again"] += 1
                continue
            try:
                cache.read(bytes.fromhex(path.stem), kind=path.suffix)
            except WrongBytesError:
                assert not path.exists()
                outcomes["entries set aside"] += 1
            else:
                raise AssertionError(f"{path.name} was changed and read")


def fuzz_signed_entries(count: int, draws: random.Random, outcomes: Outcomes) -> None:
    """Change entries and give them a right checksum: what reads them gives an error in words, or the right program."""
    code = executables.serialize_executable(xtrace.jit(factorize).lower(X).compile().runtime_executable())
    kept = KeptCode(strip_executable(code), zlib.compress(code, 1))
    payload = kept.encode()
    with _filled_folder() as folder:
        (path,) = folder.glob("*.trace")
        cache, key = DiskCache(str(folder)), bytes.fromhex(path.stem)
        entry = cache.read(key, kind=TRACE)
        assert entry is not None
        size = int.from_bytes(entry.payload[:8], "little")
        head = entry.payload[8 : 8 + size]
        for i in range(count):
            if i % 3 == 0:
                # The machine code is XLA's: other bytes of it are another program.
                try:
                    whole = KeptCode.decode(mutate(payload, draws)).read()
                except WrongBytesError:
                    outcomes["signed programs refused"] += 1
                else:
                    assert whole == code
                    outcomes["signed programs with the right code"] += 1
                strip_executable(mutate(code, draws))
                continue
            if i % 3 == 1:
                changed = mutate(head, draws)
            else:
                record = json.loads(head)
                name = draws.choice(sorted(record))
                record[name] = draws.choice([None, -1, 1 << 70, "x", [], {}, [[[]]], _other(record[name], draws)])
                changed = json.dumps(record).encode()
            content = len(changed).to_bytes(8, "little") + changed + entry.payload[8 + size :]
            cache.write(key, Entry(mutate(content, draws) if i % 24 == 1 else content, 1.0), kind=TRACE)
            xtrace.clear_caches()
            jitted: Any = xtrace.jit(_example)._xtrace_jitted  # type: ignore[attr-defined]
            static, leaves, in_tree = static_arguments.flatten(_example, jitted.static, (np.float32(1),), {})
            avals = abstract_leaves(_example, static, leaves, in_tree, aval_of_value)
            found = KeptTrace(cache, jitted, static, in_tree, avals, leaves).load()
            outcomes[f"signed traces {'refused' if found is None else 'read'}"] += 1


def fuzz_arrays(count: int, draws: random.Random, outcomes: Outcomes) -> None:
    """Change files of stored arrays: an error in words, or an array."""
    with tempfile.TemporaryDirectory() as root:
        compressors: list[tuple[str, int] | None] = [("zlib", 1), ("bz2", 1), ("gzip", 1), None]
        arrays = [ZarrArray(f"{root}/{i}", X.shape, X.dtype, (2, 3), each) for i, each in enumerate(compressors)]
        for each in arrays:
            each.write_metadata()
            each.write((0, 0), X)
        for i in range(count):
            folder = arrays[i % 4].folder
            path = Path(folder, draws.choice([".zarray", ".zarray", "0.0", "1.0"]))
            right = path.read_bytes()
            path.write_bytes(mutate(right, draws))
            try:
                opened = open_array(folder)
                if math.prod(opened.shape) < 1000 and len(opened.shape) == 2 and math.prod(opened.chunks) < 10**6:
                    opened.read((0, 0), opened.shape)
                outcomes["arrays read"] += 1
            except (ValueError, NotImplementedError) as error:
                assert str(error).startswith("array_serialization: "), error
                outcomes["arrays refused"] += 1
            path.write_bytes(right)


def fuzz_executables(count: int, draws: random.Random, outcomes: Outcomes) -> None:
    """Change compiled functions as bytes: none is loaded. Heads with a right checksum are refused, or harmless."""
    data, *trees = serialize(xtrace.jit(factorize).lower(X).compile())
    head, payload = serialized_programs._FORMAT.decode(data)
    for i in range(count):
        if i % 4:
            changed = mutate(data, draws)
            message = _refusal(lambda data=changed: deserialize_and_load(data, *trees), "deserialize_and_load: ")
            assert message is not None and "Compile it here" in message
            outcomes["executables refused by their checksum"] += 1
            continue
        # Of another release, machine or platform, or written by someone else.
        record = json.loads(head)
        key = draws.choice(sorted(record))
        record[key] = draws.choice([None, -1, 3, "x", [], {}, [[0]], {"platform": "cpu"}, _other(record[key], draws)])
        changed = serialized_programs._FORMAT.encode(json.dumps(record).encode(), payload)
        if _refusal(lambda data=changed: deserialize_and_load(data, *trees), "deserialize_and_load: ") is None:
            outcomes["executables with another head loaded"] += 1
        else:
            outcomes["executables refused by their head"] += 1


def _other(value: Any, draws: random.Random) -> Any:
    """Return a value of JSON with one part changed."""
    if isinstance(value, dict) and value:
        key = draws.choice(sorted(value))
        return value | {key: _other(value[key], draws)}
    if isinstance(value, list) and value:
        place = draws.randrange(len(value))
        return [*value[:place], _other(value[place], draws), *value[place + 1 :]]
    return draws.choice([f"{value}!", 7, None, []])


def main() -> int:
    """Fuzz, and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # Traces that cannot be read are logged.
    logging.getLogger("xtrace").setLevel(logging.ERROR)
    for fuzz, part in _PARTS.items():
        start, count, outcomes = time.monotonic(), round(options.mutations * part), Outcomes()
        fuzz(count, random.Random(options.seed), outcomes)
        print(f"{fuzz.__name__}: {count} in {time.monotonic() - start:.0f} s", flush=True)
        print("".join([f"  {what}: {times}\n" for what, times in outcomes.items()]), end="", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    assert peak < _MOST_MEGABYTES, f"{peak} MB of memory"
    print(f"no crash, no wrong result, no error without words; at most {peak} MB of memory")
    return 0


_Fuzz = Callable[[int, random.Random, Outcomes], None]
# The parts of all mutations. A program costs a process that reads it.
_PARTS: dict[_Fuzz, float] = {
    fuzz_exports: 0.3, fuzz_executables: 0.25, fuzz_entries: 0.25, fuzz_signed_entries: 0.12, fuzz_arrays: 0.077,
    fuzz_programs: 0.003,
}
_MOST_MEGABYTES = 2000


if __name__ == "__main__":
    raise SystemExit(main())
