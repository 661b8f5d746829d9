"""An HTTP server that answers as it is told, and may keep everybody waiting."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver:
    """What arrived, and what is answered: `status`, `headers` and `answer`, once `gate` is open."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/hook"
        self.status = 200
        self.answer = b""
        self.headers: dict[str, str] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.bodies: list[str] = []


@contextmanager
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            told.bodies.append(self.rfile.read(length).decode())
            told.gate.wait(30)
            self.send_response(told.status)
            self.send_header("content-length", str(len(told.answer)))
            for name, value in list(told.headers.items()):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(told.answer)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    told = Receiver(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        told.gate.set()
        server.shutdown()
        server.server_close()
