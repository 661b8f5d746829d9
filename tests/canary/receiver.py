"""A receiver that tells everything it was told: its answers hold the whole request, headers and body."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Echo:
    """What was asked so far, and the status of the next answers."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.status = 503
        self.requests: list[str] = []


@contextmanager
def echo() -> Iterator[Echo]:
    """A server on this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode("utf-8", "replace")
            seen = json.dumps({"path": self.path, "headers": dict(self.headers.items()), "body": body})
            told.requests.append(seen)
            text = (seen + "\n" + self.path + "\n" + str(self.headers)).encode()
            self.send_response(told.status)
            self.send_header("content-type", "text/plain")
            self.send_header("x-request-id", str(self.headers.get("authorization")))
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    told = Echo(server.server_address[1])
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
