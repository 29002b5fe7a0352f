"""Compilations in a thread of their own: an interrupt ends the wait, and the process waits for those that go on."""

import threading
import types

import pytest

from xtrace._src.xla.executables import compile_threads


class InterruptedLock:
    """A lock whose second `acquire`, that of the wait for a compilation, is interrupted once it has succeeded."""

    def __init__(self):
        self.lock, self.acquired = threading.Lock(), 0

    def acquire(self):
        """Acquire the lock."""
        self.lock.acquire()
        self.acquired += 1
        if self.acquired == 2:
            raise KeyboardInterrupt

    def release(self):
        """Release the lock."""
        self.lock.release()

    def locked(self):
        """Whether the lock is held."""
        return self.lock.locked()


def test_an_interrupt_when_a_compilation_has_just_ended_leaves_nothing_to_wait_for(monkeypatch):
    interrupted = types.SimpleNamespace(**vars(threading) | {"Lock": InterruptedLock})
    monkeypatch.setattr(compile_threads, "threading", interrupted)
    monkeypatch.setattr(compile_threads, "_compiling", [])
    with pytest.raises(KeyboardInterrupt):
        compile_threads.compile_interruptibly(lambda: 1)
    assert not compile_threads._compiling


def test_an_interrupted_compilation_is_waited_for(monkeypatch):
    monkeypatch.setattr(compile_threads, "_compiling", [])
    go_on = threading.Event()

    class Lock(InterruptedLock):
        def acquire(self):
            """Acquire the lock, unless it is that of the wait."""
            self.acquired += 1
            if self.acquired == 2:
                raise KeyboardInterrupt
            self.lock.acquire()

    monkeypatch.setattr(compile_threads, "threading", types.SimpleNamespace(**vars(threading) | {"Lock": Lock}))
    with pytest.raises(KeyboardInterrupt):
        compile_threads.compile_interruptibly(go_on.wait, 10)
    (lock,) = compile_threads._compiling
    assert lock.locked()
    go_on.set()
    compile_threads._close()


class InterruptedThread(threading.Thread):
    """A thread whose `start` is interrupted once the thread runs."""

    def start(self):
        """Start the thread."""
        super().start()
        raise KeyboardInterrupt


def test_a_compilation_is_waited_for_when_the_start_of_its_thread_is_interrupted(monkeypatch):
    begun, go_on, ended = threading.Event(), threading.Event(), []

    def compile_():
        begun.set()
        go_on.wait(10)
        ended.append(True)

    interrupted = types.SimpleNamespace(**vars(threading) | {"Thread": InterruptedThread})
    monkeypatch.setattr(compile_threads, "threading", interrupted)
    monkeypatch.setattr(compile_threads, "_all", [])
    with pytest.raises(KeyboardInterrupt):
        compile_threads.compile_interruptibly(compile_)
    begun.wait(10)
    threading.Timer(0.1, go_on.set).start()
    compile_threads._close()
    assert ended


def test_a_forked_process_waits_for_no_compilation_of_its_parent(monkeypatch):
    held = threading.Lock()
    held.acquire()
    monkeypatch.setattr(compile_threads, "_compiling", [held])
    monkeypatch.setattr(compile_threads, "_all", [])
    compile_threads._reset_after_fork()
    compile_threads._close()
