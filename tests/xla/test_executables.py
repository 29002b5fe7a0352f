"""Compilations in a thread of their own: an interrupt ends the wait, and the process waits for those that go on."""

import threading
import types

import pytest

from xtrace._src.xla import executables


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
    monkeypatch.setattr(executables, "threading", types.SimpleNamespace(**vars(threading) | {"Lock": InterruptedLock}))
    monkeypatch.setattr(executables, "_interrupted", [])
    with pytest.raises(KeyboardInterrupt):
        executables._compile_apart(lambda: 1)
    assert not executables._interrupted


def test_an_interrupted_compilation_is_waited_for(monkeypatch):
    monkeypatch.setattr(executables, "_interrupted", [])
    go_on = threading.Event()

    class Lock(InterruptedLock):
        def acquire(self):
            """Acquire the lock, unless it is that of the wait."""
            self.acquired += 1
            if self.acquired == 2:
                raise KeyboardInterrupt
            self.lock.acquire()

    monkeypatch.setattr(executables, "threading", types.SimpleNamespace(**vars(threading) | {"Lock": Lock}))
    with pytest.raises(KeyboardInterrupt):
        executables._compile_apart(go_on.wait, 10)
    (lock,) = executables._interrupted
    assert lock.locked()
    go_on.set()
    executables._wait_for_interrupted()
