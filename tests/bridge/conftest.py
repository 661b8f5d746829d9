"""The brokers of tests/brokers as sources; tests use streams of their own."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.brokers.amqp.conftest import rabbit
from tests.brokers.conftest import ca, nats_server, valkey

__all__ = ["ca", "nats_server", "rabbit", "valkey"]


@pytest.fixture
def conn(db: str) -> Iterator[psycopg.Connection]:
    """A queue with the channel `work`, whose bridges may reach loopback."""
    with psycopg.connect(db, autocommit=True) as connection:
        connection.execute("select menzil.set_setting('broker_allowed_networks', '127.0.0.0/8')")
        connection.execute("select menzil.channel_set('work')")
        yield connection
