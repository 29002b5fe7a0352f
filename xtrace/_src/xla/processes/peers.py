"""Watching the other processes of a program: whether they are alive, and whether they call the same programs."""

from __future__ import annotations

import _thread
import contextlib
import functools
import json
import os
import socket
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any

from jaxlib import _jax

from xtrace._src.xla import versions
from xtrace._src.xla.processes.coordinator_relay import CoordinatorRelay
from xtrace._src.xla.processes.distributed import SharedProgram
from xtrace._src.xla.source_locations import PACKAGE_FOLDER

_ALIVE, _CALLS = "xtrace/alive/", "xtrace/calls/"
_FINISHED = "finished"
_ADVICE = (
    ". Arrays over several processes are lost: save what is needed of this process's own data, and start all processes "
    "again from what was saved last"
)
# After waiting for this many seconds, processes compare the programs that they have called.
_PATIENCE = 5.0


class LostProcessError(RuntimeError):
    """Another process of the program has ended, is silent, or calls other programs than this one."""


class _Calls:
    """The calls of programs over the same processes: their count, a hash of all of them, and the last ones."""

    def __init__(self) -> None:
        self.count, self.number = 0, 0
        self.recent: deque[tuple[int, int, str, Any]] = deque(maxlen=64)

    def add(self, program: SharedProgram) -> None:
        self.number = zlib.crc32(program.number.to_bytes(4, "little"), self.number)
        self.recent.append((self.count, self.number, program.name, _jax.Traceback.get_traceback()))
        self.count += 1

    def describe(self) -> str:
        return json.dumps([(index, number, f"{name} {_line(place)}") for index, number, name, place in self.recent])


def _line(place: Any) -> str:
    for frame in place.frames:
        if not frame.file_name.startswith((PACKAGE_FOLDER, "<xtrace")):
            return f"at {frame.file_name}:{frame.line_num}"
    return "at a line of xtrace"


def _folder(processes: tuple[int, ...]) -> str:
    return f"{_CALLS}{'-'.join(map(str, processes))}/"


def describe_this_process() -> str:
    """Return a description of this process for the others: the machine, the process id there, and jaxlib's version."""
    return json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "jaxlib": versions.JAXLIB_VERSION_TEXT})


class _Worker:
    """A thread that evaluates functions, one after another."""

    def __init__(self) -> None:
        self._given, self._done = threading.Lock(), threading.Lock()
        self._given.acquire()
        self._done.acquire()
        self._function: Callable[[], Any] | None = None
        self._outcome: tuple[Any, BaseException | None] = None, None
        _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        while True:
            self._given.acquire()
            function, self._function = self._function, None
            assert function is not None
            try:
                self._outcome = function(), None
            except BaseException as error:
                self._outcome = None, error
            del function
            self._done.release()

    def start(self, function: Callable[[], Any]) -> None:
        """Begin to evaluate ``function()``."""
        self._function = function
        self._given.release()

    def wait(self, seconds: float) -> bool:
        """Wait for the function, for at most `seconds`; return whether it has ended."""
        return self._done.acquire(timeout=seconds)

    def take(self) -> tuple[Any, BaseException | None]:
        """Return the result and None, or None and the error, of the function that has ended."""
        outcome, self._outcome = self._outcome, (None, None)
        return outcome


class Peers:
    """A view of the other processes, kept by a thread that also sends the heartbeat of this process.

    client: the client of the coordinator. relay: the relay to the coordinator, None in its own process. about: the
    description of each process. heartbeat: the seconds of silence that count as a failure, which `failure` then
    describes. recoverable: whether a failure is raised only once, so that programs over the remaining processes can
    run.
    """

    def __init__(
        self, client: Any, relay: CoordinatorRelay | None, process: int, about: Sequence[str], heartbeat: float,
        recoverable: bool,
    ) -> None:
        """Begin to watch."""
        self.recoverable, self._raised = recoverable, False
        # The message of this process about its end.
        self._said = ""
        self.client, self.relay, self.process, self.heartbeat = client, relay, process, heartbeat
        self.about = [json.loads(text) for text in about]
        self.failure: str | None = None
        self._period = min(heartbeat / 10, 10.0)
        self._beaten = time.monotonic()
        self._seen = {p: ("", self._beaten) for p in range(len(about)) if p != process}
        self._finished: set[int] = set()
        self._left: set[int] = set()
        self._calls: dict[tuple[int, ...], _Calls] = {}
        self._idle: list[_Worker] = []
        # A beat may be seen two periods late, so this limit gives an error within the heartbeat.
        self._limit = heartbeat - 2 * self._period
        # Whether the watch ends, and the event that wakes it early.
        self._ended, self._awake = False, threading.Event()
        # Whether a wait is so long that calls should be compared, and the error of the comparison.
        self._suspicious, self._parted = False, ""
        self._thread = threading.Thread(target=self._watch, name="xtrace heartbeat", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        beat = 0
        while not self._ended:
            begin = time.monotonic()
            if begin - self._beaten > self.heartbeat + self._period:
                self._lose(
                    f"this process was paused for {begin - self._beaten:.0f} seconds, longer than the heartbeat of "
                    f"{self.heartbeat:g} seconds, so the others count it as dead"
                )
            beat += 1
            try:
                self.client.key_value_set(f"{_ALIVE}{self.process}", f"{beat} {self._said}", True)
                states = self.client.key_value_dir_get(_ALIVE)
                if self._suspicious:
                    self._suspicious = False
                    self.publish_calls()
                    self.compare_calls()
            except LostProcessError as error:
                self._parted = str(error)
            except _jax.JaxRuntimeError as error:
                if not self._ended:
                    self._lose(f"the coordinator in {self._name(0)} does not answer: {str(error).splitlines()[0]}")
                return
            self._beaten = time.monotonic()
            self._read(states, self._beaten)
            self._awake.wait(self._period)
            self._awake.clear()

    def _read(self, states: Sequence[tuple[str, str]], now: float) -> None:
        for key, state in states:
            process = int(key.rpartition("/")[2])
            if process != self.process and state != self._seen[process][0]:
                self._seen[process] = state, now
                said = state.partition(" ")[2]
                if said:
                    self._left.add(process)
                if said == _FINISHED:
                    self._finished.add(process)
                elif said:
                    self._lose(f"{self._name(process)} has ended with {said}")
        for process, (_, heard) in self._seen.items():
            if now - heard > self._limit and process not in self._left:
                self._left.add(process)
                at = time.strftime("%H:%M:%S", time.localtime(time.time() - (now - heard)))
                self._lose(
                    f"{self._name(process)} has been silent since {at}, for {now - heard:.0f} seconds with a "
                    f"heartbeat of {self.heartbeat:g}: it was killed or paused, or its machine is not reachable"
                )

    def _name(self, process: int) -> str:
        about = self.about[process]
        return f"process {process} on {about['host']} (pid {about['pid']})"

    def _lose(self, failure: str) -> None:
        self.failure = self.failure or failure + _ADVICE

    def leave(self, error: str | None = None) -> None:
        """Tell the others that this process ends, and the error if it ends with one."""
        self._said = error.partition(_ADVICE)[0][:400] if error else _FINISHED
        told = threading.Lock()
        told.acquire()

        def tell() -> None:
            with contextlib.suppress(_jax.JaxRuntimeError):
                self.client.key_value_set(f"{_ALIVE}{self.process}", f"0 {self._said}", True)
            told.release()

        # In a thread, because the coordinator itself may be lost.
        _thread.start_new_thread(tell, ())
        told.acquire(timeout=2 * self._period)

    def stop(self) -> None:
        """End the watch, and wait for its thread: the interpreter must not end while the thread is in jaxlib."""
        self._ended = True
        self._awake.set()
        self._thread.join(self.heartbeat)

    def wait_for_others(self) -> None:
        """Wait until all others have ended with errors or are silent.

        Process 0 needs this, because jaxlib aborts processes that lose it. A finished process does not count: it waits
        for this one until it sees the error.
        """
        end = time.monotonic() + self.heartbeat + 2 * self._period
        while (now := time.monotonic()) < end:
            self._read(self.client.key_value_dir_get(_ALIVE), now)
            silent = {p for p, (_, heard) in self._seen.items() if now - heard > 2.5 * self._period}
            if len(silent | (self._left - self._finished)) == len(self._seen):
                return
            time.sleep(0.1)

    def record(self, program: SharedProgram) -> None:
        """Record that this process calls a program."""
        calls = self._calls.get(program.processes)
        if calls is None:
            calls = self._calls[program.processes] = _Calls()
        calls.add(program)

    def digest_calls(self, processes: tuple[int, ...]) -> str:
        """Return a digest of the calls of programs over `processes`."""
        calls = self._calls.get(processes)
        return f"{calls.count}:{calls.number}" if calls is not None else "0:0"

    def check(self, processes: Collection[int], waited: float = 0.0) -> None:
        """Raise LostProcessError if a process is lost, or calls other programs than this process, which waits for it.

        processes: the processes for which this one waits; none if it waits for its own work, which may still depend on
        a lost process. waited: the seconds of the wait.
        """
        if not processes and waited < self.heartbeat:
            return
        self._look_for_coordinator()
        if self.failure is not None and (not self.recoverable or not self._raised or waited > self.heartbeat):
            self._raised = True
            raise LostProcessError(self.failure)
        if waited < _PATIENCE:
            return
        # The watching thread compares the calls, because the coordinator may not answer.
        self._suspicious = True
        self._awake.set()
        if self._parted:
            raise LostProcessError(self._parted)
        finished = self._finished.intersection(processes)
        if finished and not self._said:
            raise LostProcessError(
                f"{self._name(min(finished))} has finished, and this process waits for it: all processes must "
                "call the same programs over several processes"
            )

    def _look_for_coordinator(self) -> None:
        """Record a failure if the coordinator has ended or is silent."""
        now = time.monotonic()
        # At the end of the program, the last answers of the coordinator may still be on their way.
        if self.relay is not None and self.relay.lost is not None and now - self.relay.lost > 1:
            self._lose(f"the coordinator in {self._name(0)} has ended without a word: its process was killed")
        elif now - self._beaten > self._limit:
            self._lose(
                f"the coordinator in {self._name(0)} has not answered for {now - self._beaten:.0f} seconds: it was "
                "paused, or its machine is not reachable"
            )

    def publish_calls(self) -> None:
        """Send the last calls of this process to the others."""
        for processes, calls in list(self._calls.items()):
            self.client.key_value_set(f"{_folder(processes)}{self.process}", calls.describe(), True)

    def compare_calls(self) -> None:
        """Raise LostProcessError if a process whose calls are known has called other programs than this one."""
        for processes, calls in list(self._calls.items()):
            own = {index: (number, said) for index, number, said in json.loads(calls.describe())}
            for key, text in self.client.key_value_dir_get(_folder(processes)):
                other = int(key.rpartition("/")[2])
                for index, number, said in json.loads(text):
                    if index in own and own[index][0] != number:
                        raise LostProcessError(
                            f"the processes part at call {index + 1} of programs over processes "
                            f"{', '.join(map(str, processes))}: process {self.process} calls {own[index][1]}, process "
                            f"{other} calls {said}. All processes must call the same programs in the same order"
                        )

    def call(self, processes: Collection[int], function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Return ``function(*arguments, **keywords)``, evaluated in another thread; LostProcessError ends the wait.

        `processes` are those for which it waits, as in `check`. jaxlib's own waits for processes cannot be ended, by
        exceptions or by a time limit.
        """
        worker = self._idle.pop() if self._idle else _Worker()
        worker.start(functools.partial(function, *arguments, **keywords))
        begin = checked = time.monotonic()
        while not worker.wait(0.25):
            waited = time.monotonic() - begin
            # The comparison of calls needs the coordinator, so it is rare.
            often = waited < _PATIENCE or time.monotonic() - checked > self._period
            checked = time.monotonic() if often else checked
            self.check(processes, waited if often else 0.0)
        self._idle.append(worker)
        result, error = worker.take()
        if error is not None:
            self.explain(error)
            raise error
        return result

    def wait_for(self, awaited: Any, processes: Collection[int]) -> None:
        """Wait until the data of a buffer is ready, or an execution has ended; LostProcessError ends the wait."""
        # Most waits are shorter than starting another thread.
        end = time.perf_counter() + 5e-4
        while hasattr(awaited, "is_ready"):
            if awaited.is_ready():
                try:
                    awaited.block_until_ready()
                except _jax.JaxRuntimeError as error:
                    self.explain(error)
                    raise
                return
            if time.perf_counter() > end:
                break
            time.sleep(1e-5)
        self.call(processes, awaited.block_until_ready)

    def explain(self, error: BaseException) -> None:
        """Raise LostProcessError if `error` is a broken connection to a lost process; wait until the loss is known."""
        if not isinstance(error, _jax.JaxRuntimeError) or "Gloo" not in str(error):
            return
        end = time.monotonic() + self.heartbeat + 2 * self._period
        while self.failure is None and not self._finished and time.monotonic() < end:
            time.sleep(0.05)
            self._look_for_coordinator()
        if self.failure is not None:
            raise LostProcessError(self.failure) from error
        if self._finished:
            self.check(self._finished, _PATIENCE)


def unhandled_error() -> str | None:
    """Return the unhandled error that ends the interpreter, if Python has printed one; else None."""
    error = getattr(sys, "last_value", None)
    return f"{type(error).__name__}: {error}" if error is not None else None
