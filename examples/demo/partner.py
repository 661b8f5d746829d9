"""The demo's end of the receiver: starts it, tells it what to do, and asks what came."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

Act = dict[str, Any]


class Request(NamedTuple):
    """One request as the receiver wrote it down. Times are those of time.monotonic(), which all processes share."""

    path: str
    id: str | None
    attempt: int
    correlation_id: str | None
    signed: bool | None
    began: float
    ended: float | None
    status: int | None

    @property
    def message_id(self) -> int:
        """The message it carried: the name it has on the wire begins with its id."""
        return int((self.id or "msg_0").split("_")[1])

    @property
    def accepted(self) -> bool:
        """Whether it was answered with a success, and the client was still connected."""
        return self.status is not None and 200 <= self.status < 300


class Partner:
    """A receiver in a process of its own; it ends with this one, however this one ends."""

    def __init__(self) -> None:
        # By its path and isolated: it shares no code with what delivers to it.
        command = [sys.executable, "-I", str(Path(__file__).with_name("receiver.py"))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self.port = int(self._heard())

    def url(self, path: str) -> str:
        """Where deliveries go."""
        return f"http://127.0.0.1:{self.port}{path}"

    def play(self, path: str, *script: Act, then: Act | None = None) -> None:
        """Do this to the next requests, one each, and `then` to all others: 200 unless given."""
        self._order({"do": "play", "path": path, "script": list(script), "then": then or {}})

    def expect_signature(self, path: str, secret: str) -> None:
        """Agree upon a secret."""
        self._order({"do": "secret", "path": path, "secret": secret})

    def release(self, path: str, count: int = 1000) -> None:
        """Answer requests that are held, the oldest first."""
        self._order({"do": "release", "path": path, "count": count})

    def requests(self, path: str | None = None) -> list[Request]:
        """Everything that came, or what came for one path, oldest first."""
        return [Request(**one) for one in self._order({"do": "tell"})["requests"] if path in (None, one["path"])]

    def held(self, path: str) -> int:
        """How many requests wait for an answer right now."""
        return sum(request.ended is None for request in self.requests(path))

    @property
    def connections(self) -> int:
        """How many connections were ever made to it."""
        return int(self._order({"do": "tell"})["connections"])

    def close(self) -> None:
        """End it."""
        process = self._process
        assert process.stdin
        assert process.stdout
        with suppress(OSError):  # it may be gone already
            process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def _order(self, order: dict[str, Any]) -> Any:
        assert self._process.stdin
        print(json.dumps(order), file=self._process.stdin, flush=True)
        return json.loads(self._heard())

    def _heard(self) -> str:
        assert self._process.stdout
        watch = threading.Timer(20, self._process.kill)  # a receiver that says nothing must not keep the show waiting
        watch.start()
        try:
            line = self._process.stdout.readline()
        finally:
            watch.cancel()
        if not line:
            raise RuntimeError(f"The receiver is gone, exit code {self._process.wait()}.")
        return line
