"""Fuzzing of the files that xtrace reads: exported functions, entries of the compilation cache, compiled functions.

    python -m tools.fuzz_files [--mutations 10000]

Each file is changed, cut, or replaced by random bytes. What reads it must raise a ValueError in words, or compile
again; it never gives a wrong result, and never ends the process.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import xtrace
import xtrace.numpy as jnp
from xtrace import export
from xtrace._src.api import serialized_programs
from xtrace._src.core import compilation_cache_settings as settings
from xtrace._src.export.serialization import DIGEST_MARK, DIGEST_SIZE
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


def fuzz_entries(count: int, draws: random.Random, outcomes: Outcomes) -> None:
    """Change entries of the compilation cache: the program is compiled again, with the right result."""
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "programs"
        with (
            settings.directory(str(folder)), settings.min_compile_seconds(0.0), warnings.catch_warnings(),
            settings.max_size(1 << 20),
        ):
            warnings.simplefilter("ignore")
            for i in range(count):
                result = xtrace.jit(lambda x: (x + 2) * 3 - x)(np.float32(i))
                assert float(result) == (i + 2) * 3 - i, (i, result)
                (path,) = folder.glob("*.program")
                path.write_bytes(mutate(path.read_bytes(), draws))
            info = xtrace.cache_info()
    outcomes["entries compiled again"] += count
    outcomes["entries set aside"] += info.wrong


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
    draws, outcomes = random.Random(options.seed), Outcomes()
    for fuzz, part in ((fuzz_exports, 0.4), (fuzz_executables, 0.39), (fuzz_entries, 0.2), (fuzz_programs, 0.01)):
        fuzz(round(options.mutations * part), draws, outcomes)
        print(os.linesep.join([f"{what}: {times}" for what, times in outcomes.items()]), flush=True)
    print("no crash, no wrong result, no error without words")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
