"""Callbacks, the Python functions that compiled programs call: their order, and waiting for their effects."""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xtrace._src.core.avals import ShapedArray, physical_aval
from xtrace._src.core.diagnostics.source import Position, describe
from xtrace._src.core.trace import base_trace, use_trace
from xtrace._src.runtime.arrays import explain_failure
from xtrace._src.runtime.callback_errors import Failure, keep_failure
from xtrace._src.runtime.transfer import array_from_host, current_device
from xtrace._src.xla import buffers, clients


class _ThreadState(threading.local):
    """The state of a thread: the number of callbacks that it is inside of, and the end of its last ordered program."""

    inside = 0
    last: Any = None


_thread = _ThreadState()
_pending: collections.deque[Any] = collections.deque()
_failed: list[Exception] = []
_lock = threading.Lock()

# The number of programs with effects that may be running before the caller waits for the first of them.
_MAX_PENDING = 64


@contextlib.contextmanager
def inside_callback(ordered: bool = False) -> Any:
    """A block for a callback: it runs outside of all traces, and `effects_barrier` does not wait in it.

    ordered: whether the callback comes after those of the thread's last program with ordered effects.
    """
    if ordered:
        wait_for_ordered()
    _thread.inside += 1
    try:
        with use_trace(base_trace):
            yield
    finally:
        _thread.inside -= 1


class HostCallback:
    """A Python function in XLA's form: it takes NumPy arrays and returns a tuple of NumPy arrays.

    `function` takes arrays of the types `in_avals` and returns a list of NumPy arrays of exactly the types `out_avals`:
    XLA would read past the end of others. An `ordered` callback takes a token before the operands, and returns it. An
    error is kept, and the program's error has the number of it. channels: the numbers of the channels of operands and
    results, in a program that calls by transfers; else None.
    """

    __slots__ = ("function", "in_avals", "out_avals", "ordered", "name", "place", "channels")

    def __init__(
        self, function: Callable[..., Sequence[np.ndarray[Any, Any]]], in_avals: Sequence[ShapedArray],
        out_avals: Sequence[ShapedArray], *, ordered: bool, name: str, place: Position | None,
        channels: tuple[list[int], list[int]] | None = None,
    ) -> None:
        self.function, self.in_avals, self.out_avals = function, list(in_avals), list(out_avals)
        self.ordered, self.name, self.place, self.channels = ordered, name, place, channels

    def types(self) -> tuple[list[Any], list[Any]]:
        """Return the types of the NumPy arrays that it takes, and of those that it returns."""
        return list(map(physical_aval, self.in_avals)), self.out_avals

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        try:
            with inside_callback():
                arrays = [self._array(x, a) for x, a in zip(operands[self.ordered :], self.in_avals, strict=True)]
                results = [np.asarray(x, order="C") for x in self.function(*arrays)]
                kinds = [(x.shape, x.dtype) for x in results]
                assert kinds == [(a.shape, a.dtype) for a in self.out_avals], kinds
        except BaseException as error:
            failure = Failure(error, f"{self.name}, called at {describe(self.place)},")
            raise RuntimeError(keep_failure(failure)) from None
        return (None, *results) if self.ordered else tuple(results)

    @staticmethod
    def _array(operand: np.ndarray[Any, Any], aval: ShapedArray) -> Any:
        """Return an operand, whose memory is freed after the call, as an array on a CPU."""
        device = None if current_device().platform == "cpu" else clients.local_devices("cpu")[0]
        stored = physical_aval(aval)
        if operand.dtype != stored.dtype:
            operand = operand.view(stored.dtype)
        if operand.shape != stored.shape:
            # The operand is the piece of one device of a mesh.
            aval = aval.update(shape=operand.shape[: aval.ndim])
        return array_from_host(operand, aval, device)


def wrap_execution(execute: Callable[..., tuple[Any, Any]], ordered: bool) -> Callable[..., Any]:
    """Return a function from a program's inputs to its results, from `execute`, which also returns the end.

    The end is recorded, for `effects_barrier`. An `ordered` program first waits for the previous one of the thread.
    """
    _wait_at_exit()

    def run(inputs: Sequence[Any]) -> Any:
        if ordered:
            wait_for_ordered()
        results, end = execute(inputs)
        if ordered:
            _thread.last = end
        with _lock:
            _pending.append(end)
            first = _pending.popleft() if len(_pending) > _MAX_PENDING and not _thread.inside else None
        if first is not None:
            _wait_for(first)
        return results

    return run


def wait_for_ordered() -> None:
    """Wait for the end, with or without an error, of the last program with ordered effects in this thread."""
    end, _thread.last = _thread.last, None
    if end is not None:
        # An error is raised where the program's results, or all effects, are waited for.
        with contextlib.suppress(Exception):
            buffers.wait_for(end)


def _wait_for(end: buffers.Buffer | buffers.Token) -> None:
    try:
        buffers.wait_for(end)
    except Exception as error:
        with _lock:
            _failed.append(error)


@functools.cache
def _wait_at_exit() -> None:
    atexit.register(effects_barrier)


def effects_barrier() -> None:
    """Wait until the prints and callbacks of all programs that were called before are done.

    Inside a callback it returns at once, because the program of the callback ends only after it.

    Raises:
        Exception: the first error of a callback that was not raised yet.

    Example:
        >>> xtrace.effects_barrier()
    """
    if _thread.inside:
        return
    while True:
        with _lock:
            if not _pending:
                break
            end = _pending.popleft()
        _wait_for(end)
    with _lock:
        failed = list(_failed)
        _failed.clear()
    if failed:
        explain_failure(failed[0], "the effects of a compiled function")
        raise failed[0]
