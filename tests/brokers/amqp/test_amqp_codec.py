"""Our own writing and reading of frames against pamqp, with any text that a message may have."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import body, commands, frame, header

from menzil.deliver.amqp.frames import LARGEST, Confirm, Frames
from menzil.deliver.amqp.publication import Publications
from menzil.deliver.broker.envelope import compose
from menzil.deliver.broker.session import CodecError
from tests.brokers.stage import message

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=60).map(str.strip)
NAMES = st.from_regex(r"x-[a-z]{1,20}", fullmatch=True)


def frames_of(data: bytes) -> list[Any]:
    found = []
    while data:
        size, channel, one = frame.unmarshal(data)
        assert channel == 1
        found.append(one)
        data = data[size:]
    return found


@given(
    key=st.none() | TEXT,
    headers=st.dictionaries(NAMES, TEXT, max_size=5),
    kind=TEXT.filter(bool),
    content=st.binary(max_size=10_000),
    priority=st.integers(0, 10),
    attempt=st.integers(1, 2**31 - 1),
)
def test_pamqp_reads_what_we_write(
    key: str | None, headers: dict[str, str], kind: str, content: bytes, priority: int, attempt: int
) -> None:
    sent = message(
        content=content, ordering_key=key, headers=headers, metadata={"event_type": kind}, priority=priority,
        attempt=attempt, created_at=datetime(2026, 1, 2, 3, 4, 5, 999999, UTC),
    )  # fmt: skip
    publications = Publications({"exchange": "ex", "routing_key": "rk"}, 4096)
    publish, head, *parts = frames_of(publications.frames(compose(sent, {}, None, None)))
    assert isinstance(publish, commands.Basic.Publish)
    assert (publish.exchange, publish.routing_key, publish.mandatory, publish.immediate) == ("ex", "rk", True, False)
    assert isinstance(head, header.ContentHeader)
    assert head.body_size == len(content)
    found = head.properties
    assert (found.message_id, found.message_type, found.app_id) == (sent.wire_id, kind, "menzil")
    assert (found.delivery_mode, found.priority, found.content_type) == (2, priority, "application/octet-stream")
    assert found.timestamp == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert (found.correlation_id, found.expiration, found.reply_to, found.user_id) == (None, None, None, None)
    own = {"menzil-attempt": attempt} | ({} if key is None else {"menzil-key": key})
    assert found.headers == headers | own
    assert all(isinstance(part, body.ContentBody) for part in parts)
    assert b"".join(part.value for part in parts) == content


@given(cuts=st.lists(st.integers(1, 200), max_size=20))
def test_frames_are_read_from_pieces_of_any_size(cuts: list[int]) -> None:
    said: list[tuple[Any, int]] = [
        (commands.Basic.Ack(7, True), 1),
        (commands.Basic.Nack(2**63 - 1, False, False), 1),
        (commands.Connection.Blocked("low on memory"), 0),
        (commands.Basic.Return(312, "NO_ROUTE", "", "q"), 1),
        (header.ContentHeader(0, 3, commands.Basic.Properties(message_id="m")), 1),
        (body.ContentBody(b"abc"), 1),
    ]
    data, reader, found = b"".join(frame.marshal(one, channel) for one, channel in said), Frames(), []
    for cut in [*cuts, len(data)]:
        found += list(reader.feed(data[:cut]))
        data = data[cut:]
    assert [channel for channel, _ in found] == [channel for _, channel in said]
    assert found[0][1] == Confirm(7, True, True)
    assert found[1][1] == Confirm(2**63 - 1, False, False)


@given(data=st.binary(max_size=300), kind=st.sampled_from([1, 2, 3, 8]))
def test_noise_in_a_frame_is_refused_and_never_raises_anything_else(data: bytes, kind: int) -> None:
    try:
        list(Frames().feed(struct.pack(">BHI", kind, 1, len(data)) + data + b"\xce"))
        list(Frames().feed(data))
    except CodecError:
        pass
    assert len(data) < LARGEST


def test_a_confirm_that_does_not_end_where_it_should_is_refused() -> None:
    data = frame.marshal(commands.Basic.Ack(1), 1)
    with pytest.raises(CodecError, match="does not end"):
        list(Frames().feed(data[:-1] + b"\xcd"))


@pytest.mark.parametrize(
    ("seconds", "least", "most"),
    [(100, 90_000, 100_000), (-5, 1, 1), (4_294_900, 4_294_800_000, 4_294_900_000), (4_295_000, None, None)],
)
def test_what_is_left_of_a_life_goes_along_in_milliseconds(seconds: int, least: int | None, most: int | None) -> None:
    sent = message(1, expires_at=datetime.now(UTC) + timedelta(seconds=seconds), correlation_id=UUID(int=7))
    publications = Publications({"exchange": "", "routing_key": "q", "mandatory": False, "persistent": False}, 4096)
    publish, head, _ = frames_of(publications.frames(compose(sent, {}, None, None)))
    assert publish.mandatory is False
    assert (head.properties.delivery_mode, head.properties.correlation_id) == (1, str(UUID(int=7)))
    if least is None or most is None:
        assert head.properties.expiration is None
    else:
        assert least <= int(head.properties.expiration) <= most
