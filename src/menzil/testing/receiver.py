"""A real HTTP receiver for webhooks: it verifies signatures, keeps what came, and misbehaves when told to."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from menzil.client import Menzil
from menzil.model.durations import Seconds, in_seconds
from menzil.model.errors import UsageError

#: Seconds by which the clock of a sender may be off, as Standard Webhooks recommends.
TOLERANCE = 300


@dataclass(frozen=True, slots=True)
class Received:
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    verified: bool
    status: int | None  # what it was answered with; None when the connection was closed

    @property
    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)

    @property
    def attempt(self) -> int:
        """Which try of its message this was."""
        return int(self.headers["x-menzil-attempt"])


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request gets."""

    status: int = 204
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    after: float = 0.0
    closes: bool = False


class Receiver:
    """Listens on a free port of this machine. Requests without a good signature are answered with 401."""

    def __init__(self, mq: Menzil) -> None:
        self._mq = mq
        self.secret = "whsec_" + base64.b64encode(os.urandom(32)).decode()
        self.requests: list[Received] = []
        self._answers: deque[Answer] = deque()
        self._usual = Answer()
        self._changed = threading.Condition()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}/"

    def endpoint(self, name: str, *, path: str = "", **config: Any) -> str:
        """Create an endpoint that delivers here, signed, and let this database deliver to this machine."""
        allowed = self._mq.setting("http_allowed_networks")
        if "127.0.0.1/32" not in allowed:
            self._mq.set_setting("http_allowed_networks", ", ".join(filter(None, [allowed, "127.0.0.1/32"])))
        whole = {"url": self.url + path.lstrip("/"), "signing": {"secret": self.secret}, **config}
        self._mq.create_endpoint(name, "http", whole)
        return name

    # How it answers

    def fail(self, times: int = 1, *, status: int = 503, retry_after: int | None = None) -> None:
        """Answer the next requests with this status."""
        headers = {} if retry_after is None else {"retry-after": str(retry_after)}
        self._next(times, Answer(status, b"told to fail", headers))

    def slow(self, seconds: Seconds, times: int = 1) -> None:
        """Take so long for the answer to the next requests."""
        self._next(times, Answer(after=in_seconds("seconds", seconds)))

    def close_connection(self, times: int = 1) -> None:
        """Read the next requests and hang up without an answer."""
        self._next(times, Answer(closes=True))

    def answer(self, status: int, body: bytes | str = b"", headers: Mapping[str, str] | None = None) -> None:
        """Answer so from now on, whenever nothing else was asked for."""
        self._usual = Answer(status, body.encode() if isinstance(body, str) else body, headers or {})

    def _next(self, times: int, answer: Answer) -> None:
        if type(times) is not int or times < 1:
            raise UsageError("times is a whole number, 1 or more.", hint="answer() says what every request gets")
        self._answers.extend([answer] * times)

    # What came

    def wait(self, count: int = 1, timeout: Seconds = 5) -> list[Received]:
        """Wait until so many requests have come, and return all; fail when they do not come in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, in_seconds("timeout", timeout)):
                raise AssertionError(f"{len(self.requests)} requests came, not {count}.")
            return list(self.requests)

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def _verify(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Check the signature as Standard Webhooks says, without the code that made it."""
        stamp = headers.get("webhook-timestamp", "")
        if not stamp.isdecimal() or abs(time.time() - int(stamp)) > TOLERANCE:
            return False
        signed = f"{headers.get('webhook-id', '')}.{stamp}.".encode() + body
        key = base64.b64decode(self.secret.removeprefix("whsec_"))
        good = "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
        given = headers.get("webhook-signature", "").split(" ")
        return any(hmac.compare_digest(good, one) for one in given)

    def _take(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        verified = self._verify(headers, body)
        with self._changed:
            if not verified:
                answer = Answer(401, b"the signature is missing or wrong")
            else:
                answer = self._answers.popleft() if self._answers else self._usual
            status = None if answer.closes else answer.status
            self.requests.append(Received(method, path, headers, body, verified, status))
            self._changed.notify_all()
        return answer


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a slow answer does not hold up the end of the test

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, *_: Any) -> None:
        """A worker that gave up waiting has closed the connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.receiver._take(self.command, self.path, headers, body)
        time.sleep(answer.after)
        # A connection for each request: a client sends again at once where one that it kept was closed.
        self.close_connection = True
        if answer.closes:
            return
        self.send_response(answer.status)
        self.send_header("connection", "close")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status != 204:
            self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        if answer.status != 204:
            self.wfile.write(answer.body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815

    def log_message(self, *_: object) -> None:
        """`requests` has it."""
