"""One RabbitMQ for a test process: with TLS, with logins by certificate, and with a limit for the size of messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.brokers.amqp.rabbit import Rabbit, needs_rabbit
from tests.brokers.servers import free_port

LARGEST_MESSAGE = 1_000_000


@pytest.fixture(scope="session")
def rabbit(ca: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rabbit]:
    needs_rabbit()
    place, tls_port = tmp_path_factory.mktemp("rabbit"), free_port()
    files = _files(ca, place)
    lines = (
        f"listeners.ssl.1 = 127.0.0.1:{tls_port}\nmax_message_size = {LARGEST_MESSAGE}\n"
        f"ssl_options.cacertfile = {files['ca']}\nssl_options.certfile = {files['cert']}\n"
        f"ssl_options.keyfile = {files['key']}\nssl_options.verify = verify_peer\n"
        "ssl_options.fail_if_no_peer_cert = false\nssl_cert_login_from = common_name\n"
        "auth_mechanisms.1 = PLAIN\nauth_mechanisms.2 = EXTERNAL\n"
    )
    with Rabbit(lines=lines, plugins="rabbitmq_auth_mechanism_ssl", tls_port=tls_port) as server:
        yield server


def _files(ca: trustme.CA, place: Path) -> dict[str, Path]:
    issued = ca.issue_cert("127.0.0.1")
    files = {name: place / f"{name}.pem" for name in ("ca", "cert", "key")}
    ca.cert_pem.write_to_path(files["ca"])
    files["cert"].write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(files["key"])
    return files
