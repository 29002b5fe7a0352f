"""Python functions that compiled programs call, the order of programs that do so, and waiting for their effects."""

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
from xtrace._src.core.source import Position, describe
from xtrace._src.core.trace import base_trace, current_trace
from xtrace._src.runtime.arrays import explain_failure
from xtrace._src.runtime.callback_errors import Failure, keep
from xtrace._src.runtime.transfer import array_from_host, current_device
from xtrace._src.xla import buffers, clients


class _OfThread(threading.local):
    """What a thread is doing: how many callbacks it is inside of, and the end of its last ordered program."""

    inside = 0
    last: Any = None


_thread = _OfThread()
_pending: collections.deque[Any] = collections.deque()
_failed: list[Exception] = []
_lock = threading.Lock()

# So many programs may be under way before the caller waits for the first of them.
_MOST_PENDING = 64


@contextlib.contextmanager
def inside_callback() -> Any:
    """Run a callback: traces around it do not concern it, and it waits for no effects."""
    _thread.inside += 1
    token = current_trace.set(base_trace)
    try:
        yield
    finally:
        current_trace.reset(token)
        _thread.inside -= 1


class HostCallback:
    """A Python function in the form in which XLA calls it: NumPy arrays in, a tuple of NumPy arrays out.

    `function` takes arrays of the types `in_avals` and returns a list of NumPy arrays of exactly the types `out_avals`:
    XLA would read past the end of others. An `ordered` one is given a token before the operands, and gives it back.
    Whatever it raises, the program's error is found by it again. channels: the numbers of those by which operands and
    results are transferred, where that is how the program calls it.
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
        """The shapes and dtypes of the NumPy arrays that it takes, and of those that it returns."""
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
            raise RuntimeError(keep(failure)) from None
        return (None, *results) if self.ordered else tuple(results)

    @staticmethod
    def _array(operand: np.ndarray[Any, Any], aval: ShapedArray) -> Any:
        """Return an operand, which is gone after the call, as an array on a CPU."""
        device = None if current_device().platform == "cpu" else clients.local_devices("cpu")[0]
        stored = physical_aval(aval)
        if operand.dtype != stored.dtype:
            operand = operand.view(stored.dtype)
        if operand.shape != stored.shape:
            # The piece that a device of a mesh holds.
            aval = aval.update(shape=operand.shape[: aval.ndim])
        return array_from_host(operand, aval, device)


def wrap_execution(execute: Callable[..., tuple[Any, Any]], ordered: bool) -> Callable[..., Any]:
    """Return `execute` of a program with effects, without its end: an ordered one waits for the one before it."""
    _wait_at_exit()

    def run(inputs: Sequence[Any]) -> Any:
        if ordered:
            wait_for_ordered()
        results, end = execute(inputs)
        if ordered:
            _thread.last = end
        with _lock:
            _pending.append(end)
            first = _pending.popleft() if len(_pending) > _MOST_PENDING and not _thread.inside else None
        if first is not None:
            _wait_for(first)
        return results

    return run


def wait_for_ordered() -> None:
    """Wait until the last program with ordered effects that this thread started has ended, well or not."""
    end, _thread.last = _thread.last, None
    if end is not None:
        # Whoever waits for its results, or for all effects, is told.
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
    """Wait until the prints and callbacks of the programs called so far are done.

    Inside a callback it returns at once, since the program that called it ends only after it.

    Raises:
        Exception: the first error of a callback that was not raised before.

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
