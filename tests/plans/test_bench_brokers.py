"""What the benchmark says about brokers is about messages that they hold."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import redis

from bench.brokers import places
from bench.loads import publish
from bench.sections import brokers
from bench.server import CHANNEL

NewDb = Callable[[], str]


def test_every_message_of_a_drained_backlog_is_in_the_stream(new_db: NewDb) -> None:
    dsn = new_db()
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select menzil.channel_set(%s)", (CHANNEL,))
    with places("redis", missing=print) as found:
        brokers.prepare(dsn, found)
        drained = brokers.drain(dsn, ["redis"], 50)
        assert drained.rate > 0
        assert brokers.drain(dsn, [CHANNEL], 20, handler=True).rate > 0
        with redis.Redis(port=found["redis"].config["port"]) as client:
            assert client.xlen("bench") == 50
            found["redis"].clear()
            assert client.xlen("bench") == 0


def test_both_sides_publish_what_they_count() -> None:
    with places("kafka", "nats", "redis", missing=print) as found:
        assert list(found) == ["kafka", "nats", "redis"]
        for kind, place in found.items():
            for load in (publish.adapter, publish.bare):
                assert load("", kind=kind, config=place.config)() == publish.SIZE
        with redis.Redis(port=found["redis"].config["port"]) as client:
            assert client.xlen("bench") == 2 * publish.SIZE
