"""The proxy sees commits go by, however the stream is cut into pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.torture import wire


def message(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4) + body


STARTUP = message(b"", b"\x00\x03\x00\x00user\x00me\x00\x00")
UP = [STARTUP, message(b"P", b"\x00COMMIT\x00\x00\x00"), message(b"S", b""), message(b"Q", b"commit\x00")]
DOWN = [message(b"C", b"COMMIT\x00"), message(b"Z", b"I"), message(b"C", b"SELECT 1\x00"), message(b"Z", b"T")]


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 1000])
@pytest.mark.parametrize(("client", "messages"), [(True, UP), (False, DOWN)])
def test_messages_come_out_whole_whatever_the_pieces(client: bool, messages: list[bytes], step: int) -> None:
    frames, stream = wire.Frames(client=client), b"".join(messages)
    edges = [*range(0, len(stream), step), len(stream)]
    found = [whole for begin, end in pairwise(edges) for _, whole in frames.feed(stream[begin:end])]
    assert found == messages


def test_a_commit_is_known_in_both_directions() -> None:
    up = [wire.asks_commit(kind, whole) for kind, whole in wire.Frames(client=True).feed(b"".join(UP))]
    assert up == [False, True, False, True]
    down = list(wire.Frames(client=False).feed(b"".join(DOWN)))
    assert [wire.tells_commit(*frame) for frame in down] == [True, False, False, False]
    assert [wire.is_idle(*frame) for frame in down] == [False, True, False, False]
    assert [wire.tells_rows(*frame) for frame in down] == [False, False, True, False]


def test_a_message_that_only_speaks_of_a_commit_is_none() -> None:
    insert = message(b"Q", b"insert into words values ('this is not the end: COMMIT')\x00")
    assert not wire.asks_commit(insert[:1], insert)
