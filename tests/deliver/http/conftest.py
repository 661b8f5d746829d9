"""Certificates of a CA that nobody else trusts."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
import trustme


@dataclass(frozen=True)
class Authority:
    """A CA, and what it signs."""

    ca: trustme.CA

    @property
    def pem(self) -> str:
        return self.ca.cert_pem.bytes().decode()

    def server(self, *names: str, expired: bool = False, clients: trustme.CA | None = None) -> ssl.SSLContext:
        """The context of a server with these names; `clients` must have signed those who connect."""
        end = datetime(2020, 2, 1, tzinfo=UTC) if expired else None
        issued = self.ca.issue_cert(*names, not_before=datetime(2020, 1, 1, tzinfo=UTC), not_after=end)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        issued.configure_cert(context)
        if clients:
            clients.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client(self) -> dict[str, str]:
        """`tls.cert` and `tls.key` of a client."""
        issued = self.ca.issue_cert("client@example.org")
        cert = b"".join(pem.bytes() for pem in issued.cert_chain_pems).decode()
        return {"cert": cert, "key": issued.private_key_pem.bytes().decode()}


@pytest.fixture(scope="session")
def authority() -> Authority:
    """The CA of the receivers."""
    return Authority(trustme.CA())


@pytest.fixture(scope="session")
def stranger() -> Authority:
    """Another CA."""
    return Authority(trustme.CA())
