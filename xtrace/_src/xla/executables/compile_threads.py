"""Threads that compile. The process waits for them at its end, because the compiler needs the process."""

from __future__ import annotations

import atexit
import collections
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class Task:
    """Work for another thread, which sets `result` or `error`; both are None if the task was given up.

    A task is not begun if nobody refers to it any more.
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
        """Wait until the task is done, for at most `timeout` seconds; return whether it is done."""
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
        """Mark the task as done, and drop its work unless that is begun."""
        self._work = None
        self._done.set()

    def abandon(self) -> None:
        """Give up the task in a forked process, which has no thread for it."""
        if not self._done.is_set():
            self._done = threading.Event()
            self.give_up()


class CompileThreads:
    """At most `limit` threads that do tasks in order, and end when there is no task left."""

    def __init__(self, limit: int) -> None:
        self.limit = max(1, limit)
        self._forget()
        _all.append(self)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._waiting: collections.deque[weakref.ref[Task]] = collections.deque()
        self._running: dict[threading.Thread, Task | None] = {}

    def start(self, work: Callable[[], Any]) -> Task:
        """Return the task of doing `work`; a thread begins it when one is free."""
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
        """Give up the waiting tasks, and wait for the running ones."""
        with self._lock:
            waiting, self._waiting = self._waiting, collections.deque()
            threads = list(self._running)
        for reference in waiting:
            task = reference()
            if task is not None:
                task.give_up()
        for thread in threads:
            _wait_at_exit(thread.join)

    def reset_after_fork(self) -> None:
        """Give up all tasks: the threads are those of the parent process."""
        tasks = [*[reference() for reference in self._waiting], *self._running.values()]
        self._forget()
        for task in tasks:
            if task is not None:
                task.abandon()


_all: list[CompileThreads] = []
_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

# `background` is for work that nobody waits for; it leaves a core to the user. `foreground` is for work that the caller
# waits for.
background = CompileThreads(_cores - 1)
foreground = CompileThreads(_cores)


def compile_interruptibly(compile_: Callable[..., _Result], *arguments: object, **keywords: object) -> _Result:
    """Return ``compile_(*arguments, **keywords)``; in the main thread, it is evaluated in another thread.

    jaxlib 0.10 compiles in threads of its own, and handles signals while the main thread waits for them. If a handler
    raises, jaxlib frees the module, which the compiler still reads, and the process aborts. Here, Ctrl-C ends the wait
    at once, too, but the other thread gets no signals, and keeps the module until the compiler is done.
    """
    if threading.current_thread() is not threading.main_thread():
        return compile_(*arguments, **keywords)
    results: list[_Result] = []
    errors: list[BaseException] = []
    running = threading.Lock()  # Not Thread.join: after an exception in it, Python 3.11 counts the thread as ended.
    running.acquire()

    def run() -> None:
        _compiling.append(running)
        try:
            results.append(compile_(*arguments, **keywords))
        except BaseException as error:
            errors.append(error)
        finally:
            _compiling.remove(running)
            running.release()

    thread = threading.Thread(target=run, name="xtrace compilation", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # The interpreter ends, or the process may have no more threads.
        return compile_(*arguments, **keywords)
    running.acquire()
    if errors:
        raise errors.pop()
    return results.pop()


# The locks of compilations in threads of their own. Such a thread adds its lock itself, because its compilation goes on
# if the caller is interrupted, even during the start of the thread. It removes the lock before it releases it.
_compiling: list[threading.Lock] = []


def _wait_at_exit(wait: Callable[[], object]) -> None:
    """Call `wait`, which returns when a compilation has ended; Ctrl-C in the wait kills the process."""
    try:
        wait()
    except KeyboardInterrupt:
        sys.stdout.flush()
        sys.stderr.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


@atexit.register
def _close() -> None:
    for threads in _all:
        threads.close()
    while waiting := list(_compiling):
        _wait_at_exit(waiting[0].acquire)


def _reset_after_fork() -> None:
    _compiling.clear()
    for threads in _all:
        threads.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
