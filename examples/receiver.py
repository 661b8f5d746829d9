"""A webhook endpoint to try menzil with: prints each request, and answers 200. `python examples/receiver.py [PORT]`"""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

HOST = "127.0.0.1"
PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 9000


class Receiver(BaseHTTPRequestHandler):
    """Answers every POST."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        print(f"{self.path} {self.headers['Webhook-Id']} {body.decode()}", flush=True)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing else."""


if __name__ == "__main__":
    print(f"waiting at http://{HOST}:{PORT}/", flush=True)
    HTTPServer((HOST, PORT), Receiver).serve_forever()
