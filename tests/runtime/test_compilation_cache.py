"""Compiled programs that are kept on disk: found again, verified, evicted, and never trusted blindly."""

from __future__ import annotations

import contextlib
import os
import pickle
import stat
import subprocess
import sys
import textwrap
import time
import tracemalloc
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from xtrace._src.core.settings import compilation_cache_settings as cache_settings
from xtrace._src.runtime import compilation_cache, disk_cache
from xtrace._src.runtime.checked_bytes import WrongBytesError
from xtrace._src.runtime.compilation_cache import KeptCode
from xtrace._src.runtime.disk_cache import DiskCache, Entry, UnsafeDirectoryError
from xtrace.cli.main import main
from xtrace.experimental.compilation_cache.compilation_cache import reset_cache, set_cache_dir
from xtrace.experimental.serialize_executable import deserialize_and_load

KEY, OTHER = bytes(range(32)), bytes(32)
TREE = xtrace.tree.structure(((1,), {}))


@pytest.fixture
def cache(tmp_path):
    """Return the folder of the cache, which is in use; every program is stored."""
    folder = tmp_path / "programs"
    reset_cache()
    with (
        cache_settings.directory(str(folder)),
        cache_settings.min_compile_seconds(0.0),
    ):
        yield folder
    reset_cache()


def compute(number):
    """Compile and run a program of its own for each number; return its result, as after a start of the process."""
    xtrace.clear_caches()
    return float(xtrace.jit(lambda x: jnp.sqrt(x * 8) * number + x)(jnp.float32(2)))


def entries(folder):
    return sorted(folder.glob("*.program"))


def test_a_program_is_found_again(cache):
    first = compute(3)
    info = xtrace.cache_info()
    assert (info.hits, info.misses > 0, info.stored) == (0, True, info.misses)
    assert info.entries == len(entries(cache)) and info.size == sum(p.stat().st_size for p in entries(cache))
    assert compute(3) == first == 14
    after = xtrace.cache_info()
    assert after.hits >= 1 and after.stored == info.stored


def test_another_program_is_another_entry(cache):
    assert compute(3) != compute(4)
    assert compute(3.5) == 16
    assert xtrace.cache_info().stored >= 3


def test_options_and_settings_are_part_of_the_key(cache):
    def run(**options):
        xtrace.clear_caches()
        return xtrace.jit(lambda x: x @ x, compiler_options=options or None)(jnp.ones((4, 4)))

    run()
    stored = xtrace.cache_info().stored
    run(xla_cpu_enable_fast_math=True)
    assert xtrace.cache_info().stored == stored + 1
    run()
    assert xtrace.cache_info().stored == stored + 1


def test_source_lines_are_part_of_the_key_only_if_asked_for(cache):
    def on_lines(first):
        xtrace.clear_caches()
        code = compile("\n" * first + "def f(x): return x * 5 - 1", "lines.py", "exec")
        names = {}
        exec(code, names)
        xtrace.jit(names["f"])(jnp.float32(1))

    on_lines(0)
    stored = xtrace.cache_info().stored
    on_lines(7)
    assert xtrace.cache_info().stored == stored
    with cache_settings.include_locations(True):
        on_lines(0)
        on_lines(7)
    assert xtrace.cache_info().stored == stored + 2


def test_texts_that_look_like_locations_stay_in_the_key():
    one, other = 'a {s = "x loc(#loc1)"} loc(#loc1)', 'a {s = "x loc(#loc2)"} loc(#loc7)'
    assert compilation_cache._make_key(one, b"") != compilation_cache._make_key(other, b"")
    same = 'a {s = "x loc(#loc1)"} loc(#loc7)\n#loc7 = loc("f"(#loc))'
    assert compilation_cache._make_key(one, b"") == compilation_cache._make_key(same.split("\n")[0], b"")


def test_quick_compilations_and_small_programs_are_not_stored(cache):
    with cache_settings.min_compile_seconds(1000.0):
        compute(3)
    with cache_settings.min_entry_size(10**9):
        compute(4)
    assert xtrace.cache_info().stored == 0 and not entries(cache)


def test_the_cache_can_be_off(cache):
    with cache_settings.enabled(False):
        compute(3)
    assert not cache.exists()


def test_sharded_programs_are_found_again(cache):
    mesh = xtrace.make_mesh((8,), ("x",), axis_types=(xtrace.sharding.AxisType.Auto,))
    rows = xtrace.NamedSharding(mesh, xtrace.P("x"))

    def run():
        xtrace.clear_caches()
        x = xtrace.device_put(np.arange(64, dtype=np.float32).reshape(8, 8), rows)
        return xtrace.jit(lambda x: x.T @ x)(x), xtrace.jit(lambda x: x * 2)(x)

    first = run()
    hits = xtrace.cache_info().hits
    second = run()
    assert xtrace.cache_info().hits >= hits + 2
    for one, other in zip(first, second, strict=True):
        assert one.sharding == other.sharding
        np.testing.assert_array_equal(one, other)


def test_linear_algebra_is_found_by_another_process(cache):
    program = textwrap.dedent("""
        import numpy as np, xtrace, xtrace.numpy as jnp
        x = np.array([[4, 1], [1, 3]], np.float32)
        print(xtrace.jit(lambda x: jnp.linalg.inv(jnp.linalg.cholesky(x)) + jnp.linalg.svd(x)[1])(x).tolist())
        print(xtrace.cache_info().hits, xtrace.cache_info().stored)
    """)
    variables = {"XTRACE_COMPILATION_CACHE_DIR": str(cache), "XTRACE_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}

    def run():
        lines = subprocess.run(
            [sys.executable, "-c", program], env=os.environ | variables, capture_output=True, text=True, check=True
        ).stdout.split("\n")
        return lines[0], lines[1].split()

    values, (hits, stored) = run()
    assert hits == "0" and int(stored) >= 1
    assert run() == (values, [stored, "0"])


def call_python(*functions):
    """Return what a program gives that calls these functions in Python, compiled as after a start of the process."""
    xtrace.clear_caches()
    shape = xtrace.ShapeDtypeStruct((), np.float32)

    def calls(x):
        for function in functions:
            x = xtrace.pure_callback(lambda v, function=function: function(np.asarray(v)), shape, x)
        return x

    return float(xtrace.jit(calls)(jnp.float32(1)))


def test_programs_from_the_folder_call_the_functions_of_this_process(cache):
    first = call_python(lambda v: v + 1, lambda v: v * 3)
    info = xtrace.cache_info()
    assert first == 6 and info.not_cacheable == 0 and info.stored
    # Their text is the same.
    assert call_python(lambda v: v * 5, lambda v: v - 1) == 4
    after = xtrace.cache_info()
    assert (after.hits, after.stored) == (info.hits + 1, info.stored)
    assert call_python(lambda v: v + 1) == 2
    assert xtrace.cache_info().stored == info.stored + 1


def test_prints_of_programs_from_the_folder_are_in_order(cache, capsys):
    for start in (0, 10):
        xtrace.clear_caches()

        @xtrace.jit
        def count(x):
            for i in range(3):
                xtrace.debug.print("{} {}", x, i, ordered=True)
            return x + 1

        for x in (start, start + 1):
            count(x)
        xtrace.effects_barrier()
        lines = capsys.readouterr().out.split()
        assert lines == [str(n) for x in (start, start + 1) for i in range(3) for n in (x, i)]
    assert xtrace.cache_info().hits and not xtrace.cache_info().not_cacheable


def test_errors_of_functions_in_programs_from_the_folder(cache):
    def fail(v):
        raise KeyError("no such value")

    assert call_python(lambda v: v + 1) == 2
    for _ in range(2):
        with pytest.raises(Exception, match="no such value"):
            call_python(fail)
    assert xtrace.cache_info().hits == 2


CALLS_PYTHON = """
import numpy as np, xtrace, xtrace.numpy as jnp, sys
shape = xtrace.ShapeDtypeStruct((2,), np.float32)
f = lambda x: xtrace.pure_callback(lambda v: np.asarray(v) * np.float32(sys.argv[1]), shape, x) + 1
print(np.asarray(xtrace.jit(f)(np.ones(2, "f"))).sum(), xtrace.cache_info().hits, "jaxlib.mlir.ir" in sys.modules)
"""


def test_another_process_calls_its_own_functions(tmp_path):
    environment = os.environ | {
        "XTRACE_COMPILATION_CACHE_DIR": str(tmp_path / "programs"),
        "XTRACE_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    outputs = [
        subprocess.run(
            [sys.executable, "-c", CALLS_PYTHON, factor], env=environment, capture_output=True, text=True, check=True
        ).stdout.split()
        for factor in ("2", "5")
    ]
    # MLIR's bindings are loaded to compile such a program, and not to load it.
    assert outputs == [["6.0", "0", "True"], ["12.0", "1", "False"]]


def test_a_failed_compilation_is_not_stored(cache):
    with pytest.raises(Exception, match="no_such_option"):
        xtrace.jit(lambda x: x + 11, compiler_options={"no_such_option": 1})(jnp.float32(1))
    xtrace.jit(lambda x: x + 11)(jnp.float32(1))
    info = xtrace.cache_info()
    assert info.entries == info.stored


DAMAGES = {
    "truncated": lambda content: content[:-7],
    "empty": lambda content: b"",
    "header only": lambda content: content[:40],
    "longer": lambda content: content + b"\0",
    "a flipped bit": lambda content: content[:200] + bytes([content[200] ^ 4]) + content[201:],
    "another version": lambda content: content[:8] + b"\x09\0\0\0" + content[12:],
    "no entry": lambda content: b"#!/bin/sh\n" * 100,
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_wrong_entry_is_moved_aside_and_compiled_again(cache, name):
    expected = compute(3)
    count = len(entries(cache))
    for path in entries(cache):
        path.write_bytes(DAMAGES[name](path.read_bytes()))
    with pytest.warns(UserWarning, match="is wrong, is moved aside, and is compiled again"):
        assert compute(3) == expected
    info = xtrace.cache_info()
    assert info.wrong >= 1 and len(list((cache / "quarantine").iterdir())) == info.wrong
    assert len(entries(cache)) == count
    hits = info.hits
    assert compute(3) == expected and xtrace.cache_info().hits > hits


@pytest.mark.parametrize(
    "payload", [b"", b"no", b"no program", KeptCode(None, zlib.compress(b"no program")).encode()], ids=len
)
def test_what_xla_refuses_is_compiled_again(cache, payload):
    expected = compute(3)
    shared = DiskCache(str(cache))
    for path in entries(cache):
        shared.write(bytes.fromhex(path.stem), Entry(payload, 1.0))
    with pytest.warns(UserWarning, match="XLA refused a program"):
        assert compute(3) == expected
    assert xtrace.cache_info().rejected == len(list((cache / "quarantine").iterdir())) >= 1
    hits = xtrace.cache_info().hits
    assert compute(3) == expected and xtrace.cache_info().hits > hits


@pytest.mark.parametrize("payload", [b"", b"no", (9).to_bytes(8, "little") + bytes(8), b"\xff" * 40], ids=len)
def test_code_that_is_shorter_than_it_says_is_wrong(payload):
    with pytest.raises(WrongBytesError, match=f"the {len(payload)} bytes are no compiled program"):
        KeptCode.decode(payload)


def test_few_bytes_do_not_expand_to_many(cache, monkeypatch):
    monkeypatch.setattr(compilation_cache, "_MAX_CODE", 1 << 20)
    expected = compute(3)
    bomb = zlib.compress(bytes(1 << 26))
    assert len(bomb) < 1 << 17
    for payload in (bomb, bomb[: len(bomb) // 2], zlib.compress(b"x") + b"more"):
        tracemalloc.start()
        with pytest.raises(WrongBytesError, match="no compressed one of less than 1048576 bytes"):
            KeptCode(None, payload).read()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1 << 22
    for path in entries(cache):
        DiskCache(str(cache)).write(bytes.fromhex(path.stem), Entry(KeptCode(None, bomb).encode(), 1.0))
    with pytest.warns(UserWarning, match="XLA refused a program"):
        assert compute(3) == expected


def test_a_huge_entry_is_not_read(cache):
    expected = compute(3)
    (path, *_) = entries(cache)
    with open(path, "r+b") as file:
        # Nearly all of it is a hole, which takes no place on the disk.
        file.truncate(1 << 40)
    with pytest.warns(UserWarning, match="has 1099511627776 bytes, more than any entry"):
        assert compute(3) == expected
    assert xtrace.cache_info().wrong == 1


def test_an_entry_that_is_a_pipe_is_refused(tmp_path):
    shared = DiskCache(str(tmp_path / "programs"))
    shared.write(OTHER, Entry(b"payload", 1.0))
    os.mkfifo(tmp_path / "programs" / f"{KEY.hex()}.program", 0o600)
    with pytest.raises(UnsafeDirectoryError, match="is of another kind"):
        shared.read(KEY)


class Opener:
    """An object whose pickle opens a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_no_pickle_in_a_file_is_read(cache, tmp_path):
    expected = compute(3)
    pickled = pickle.dumps(Opener(str(tmp_path / "opened")))
    shared = DiskCache(str(cache))
    for payload in (pickled, KeptCode(None, pickled).encode(), KeptCode(pickled, zlib.compress(pickled)).encode()):
        for path in entries(cache):
            shared.write(bytes.fromhex(path.stem), Entry(payload, 1.0))
        with pytest.warns(UserWarning, match="XLA refused a program"):
            reset_cache()
            assert compute(3) == expected
    for read in (xtrace.export.deserialize, lambda data: deserialize_and_load(data, TREE, TREE)):
        with pytest.raises(ValueError, match="deserialize"):
            read(pickled)
    assert not (tmp_path / "opened").exists()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_is_refused(tmp_path, mode):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(UnsafeDirectoryError, match=r"can be written by others .* chmod go-w"):
        DiskCache(str(folder))


def test_a_folder_that_others_can_write_later_is_not_written(tmp_path):
    shared = DiskCache(str(tmp_path / "programs"))
    shared.write(KEY, Entry(b"payload", 1.0))
    (tmp_path / "programs").chmod(0o777)
    with pytest.raises(UnsafeDirectoryError, match="can be written by others"):
        shared.write(OTHER, Entry(b"payload", 1.0))
    assert len(list((tmp_path / "programs").iterdir())) == 1


def test_what_is_written_is_for_this_user_alone(tmp_path):
    before = os.umask(0)
    try:
        DiskCache(str(tmp_path / "programs")).write(KEY, Entry(b"payload", 1.0))
    finally:
        os.umask(before)
    folder = tmp_path / "programs"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()] == [0o600]


def test_no_link_is_written_through(tmp_path, monkeypatch):
    shared = DiskCache(str(tmp_path / "programs"))
    shared.write(OTHER, Entry(b"payload", 1.0))
    # The name of the temporary file is known to another process.
    monkeypatch.setattr(os, "urandom", bytes)
    temporary = tmp_path / "programs" / f"{KEY.hex()}.program.{os.getpid()}.{bytes(8).hex()}.temporary"
    for plant in (temporary.touch, lambda: temporary.symlink_to(tmp_path / "there")):
        plant()
        with pytest.raises(FileExistsError):
            shared.write(KEY, Entry(b"payload", 1.0))
        assert shared.read(KEY) is None and not (tmp_path / "there").exists()


def test_an_entry_of_another_program_or_version_is_moved_aside(tmp_path):
    shared, path = DiskCache(str(tmp_path)), tmp_path / f"{KEY.hex()}.program"
    shared.write(OTHER, Entry(b"payload", 1.0))
    content = (tmp_path / f"{OTHER.hex()}.program").read_bytes()
    form = disk_cache._FORMATS[".program"]
    later = form._replace(version=form.version + 1).encode(*form.decode(content))
    kind = disk_cache._FORMATS[".trace"].encode(*form.decode(content))
    for other, words in ((content, "entry of another program"), (later, "in version"), (kind, "no compiled program")):
        path.write_bytes(other)
        path.chmod(0o600)
        with pytest.raises(WrongBytesError, match=words):
            shared.read(KEY)
        assert not path.exists()


def test_a_link_to_a_folder_is_refused(tmp_path):
    (tmp_path / "there").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "there")
    with pytest.raises(UnsafeDirectoryError, match="is a symbolic link"):
        DiskCache(str(tmp_path / "link"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_folders_and_entries_of_other_users_are_refused(tmp_path):
    folder = tmp_path / "programs"
    shared = DiskCache(str(folder))
    shared.write(KEY, Entry(b"payload", 1.0))
    os.chown(folder / f"{KEY.hex()}.program", 65534, 65534)
    with pytest.raises(UnsafeDirectoryError, match="belongs to the user 65534"):
        shared.read(KEY)
    os.chown(folder, 65534, 65534)
    with pytest.raises(UnsafeDirectoryError, match="belongs to the user 65534"):
        DiskCache(str(folder))


def test_an_entry_that_is_a_link_or_can_be_written_by_others_is_refused(tmp_path):
    shared = DiskCache(str(tmp_path / "programs"))
    shared.write(KEY, Entry(b"payload", 1.0))
    path = tmp_path / "programs" / f"{KEY.hex()}.program"
    path.chmod(0o666)
    with pytest.raises(UnsafeDirectoryError, match="can be written by others"):
        shared.read(KEY)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeDirectoryError, match="is a symbolic link"):
        shared.read(KEY)


def test_a_refused_folder_is_a_warning_and_the_program_runs(cache):
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.warns(UserWarning, match="the compilation cache could not be opened: .*can be written by others"):
        assert compute(3) == 14
    assert xtrace.cache_info.__module__ == "xtrace"
    xtrace.clear_caches()
    with cache_settings.raise_errors(True), pytest.raises(OSError, match="written by others"):
        xtrace.jit(lambda x: x + 13)(jnp.float32(1))


def test_a_folder_that_cannot_be_written_is_a_warning(cache, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.warns(UserWarning, match="the compilation cache could not be written: .*No space left"):
        compute(3)
    assert xtrace.cache_info().stored == 0
    assert not list(cache.iterdir())


def test_a_folder_on_a_disk_for_reading_only_is_read(cache, monkeypatch):
    expected = compute(3)

    def refuse(*_, **__):
        raise OSError(30, "Read-only file system")

    for name in ("utime", "rename", "unlink", "makedirs", "mkdir"):
        monkeypatch.setattr(os, name, refuse)
    hits = xtrace.cache_info().hits
    assert compute(3) == expected and xtrace.cache_info().hits > hits and not xtrace.cache_info().failed
    # A damaged entry stays where it is.
    entries(cache)[0].write_bytes(b"wrong")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert compute(3) == expected
    texts = " ".join([str(one.message) for one in caught])
    assert "is wrong" in texts and "could not be written: [Errno 30] Read-only file system" in texts
    assert entries(cache)[0].read_bytes() == b"wrong"


def test_an_entry_is_stored_where_others_cannot_be_evicted(tmp_path, monkeypatch):
    shared = DiskCache(str(tmp_path))

    def refuse(_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "scandir", refuse)
    assert shared.write(KEY, Entry(b"payload", 1.0), max_size=1000)
    assert shared.read(KEY) == Entry(b"payload", 1.0)


FULL_DISK = """
import os, resource, sys, warnings
import numpy as np
import xtrace
f = xtrace.jit(lambda x: x * 5 + 1)
# Files of more bytes cannot be written: a write stops in the middle, as on a full disk.
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert float(f(np.float32(2))) == 11
assert ["could not be written" in str(one.message) for one in caught] == [True], caught
assert os.listdir(sys.argv[1]) == [] and xtrace.cache_info().failed == 1
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
xtrace.clear_caches()
assert float(f(np.float32(2))) == 11 and xtrace.cache_info().stored == 1
"""


def test_a_disk_that_is_full_in_the_middle_of_an_entry_leaves_no_part_of_it(tmp_path):
    variables = {
        "XTRACE_COMPILATION_CACHE_DIR": str(tmp_path / "programs"), "XTRACE_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"
    }
    ran = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "programs")], env=os.environ | variables, capture_output=True,
        text=True, check=False,
    )
    assert ran.returncode == 0, ran.stderr


def test_the_programs_used_longest_ago_are_evicted(tmp_path):
    shared = DiskCache(str(tmp_path))
    size = 1000
    for i in range(4):
        shared.write(bytes([i] * 32), Entry(bytes(size), 1.0), max_size=3500)
        os.utime(tmp_path / f"{bytes([i] * 32).hex()}.program", (i + 1, i + 1))
    assert shared.read(bytes([0] * 32)) is None
    # Reading marks an entry as used.
    assert shared.read(bytes([1] * 32)) is not None
    shared.write(bytes([4] * 32), Entry(bytes(size), 1.0), max_size=3500)
    assert shared.read(bytes([1] * 32)) is not None and shared.read(bytes([2] * 32)) is None
    assert not shared.write(bytes([5] * 32), Entry(bytes(5 * size), 1.0), max_size=3500)
    assert shared.read(bytes([5] * 32)) is None and shared.read(bytes([1] * 32)) is not None


def test_entries_that_other_processes_delete_meanwhile_are_left_out(tmp_path, monkeypatch):
    shared = DiskCache(str(tmp_path))
    for key in (KEY, OTHER):
        shared.write(key, Entry(b"payload", 1.0))
    scan, unlink = os.scandir, os.unlink

    class Gone:
        def __init__(self, entry):
            self.name, self.path = entry.name, entry.path

        def stat(self, **_):
            raise FileNotFoundError(self.path)

    @contextlib.contextmanager
    def scan_late(path):
        with scan(path) as entries:
            first, *others = entries
            yield [Gone(first), *others]

    deleted = []

    def unlink_late(path):
        if not deleted:
            unlink(path)
        deleted.append(path)
        unlink(path)

    monkeypatch.setattr(os, "scandir", scan_late)
    assert len(list(shared.files())) == 1 and shared.verify() == (1, [])
    monkeypatch.setattr(os, "scandir", scan)
    monkeypatch.setattr(os, "unlink", unlink_late)
    assert shared.clear() == 1 and not list(tmp_path.iterdir())


def test_verification_marks_no_entry_as_used(tmp_path):
    shared = DiskCache(str(tmp_path))
    shared.write(KEY, Entry(b"payload", 1.0))
    path = tmp_path / f"{KEY.hex()}.program"
    os.utime(path, (5, 5))
    (tmp_path / "notes.program").write_bytes(b"no entry")
    assert shared.verify() == (1, []) and path.stat().st_mtime == 5


def test_a_right_entry_that_came_later_is_not_moved_aside(tmp_path):
    shared = DiskCache(str(tmp_path))
    shared.write(KEY, Entry(b"first", 1.0))
    inode = (tmp_path / f"{KEY.hex()}.program").stat().st_ino
    shared.write(KEY, Entry(b"second", 1.0))
    shared.set_aside(KEY, inode)
    assert shared.read(KEY) == Entry(b"second", 1.0)


def test_the_state_of_a_folder_that_is_not_there_makes_none(cache):
    assert xtrace.cache_info().entries == 0 and not cache.exists()
    with cache_settings.enabled(False):
        assert xtrace.cache_info().directory is None


def test_files_of_killed_writers_are_deleted(tmp_path):
    shared = DiskCache(str(tmp_path))
    for name, age in (("old", 7200), ("ahead", -7200), ("new", 0)):
        path = tmp_path / f"{name}.temporary"
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age,) * 2)
    assert shared.write(KEY, Entry(b"payload", 1.0))
    assert [p.name for p in tmp_path.glob("*.temporary")] == ["new.temporary"]


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_no_change_of_an_entry_is_taken_for_the_entry(tmp_path_factory, data):
    shared = DiskCache(str(tmp_path_factory.mktemp("programs")))
    shared.write(KEY, Entry(bytes(range(256)), 2.5))
    path = os.path.join(shared.directory, f"{KEY.hex()}.program")
    with open(path, "rb") as file:
        content = bytearray(file.read())
    before = bytes(content)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        kind = data.draw(st.sampled_from(["flip", "cut", "insert", "swap"]))
        if kind == "flip":
            content[place] ^= data.draw(st.integers(1, 255))
        elif kind == "cut":
            del content[place : place + data.draw(st.integers(1, 40))]
        elif kind == "insert":
            content[place:place] = data.draw(st.binary(min_size=1, max_size=40))
        else:
            content[:] = content[place:] + content[:place]
        content = content or bytearray(b"x")
    with open(path, "wb") as file:
        file.write(content)
    if bytes(content) == before:
        assert shared.read(KEY) == Entry(bytes(range(256)), 2.5)
    else:
        with pytest.raises(WrongBytesError):
            shared.read(KEY)
        assert shared.read(KEY) is None


WRITERS = """
import os, signal, sys, time
from xtrace._src.runtime.disk_cache import DiskCache, Entry
folder, count = sys.argv[1], int(sys.argv[2])
payloads = {bytes([i] * 32): bytes([i]) * (500 * (i + 1)) for i in range(6)}

def write(seed):
    shared = DiskCache(folder)
    for round in range(150):
        key = bytes([(seed + round) % 6] * 32)
        entry = shared.read(key)
        assert entry is None or entry.payload == payloads[key], (key, len(entry.payload))
        shared.write(key, Entry(payloads[key], 1.0), max_size=9000)
    if seed % 2:
        signal.pause()

writers = {}
for seed in range(count):
    pid = os.fork()
    if not pid:
        try:
            write(seed)
        except BaseException as error:
            print(seed, repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    writers[pid] = seed
# Half of them are killed, while they write or after.
for pid, seed in writers.items():
    if seed % 2:
        time.sleep(0.01 * (seed % 7))
        os.kill(pid, signal.SIGKILL)
codes = {writers[pid]: os.waitpid(pid, 0)[1] for pid in writers}
assert codes == {seed: signal.SIGKILL if seed % 2 else 0 for seed in codes}, codes
"""


def test_forty_writers_and_kills_leave_no_wrong_entry(tmp_path):
    folder = tmp_path / "programs"
    ran = subprocess.run(
        [sys.executable, "-c", WRITERS, str(folder), "40"], capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    shared = DiskCache(str(folder))
    right, wrong = shared.verify()
    assert right >= 1 and wrong == []
    assert shared.clear() >= right and list(folder.glob("*")) == []


def test_commands_show_verify_and_clear_the_folder(cache, capsys):
    compute(3)
    count = len(entries(cache))
    assert main(["cache", "--directory", str(cache)]) == 0
    assert f"{count} program{'s' * (count > 1)}, " in capsys.readouterr().out
    assert main(["cache", "--directory", str(cache), "--verify"]) == 0
    assert "all verified" in capsys.readouterr().out
    entries(cache)[0].write_bytes(b"wrong")
    assert main(["cache", "--directory", str(cache), "--verify"]) == 1
    assert f"{entries(cache)[0].name if count > 1 else ''}" in capsys.readouterr().err or count == 1
    assert main(["cache", "--directory", str(cache), "--clear"]) == 0
    assert " deleted" in capsys.readouterr().out and not entries(cache)


def test_the_command_needs_a_folder(capsys):
    assert main(["cache"]) == 2
    assert "XTRACE_COMPILATION_CACHE_DIR" in capsys.readouterr().err


def test_listeners_hear_of_hits_and_misses(cache):
    events, durations = [], []
    xtrace.monitoring.register_event_listener(lambda event, **_: events.append(event))
    xtrace.monitoring.register_event_duration_secs_listener(lambda event, seconds, **_: durations.append(event))
    try:
        compute(3)
        compute(3)
    finally:
        xtrace.monitoring.clear_event_listeners()
    assert {"/jax/compilation_cache/cache_hits", "/jax/compilation_cache/cache_misses"} <= {*events}
    assert "/jax/compilation_cache/compile_time_saved_sec" in durations


def test_set_cache_dir(tmp_path):
    set_cache_dir(tmp_path / "there")
    try:
        assert xtrace.config.jax_compilation_cache_dir == str(tmp_path / "there")
    finally:
        xtrace.config.update("jax_compilation_cache_dir", None)
    with pytest.raises(TypeError, match="path must be the path of a folder, got 3"):
        set_cache_dir(3)
