"""A webhook: an order is committed, a worker delivers it, the receiver stumbles once and verifies the signature.

Runs on the database in MENZIL_DSN, or on an embedded PostgreSQL. The receiver is a thread of this program; the worker
would be a process of its own: `menzil worker`.
"""

import base64
import hashlib
import hmac
import logging
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import psycopg

import menzil

SECRET = "whsec_" + base64.b64encode(os.urandom(32)).decode()


class Receiver(BaseHTTPRequestHandler):
    """What the other side does: verify, and answer. It is not well on the first try."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(SECRET.removeprefix("whsec_"))
        wanted = "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
        verified = hmac.compare_digest(wanted, self.headers["webhook-signature"])
        attempt = self.headers["x-menzil-attempt"]
        status = 503 if attempt == "1" else 204
        print(f"attempt {attempt}: {body.decode()}, {'verified' if verified else 'forged'}, answered {status}")
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """It prints enough."""


receiver = HTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=receiver.serve_forever, daemon=True).start()
logging.getLogger("menzil.worker").setLevel(logging.ERROR)  # it would warn about the first try

with menzil.Menzil() as mq, psycopg.connect(mq.dsn) as conn:
    mq.set_setting("http_allowed_networks", "127.0.0.1/32")  # addresses inside are closed unless a setting opens them
    config = {"url": f"http://127.0.0.1:{receiver.server_port}/orders", "signing": {"secret": SECRET}}
    try:
        mq.create_endpoint("partner", "http", config)
    except menzil.NameTakenError:
        mq.alter_endpoint("partner", config)
    mq.set_retry_policy("partner", {"max_retries": 5, "base_delay_seconds": 0})

    conn.execute("create table if not exists shipments (id bigserial, product text)")
    conn.execute("insert into shipments (product) values ('tea')")
    message_id = mq.send("partner", {"product": "tea"}, conn=conn)
    conn.commit()  # both, or neither

    menzil.Worker(mq.dsn, channels=["partner"]).run(once=True)
    told = mq.status(message_id)
    print(f"{told.status} after {told.attempts} attempts")
