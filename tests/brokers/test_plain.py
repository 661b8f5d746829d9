"""The quick way of plain messages writes the same bytes as the way of all others."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from menzil.deliver.broker.envelope import compose
from menzil.deliver.broker.errors import MessageError
from menzil.deliver.kafka.record import Records
from menzil.deliver.nats.publication import head, plain_head
from menzil.deliver.redis.entry import Entries
from menzil.model.message import Message
from menzil.model.wire import json_loads

SENT = 830_000_000_123_456


def row(
    content: bytes | None,
    payload: bytes | None,
    key: str | None,
    attempt: int = 1,
    sent: int = SENT,
    more: Mapping[str, bytes] = MappingProxyType({}),
) -> Message:
    """A message as it comes from the database."""
    about = (more.get("headers"), more.get("correlation_id"), more.get("metadata"))
    time = sent.to_bytes(8, "big", signed=True)
    made: Any = (77, "bench", content, payload, None, attempt, *about, key, 0, 0, time, None, None, None, 5)
    return Message.from_row(made, json_loads)


PLAIN = [
    row(None, b'\x01{"a": 1}', None),
    row(b"raw", None, "kı", 3),
    row(b"", None, ""),
    row(None, b"\x01null", "k", 2, SENT // 1_000_000 * 1_000_000),
    row(None, b"\x01null", "k", 2, -5),
]


@pytest.mark.parametrize("message", PLAIN, ids=range(len(PLAIN)))
def test_both_ways_write_the_same(message: Message) -> None:
    envelope, plain = compose(message, {}, None, None), message.plain
    assert plain is not None
    for dedup in (True, False):
        for stream in (None, "S"):
            assert plain_head(plain, dedup=dedup, stream=stream) == head(
                envelope, dedup=dedup, stream=stream, ttl=False
            )
    entries = Entries({"stream": "s", "dedup_seconds": 5, "maxlen": 9})
    assert entries.of_plain(plain, b"") == entries.plain(envelope)
    assert entries.of_plain(plain, b"x" * 40) == entries.once(envelope, b"x" * 40)
    assert Records({}).of_plain(plain) == Records({}).of(envelope)


@pytest.mark.parametrize("name", ["headers", "correlation_id", "metadata"])
def test_a_message_with_more_is_not_plain(name: str) -> None:
    assert row(b"x", None, None, more={name: b"\x01{}"}).plain is None
    assert Message(1, "bench", {}).plain is None


def test_what_has_to_be_judged_takes_the_other_way() -> None:
    plain = PLAIN[0].plain
    assert plain is not None
    assert Records({"max_message_bytes": 20}).of_plain(plain) is None
    assert Records({"key": "message_id"}).of_plain(plain) is None
    bad = row(b"x", None, "a\r\nNats-Msg-Id: b").plain
    assert bad is not None
    with pytest.raises(MessageError):
        plain_head(bad, dedup=True, stream=None)
