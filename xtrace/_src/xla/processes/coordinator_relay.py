"""A relay between jaxlib's client and the coordinator; it keeps the client's connection when the coordinator dies.

jaxlib aborts a process as soon as its connection to the coordinator is closed. With the relay, a dead coordinator is
only silent. Then `peers` can raise an error that names it, and the process can save its own data.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable

_BYTES = 1 << 16


class CoordinatorRelay:
    """Forwards connections on the loopback interface to a coordinator.

    address: the address for jaxlib's client. lost: the time when a connection to the coordinator ended, or None.
    """

    def __init__(self, coordinator: tuple[str, int]) -> None:
        """Begin to listen on a free port."""
        self.lost: float | None = None
        self._coordinator = coordinator
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = [self._listener]
        _start(self._accept)

    def close(self) -> None:
        """Close all connections; the client must not be in use any more."""
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(client)
            # After a long wait the client connects anew, and that must not fail either.
            if self.lost is not None:
                continue
            try:
                upstream = socket.create_connection(self._coordinator, timeout=10)
            except OSError:
                client.close()
                continue
            upstream.settimeout(None)
            self._open.append(upstream)
            for one in (client, upstream):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _start(self._send_up, client, upstream)
            _start(self._send_down, upstream, client)

    def _send_up(self, client: socket.socket, upstream: socket.socket) -> None:
        """Forward the client's data; data for a lost coordinator is dropped."""
        with contextlib.suppress(OSError):
            while data := client.recv(_BYTES):
                with contextlib.suppress(OSError):
                    upstream.sendall(data)
        with contextlib.suppress(OSError):
            upstream.shutdown(socket.SHUT_WR)

    def _send_down(self, upstream: socket.socket, client: socket.socket) -> None:
        """Forward the coordinator's data; record the end of its connection, but keep the client's open."""
        with contextlib.suppress(OSError):
            while data := upstream.recv(_BYTES):
                client.sendall(data)
        self.lost = time.monotonic()


def _start(function: Callable[..., None], *arguments: socket.socket) -> None:
    threading.Thread(target=function, args=arguments, name="xtrace coordinator relay", daemon=True).start()
