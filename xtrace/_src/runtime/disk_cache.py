"""A folder of compiled programs and traces, one file for each entry, which many processes share.

An entry is written under a temporary name and renamed, so a reader never sees an incomplete one. Each read verifies its
checksum; a damaged entry is moved aside. A compiled program is code that runs with the user's rights, so a folder or an
entry that another user could write is refused.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import struct
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from xtrace._src.runtime.checked_bytes import Format, WrongBytesError

# The kinds of entries, which are the endings of file names.
PROGRAM, TRACE = ".program", ".trace"
_FORMATS = {
    PROGRAM: Format(b"xtrace\x00c", 3, "compiled program"), TRACE: Format(b"xtrace\x00t", 1, "trace of a program"),
}
# The key, and the seconds that the compilation took.
_HEAD = struct.Struct("<32sd")
_NAME = re.compile(r"([0-9a-f]{64})(\.program|\.trace)")
_TEMPORARY = ".temporary"
_QUARANTINE = "quarantine"
# A temporary file that is older was left behind by a process that was killed.
_ABANDONED_SECONDS = 3600.0
# An entry has two forms of a program, each a protocol buffer of less than two gigabytes.
_MAX_BYTES = 2 << 31


class UnsafeDirectoryError(OSError):
    """Another user could write to the folder of the cache, or to an entry."""


class Entry(NamedTuple):
    """The bytes of a compiled program or a trace, and the seconds that it took to make."""

    payload: bytes
    seconds: float


class DiskCache:
    """The cache in the folder `directory`, which is made when the first entry is written.

    Raises `UnsafeDirectoryError` for a folder that another user could write.
    """

    def __init__(self, directory: str) -> None:
        self.directory = os.path.abspath(os.path.expanduser(directory))
        with contextlib.suppress(FileNotFoundError):
            self._check_directory()
        self._has_old_files = True

    def read(self, key: bytes, use: bool = True, kind: str = PROGRAM) -> Entry | None:
        """Return the entry of `key`, a SHA-256 digest; None if there is none. use: whether this counts as a use.

        Raises `WrongBytesError` for a damaged entry, which is moved aside, `UnsafeDirectoryError` for an entry that
        another user could write, and OSError.
        """
        path = self._path(key, kind)
        try:
            # Opening a pipe would wait for a writer.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            if os.path.islink(path):
                raise UnsafeDirectoryError(f"{path} is a symbolic link, and no entry of the cache") from None
            raise error
        with os.fdopen(descriptor, "rb") as file:
            state = os.fstat(descriptor)
            _check_owner(state, path, stat.S_ISREG, "an entry of the compilation cache is a file")
            is_readable = state.st_size <= _MAX_BYTES
            content = file.read() if is_readable else b""
            # The least recently used entries are evicted first.
            if use:
                with contextlib.suppress(OSError):
                    os.utime(descriptor)
        try:
            if not is_readable:
                raise WrongBytesError(f"{path} has {state.st_size} bytes, more than any entry")
            return _decode(content, key, kind)
        except WrongBytesError:
            self.set_aside(key, state.st_ino, kind)
            raise

    def has(self, key: bytes) -> bool:
        """Whether there is a program for a key, damaged or not."""
        return os.path.lexists(self._path(key, PROGRAM))

    def write(self, key: bytes, entry: Entry, max_size: int = -1, kind: str = PROGRAM) -> bool:
        """Store an entry, and evict the least recently used ones beyond `max_size` bytes, unless that is negative.

        Returns whether the entry was stored; one larger than `max_size` is not. Raises OSError, and then leaves no
        incomplete entry.
        """
        content = _FORMATS[kind].encode(_HEAD.pack(key, entry.seconds), entry.payload)
        if 0 <= max_size < len(content):
            return False
        path = self._path(key, kind)
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        self._check_directory()
        temporary = f"{path}.{os.getpid()}.{os.urandom(8).hex()}{_TEMPORARY}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
                file.write(content)
            os.rename(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        # The entry is stored, even if the eviction of others fails.
        with contextlib.suppress(OSError):
            if self._has_old_files:
                self._has_old_files = False
                self._delete_abandoned()
            if max_size >= 0:
                self._evict(max_size)
        return True

    def set_aside(self, key: bytes, inode: int | None = None, kind: str = PROGRAM) -> None:
        """Move the entry of `key` into the folder of damaged entries, where nothing reads it.

        inode: the number of the damaged file; another process may have replaced it by a good one.
        """
        folder, path = os.path.join(self.directory, _QUARANTINE), self._path(key, kind)
        with contextlib.suppress(OSError):
            if inode is None or os.lstat(path).st_ino == inode:
                os.makedirs(folder, mode=0o700, exist_ok=True)
                os.rename(path, os.path.join(folder, os.path.basename(path)))

    def verify(self) -> tuple[int, list[str]]:
        """Return the number of good entries, and the names of entries that are damaged or cannot be read.

        Damaged entries are moved aside. This does not count as a use of the entries.
        """
        right, wrong = 0, []
        for name, _ in self.files():
            try:
                key, kind = _NAME.fullmatch(name).groups()  # type: ignore[union-attr]
                right += self.read(bytes.fromhex(key), use=False, kind=kind) is not None
            except (WrongBytesError, OSError):
                wrong.append(name)
        return right, wrong

    def clear(self) -> int:
        """Delete all entries, and damaged and abandoned files; return the number of deleted files."""
        count = 0
        for folder in (self.directory, os.path.join(self.directory, _QUARANTINE)):
            with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
                for item in entries:
                    if item.name.endswith((*_FORMATS, _TEMPORARY)):
                        count += _delete(item.path)
        return count

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the name and the state of each entry's file."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self.directory) as entries:
            for item in entries:
                if _NAME.fullmatch(item.name):
                    # Another process may have evicted it.
                    with contextlib.suppress(FileNotFoundError):
                        yield item.name, item.stat(follow_symlinks=False)

    def count_wrong(self) -> int:
        """Return the number of damaged entries that were moved aside."""
        try:
            return len(os.listdir(os.path.join(self.directory, _QUARANTINE)))
        except FileNotFoundError:
            return 0

    def _check_directory(self) -> None:
        _check_owner(os.lstat(self.directory), self.directory, stat.S_ISDIR, "give the path of a directory")

    def _path(self, key: bytes, kind: str) -> str:
        return os.path.join(self.directory, key.hex() + kind)

    def _evict(self, max_size: int) -> None:
        files = sorted(self.files(), key=lambda item: item[1].st_mtime_ns)
        total = sum(state.st_size for _, state in files)
        for name, state in files:
            if total <= max_size:
                break
            _delete(os.path.join(self.directory, name))
            total -= state.st_size

    def _delete_abandoned(self) -> None:
        with os.scandir(self.directory) as entries:
            for item in entries:
                if item.name.endswith(_TEMPORARY):
                    with contextlib.suppress(FileNotFoundError):
                        # With `abs`, files from the future are deleted, too, after the clock was set back.
                        if abs(time.time() - item.stat(follow_symlinks=False).st_mtime) > _ABANDONED_SECONDS:
                            _delete(item.path)


def _check_owner(state: os.stat_result, path: str, is_kind: Callable[[int], bool], expected: str) -> None:
    """Raise `UnsafeDirectoryError` unless the file is of the `expected` kind, and only this user can write it."""
    if not is_kind(state.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(state.st_mode) else "of another kind"
        raise UnsafeDirectoryError(f"{path} is {kind}: {expected}")
    if state.st_uid != os.geteuid():
        raise UnsafeDirectoryError(
            f"{path} belongs to the user {state.st_uid}: compiled programs from there would run with your rights. Give "
            "a directory of your own"
        )
    if state.st_mode & 0o022:
        raise UnsafeDirectoryError(
            f"{path} can be written by others (mode {stat.S_IMODE(state.st_mode):o}): compiled programs from there "
            f"would run with your rights. Take that away with chmod go-w {path}"
        )


def _decode(content: bytes, key: bytes, kind: str) -> Entry:
    head, payload = _FORMATS[kind].decode(content)
    own_key, seconds = _HEAD.unpack(head)
    if own_key != key:
        raise WrongBytesError("it is the entry of another program")
    return Entry(payload, seconds)


def _delete(path: str) -> bool:
    """Delete a file; return whether it existed."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
