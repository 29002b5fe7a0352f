"""Threads that compile while Python goes on: few, none that waits for work, and none left when the process ends."""

from __future__ import annotations

import atexit
import collections
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

from xtrace._src.xla.executables import wait_at_exit


class Task:
    """Work for another thread; `result` or `error` say how it ended, and neither does if it was given up.

    A task that nobody holds any more is not begun.
    """

    __slots__ = ("result", "error", "_work", "_done", "__weakref__")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.result: Any = None
        self.error: Exception | None = None
        self._work: Callable[[], Any] | None = work
        self._done = threading.Event()

    def is_done(self) -> bool:
        """Return whether the work is finished, or given up."""
        return self._done.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the task is done, or for so many seconds; return whether it is."""
        return self._done.wait(timeout)

    def run(self) -> None:
        """Do the work, unless it was given up."""
        work, self._work = self._work, None
        try:
            if work is not None:
                self.result = work()
        except Exception as error:
            # The traceback's frames hold the module and the task itself.
            self.error = error.with_traceback(None)
        finally:
            del work
            self._done.set()

    def give_up(self) -> None:
        """Be done without a result, unless the work is under way or finished."""
        self._work = None
        self._done.set()

    def abandon(self) -> None:
        """Be done in a process that has no thread for it: one that was forked."""
        if not self._done.is_set():
            self._done = threading.Event()
            self.give_up()


class CompileThreads:
    """Threads, at most `limit`, that do tasks in the order in which they come, and end when there is none left."""

    def __init__(self, limit: int) -> None:
        self.limit = max(1, limit)
        self._forget()
        _all.append(self)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._waiting: collections.deque[weakref.ref[Task]] = collections.deque()
        self._running: dict[threading.Thread, Task | None] = {}

    def start(self, work: Callable[[], Any]) -> Task:
        """Return the task of doing `work`, which a thread begins when one is free."""
        task = Task(work)
        with self._lock:
            self._waiting.append(weakref.ref(task))
            if len(self._running) >= self.limit:
                return task
            thread = threading.Thread(target=self._work, name="xtrace compilation", daemon=True)
            self._running[thread] = None
        try:
            thread.start()
        except RuntimeError:  # The interpreter ends, or the process may have no more threads.
            with self._lock:
                self._running.pop(thread)
            task.run()
        return task

    def _work(self) -> None:
        thread = threading.current_thread()
        while True:
            with self._lock:
                task = None
                while self._waiting and task is None:
                    task = self._waiting.popleft()()
                if task is None:
                    del self._running[thread]
                    return
                self._running[thread] = task
            task.run()
            with self._lock:
                self._running[thread] = None
            del task

    def close(self) -> None:
        """Begin no more tasks, and wait for those under way: the compiler needs the process."""
        with self._lock:
            waiting, self._waiting = self._waiting, collections.deque()
            threads = list(self._running)
        for reference in waiting:
            task = reference()
            if task is not None:
                task.give_up()
        for thread in threads:
            wait_at_exit(thread.join)

    def reset_after_fork(self) -> None:
        """Give up all tasks: the threads are those of the parent process."""
        tasks = [*[reference() for reference in self._waiting], *self._running.values()]
        self._forget()
        for task in tasks:
            if task is not None:
                task.abandon()


_all: list[CompileThreads] = []
_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

# For work that nobody waits for, beside the user's own; and for work that the caller waits for.
background = CompileThreads(_cores - 1)
foreground = CompileThreads(_cores)


@atexit.register
def _close() -> None:
    for threads in _all:
        threads.close()


def _reset_after_fork() -> None:
    for threads in _all:
        threads.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
