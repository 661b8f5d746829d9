"""One NATS and one Valkey for a test process; tests use subjects and streams of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trustme

from tests.brokers.servers import NatsServer, Valkey


@pytest.fixture(scope="session")
def valkey() -> Iterator[Valkey]:
    with Valkey() as server:
        yield server


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    with NatsServer() as server:
        yield server


@pytest.fixture(scope="session")
def ca() -> trustme.CA:
    """A CA that no system trusts."""
    return trustme.CA()
