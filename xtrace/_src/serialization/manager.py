"""Asynchronous checkpoints."""

from __future__ import annotations

import abc
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.serialization.arrays import (
    Spec,
    async_serialize,
    get_tensorstore_spec,
    run_coroutine,
    run_deserialization,
)
from xtrace._src.xla.processes import distributed


class BarrierTimeoutError(Exception):
    """Another process did not finish writing in time.

    Example:
        >>> from xtrace.experimental.array_serialization import serialization
        >>> issubclass(serialization.BarrierTimeoutError, Exception)
        True
    """


_checkpoints = itertools.count()


class AsyncManager:
    """Waits, in a thread, for unfinished files and for the other processes.

    Args:
        timeout_secs: the number of seconds to wait for the other processes.

    Raises:
        ValueError: `timeout_secs` is not positive.

    Example:
        >>> from xtrace.experimental.array_serialization import serialization
        >>> serialization.AsyncManager(timeout_secs=10).wait_until_finished()
    """

    def __init__(self, timeout_secs: float = 300) -> None:
        if not timeout_secs > 0:
            raise ValueError(f"timeout_secs must be a positive number of seconds, got {abbreviate(timeout_secs)}")
        self._timeout_secs = timeout_secs
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def check_for_errors(self) -> None:
        """Raise the error of a failed checkpoint, once; this does not wait."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Wait until the last checkpoint is written, and raise its error if it failed."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        self.check_for_errors()

    def _finish_in_thread(self, futures: Sequence[Any], then: Callable[[], None]) -> None:
        """Start a thread that waits for the futures and the other processes; then process 0 calls `then`."""
        number = next(_checkpoints)

        def finish() -> None:
            try:
                for future in futures:
                    future.result()
                if self._wait_for_processes(f"xtrace_checkpoint_{number}") == 0:
                    then()
            except BaseException as error:
                self._error = error

        self._thread = threading.Thread(target=finish, name="xtrace_checkpoint")
        self._thread.start()

    def _wait_for_processes(self, barrier: str) -> int:
        """Wait for all processes at a barrier, and return the number of this process."""
        connection = distributed.connection()
        if connection is None:
            return 0
        try:
            connection.client.wait_at_barrier(barrier, int(1000 * self._timeout_secs))
        except distributed.DistributedError as error:
            if "DEADLINE_EXCEEDED" not in str(error):
                raise
            raise BarrierTimeoutError(
                f"another process did not finish its part of the checkpoint in {self._timeout_secs} seconds: look for "
                "its error, or give the manager a longer timeout_secs"
            ) from error
        return connection.process


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """The base class of managers of asynchronous checkpoints of all processes.

    Example:
        >>> from xtrace.experimental.array_serialization import serialization
        >>> manager = serialization.GlobalAsyncCheckpointManager()
        >>> isinstance(manager, serialization.GlobalAsyncCheckpointManagerBase)
        True
    """

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise the error of a failed checkpoint; this does not wait."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Wait until the last checkpoint is written."""

    @abc.abstractmethod
    def serialize(
        self, arrays: Sequence[Array], tensorstore_specs: Sequence[Spec], *,
        on_commit_callback: Callable[[], None] | None = None,
    ) -> None:
        """Start to write arrays."""

    @abc.abstractmethod
    def deserialize(
        self, shardings: Sequence[Any], tensorstore_specs: Sequence[Spec], global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None,
    ) -> Any:
        """Read arrays."""


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Writes arrays to folders while the program continues: it copies the data at once and writes files in threads.

    Args:
        timeout_secs: the number of seconds that a process waits for the others.

    Raises:
        ValueError: `timeout_secs` is not positive.

    Example:
        >>> import tempfile
        >>> from xtrace.experimental.array_serialization import serialization
        >>> manager, x, path = serialization.GlobalAsyncCheckpointManager(), jnp.ones(2), tempfile.mkdtemp() + "/x"
        >>> manager.serialize_with_paths([x], [path])
        >>> manager.wait_until_finished()
        >>> manager.deserialize_with_paths([x.sharding], [path])
        [Array([1., 1.], dtype=float32)]
    """

    def serialize(
        self, arrays: Sequence[Array], tensorstore_specs: Sequence[Spec], *,
        on_commit_callback: Callable[[], None] | None = None, transaction: Any = None,
    ) -> None:
        """Start to write arrays, after waiting for the previous checkpoint.

        Process 0 calls `on_commit_callback` when all processes have written their shards.
        """
        self.wait_until_finished()
        if len(arrays) != len(tensorstore_specs):
            raise ValueError(
                f"serialize: there must be a specification for each array, got {len(arrays)} arrays and "
                f"{len(tensorstore_specs)} specifications"
            )
        futures: list[Any] = []

        async def copy() -> None:
            for array, spec in zip(arrays, tensorstore_specs, strict=True):
                await async_serialize(array, spec, futures, transaction=transaction)

        run_coroutine(copy())
        self._finish_in_thread(futures, on_commit_callback or (lambda: None))

    def serialize_with_paths(
        self, arrays: Sequence[Array], paths: Sequence[str], *, on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """Start to write arrays to folders; see `serialize`."""
        specs = [get_tensorstore_spec(path) for path in paths]
        self.serialize(arrays, specs, on_commit_callback=on_commit_callback, transaction=transaction)

    def deserialize(
        self, shardings: Sequence[Any], tensorstore_specs: Sequence[Spec], global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32,
    ) -> list[Any]:
        """Wait for the current checkpoint, then read arrays; see `run_deserialization`."""
        self.wait_until_finished()
        return run_deserialization(shardings, tensorstore_specs, global_shapes, dtypes, concurrent_gb)

    def deserialize_with_paths(
        self, shardings: Sequence[Any], paths: Sequence[str], global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32,
    ) -> list[Any]:
        """Read arrays from folders; see `run_deserialization`."""
        specs = [get_tensorstore_spec(path) for path in paths]
        return self.deserialize(shardings, specs, global_shapes, dtypes, concurrent_gb)
