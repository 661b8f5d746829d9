"""Runs the console, or the catalog of the lake, with uvicorn, until a signal ends it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from menzil.model.errors import UsageError


class _Server(uvicorn.Server):
    """A server that tells when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[int], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            self._ready(sockets[0].getsockname()[1])


def serve(
    app: ASGIApp, host: str, port: int, ready: Callable[[int], None], handed: socket.socket | None = None
) -> None:
    """Serve until SIGTERM or SIGINT; requests under way may finish. `handed` is a socket that listens already."""
    with handed or _bound(host, port) as listener:
        _Server(config(app), ready).run(sockets=[listener])


@contextmanager
def served(app: ASGIApp) -> Iterator[int]:
    """Serve in a thread of this process, on a free port of loopback; yields the port. For tests."""
    up = threading.Event()
    server = _Server(config(app), lambda _: up.set())

    def run() -> None:
        try:
            server.run(sockets=[listener])
        finally:
            up.set()  # also when it could not start

    with _bound("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=run, name="menzil console", daemon=True)
        thread.start()
        try:
            if not up.wait(60) or not server.started:
                raise UsageError("The console did not start.", hint="its log says why")
            yield int(listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(60)
    if thread.is_alive():
        raise UsageError("The console did not stop within a minute.", hint="is a request still open?")


def config(app: ASGIApp) -> uvicorn.Config:
    """How uvicorn runs it: quiet, without its own name in the answers, and with proxies believed on loopback only."""
    options: dict[str, Any] = {
        "log_config": None, "log_level": "warning", "access_log": False, "server_header": False,
        "timeout_graceful_shutdown": 5, "lifespan": "on", "limit_concurrency": 200, "ws": "none",
        "h11_max_incomplete_event_size": 65_536,
    }  # fmt: skip
    return uvicorn.Config(app, **options)


def _bound(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        return socket.create_server((host, port), family=family, reuse_port=False)
    except OSError as error:
        sentence = f"The console cannot listen at {host} port {port}: {error.strerror or error}."
        raise UsageError(sentence, hint="choose another --port; 0 takes a free one") from None
