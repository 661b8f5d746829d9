"""Where SSRF tests take place: servers on loopback that count who connects, and every connect of this process."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from menzil.deliver.guard import Guard
from menzil.deliver.http import Http
from menzil.deliver.protocol import Endpoint, Surroundings
from menzil.model.message import Message
from menzil.model.outcome import Outcome

_recorders: list[list[Any]] = []


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        for recorder in _recorders:
            recorder.append(arguments[1])


sys.addaudithook(_hear)


@contextmanager
def connects() -> Iterator[list[Any]]:
    """Every address that a socket of this process is connected to, whether somebody listens there or not."""
    seen: list[Any] = []
    _recorders.append(seen)
    try:
        yield seen
    finally:
        _recorders.remove(seen)


def has_version_6() -> bool:
    """Whether ::1 can be listened on."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


class Victim:
    """A server that nobody should reach. It answers 200 to whoever does."""

    def __init__(self, address: str, port: int = 0) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.create_server((address, port), family=family)
        self.port: int = self._socket.getsockname()[1]
        self.accepted, self._own = 0, 0
        self.heard: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                conn, _ = self._socket.accept()
                self.accepted += 1
                with conn, suppress(OSError):
                    self.heard.append(conn.recv(65536))
                    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    def strangers(self) -> int:
        """How many have connected. Whoever came before is counted before the connection that is made here."""
        self._own += 1
        with socket.create_connection(self._socket.getsockname()[:2], timeout=10) as own:
            own.sendall(b"x")
            while own.recv(65536):
                pass
        return self.accepted - self._own

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the accept
        self._socket.close()
        self._thread.join(10)


def protocol(lookup: Callable[[str], list[str]] | None = None, **settings: str) -> Http:
    """The real protocol, asking these name servers."""
    surroundings = Surroundings(settings, "tester")
    http = Http(surroundings)
    if lookup is not None:
        http._take(surroundings, Guard.from_settings(settings, lookup=lookup))
    return http


async def deliver(http: Http, config: dict[str, Any]) -> Outcome:
    """One message to an endpoint of this config."""
    endpoint = Endpoint(1, "victim", "http", {"timeout_seconds": 10, **config}, datetime.now(UTC))
    return await http.deliver(Message(1, "victim", {"a": 1}), endpoint)
