"""A small HTTP server for one page, /metrics: on this machine alone, or for clients with the token.

Its own thread answers, so that neither a worker's loop nor a command waits for a slow client. Without a token it
answers only to names of this machine: a page elsewhere may let its own name point to 127.0.0.1 (DNS rebinding).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from socket import AF_INET6

from menzil.model.errors import UsageError

#: From an Accept header to content type and body.
Render = Callable[[str | None], tuple[str, bytes]]

PATH = "/metrics"
#: Seconds that a client may take for its request, and clients at once.
PATIENCE, MOST = 10.0, 16
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


def new_token() -> tuple[str, str]:
    """A token for the scraper, and its SHA-256 for the server."""
    token = f"mz_{secrets.token_urlsafe(32)}"
    return token, hashlib.sha256(token.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen, and the SHA-256 of the token that is asked for."""

    port: int
    host: str = "127.0.0.1"
    digest: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse an address beyond this machine without a token."""
        if self.digest is not None and not _DIGEST.fullmatch(self.digest):
            hint = "give the SHA-256 of the token, as `menzil metrics --new-token` prints it"
            raise UsageError("The token of the metrics is not 64 hexadecimal digits.", hint=hint)
        if self.digest is None and not _is_loopback(self.host):
            sentence = (
                f"{self.host} is not this machine alone, and there is no token: every client could read the metrics."
            )
            raise UsageError(sentence, hint="make one with `menzil metrics --new-token`")


class Served:
    """The page while it is served."""

    def __init__(self, listen: Listen, render: Render) -> None:
        """Begin to serve."""
        kind = _SixServer if ":" in listen.host else _Server
        try:
            self._server = kind((listen.host, listen.port), _handler(listen, render))
        except OSError as error:
            sentence = f"The metrics cannot be served at {listen.host}, port {listen.port}: {error.strerror or error}."
            raise UsageError(sentence, hint="choose another port; 0 takes a free one") from None
        self.port = int(self._server.server_address[1])
        shown = f"[{listen.host}]" if ":" in listen.host else listen.host
        self.url = f"http://{shown}:{self.port}{PATH}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, name="menzil-metrics", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = MOST


class _SixServer(_Server):
    address_family = AF_INET6


def _handler(listen: Listen, render: Render) -> type[BaseHTTPRequestHandler]:
    room = threading.BoundedSemaphore(MOST)

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version, protocol_version = "menzil", "", "HTTP/1.1"
        timeout = PATIENCE

        def do_GET(self) -> None:
            if not room.acquire(blocking=False):
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", b"Too many at once.\n")
                return
            try:
                self._get()
            finally:
                room.release()

        def do_HEAD(self) -> None:
            self.do_GET()

        def _get(self) -> None:
            plain = "text/plain; charset=utf-8"
            if listen.digest is None and _bare(self.headers.get("host", "")) not in _LOCAL:
                self._answer(HTTPStatus.BAD_REQUEST, plain, b"These metrics are for this machine alone.\n")
            elif self.path.partition("?")[0] != PATH:
                self._answer(HTTPStatus.NOT_FOUND, plain, b"There is only /metrics.\n")
            elif listen.digest is not None and not _has_token(self.headers.get("authorization", ""), listen.digest):
                self._answer(HTTPStatus.UNAUTHORIZED, plain, b"A token is needed.\n")
            else:
                content_type, body = render(self.headers.get("accept"))
                self._answer(HTTPStatus.OK, content_type, body)

        def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(body)))
            self.send_header("cache-control", "no-store")
            self.send_header("x-content-type-options", "nosniff")
            if status == HTTPStatus.UNAUTHORIZED:
                self.send_header("www-authenticate", 'Bearer realm="menzil"')
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: a scrape every few seconds is no event, and a URL may hold a secret."""

    return Handler


def _has_token(authorization: str, digest: str) -> bool:
    kind, _, token = authorization.partition(" ")
    given = hashlib.sha256(token.strip().encode("utf-8", "surrogateescape")).hexdigest()
    return hmac.compare_digest(given, digest) and kind.lower() == "bearer"


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _bare(host: str) -> str:
    """The name in a Host header, without its port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host
