"""Lists of messages: what a search finds, how far it looks, and where it goes on."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from menzil import Menzil
from menzil.model.errors import UnknownNameError
from menzil.model.redact import Redactor
from menzil.watch.messages import search
from tests.integration.watch.conftest import Seat


def found(seat: Seat, line: str, **more: Any) -> list[int]:
    return [row["id"] for row in search(seat, line, **more)["messages"]]


def fail(mq: Menzil, channel: str, error: str) -> int:
    (message,) = mq.dequeue(channels=channel)
    mq.fail(message, error)
    return int(message.id)


def test_a_list_is_newest_first_and_goes_on_where_it_ended(seat: Seat, mq: Menzil) -> None:
    ids = [mq.send("work", {"n": n}) for n in range(5)]
    first = search(seat, limit=2)
    assert [row["id"] for row in first["messages"]] == [ids[4], ids[3]]
    second = search(seat, limit=2, before=first["next_before"])
    assert [row["id"] for row in second["messages"]] == [ids[2], ids[1]]
    last = search(seat, limit=2, before=second["next_before"])
    assert ([row["id"] for row in last["messages"]], last["next_before"]) == ([ids[0]], None)


def test_qualifiers_narrow_the_list(seat: Seat, mq: Menzil) -> None:
    mq.channel_set("mail")
    corr = uuid4()
    a = mq.send("work", {}, ordering_key="k", correlation_id=corr)
    b = mq.send("mail", {}, idempotency_key="i")
    c = mq.send("mail", {}, correlation_id=corr)
    assert found(seat, "channel:mail") == [c, b]
    assert found(seat, "key:k") == [a]
    assert found(seat, "key:k channel:mail") == []
    assert found(seat, "idem:i") == [b]
    assert found(seat, f"corr:{corr}") == [c, a]
    assert found(seat, f"corr:{corr} channel:work") == [a]
    assert found(seat, f"id:{a},{b}") == [b, a]
    assert found(seat, f"{a} status:completed") == []
    assert found(seat, f"before:{c}") == [b, a]
    assert found(seat, "status:pending since:1h") == [c, b, a]
    assert found(seat, "until:1h") == []
    assert found(seat, "status:failed,completed") == []


def test_errors_are_found_by_a_part_of_their_text_in_any_case(seat: Seat, mq: Menzil) -> None:
    dead = mq.send("work", {})
    fail(mq, "work", "Connection TIMED out: 100% [a-z]")
    mq.send("work", {})
    assert found(seat, 'error:"timed out"') == [dead]
    assert found(seat, 'error:"100% [a"') == [dead]
    assert found(seat, "error:timed%out") == []


def test_messages_in_flight_are_found_without_looking_through_the_history(seat: Seat, mq: Menzil) -> None:
    ids = mq.send_batch("work", [{}] * 3)
    leased = [message.id for message in mq.dequeue(2, channels="work")]
    assert sorted(found(seat, "status:processing")) == sorted(leased)
    assert found(seat, "status:pending") == [one for one in ids if one not in leased]


def test_a_search_looks_through_a_window_and_says_where_it_stopped(seat: Seat, mq: Menzil) -> None:
    mq.channel_set("rare")
    rare = mq.send("rare", {})
    mq.send_batch("work", [{}] * 30)
    page = search(seat, "channel:rare", window=10)
    pages = 1
    while page["next_before"] is not None and not page["messages"]:
        assert page["looked_through"] == 10
        page = search(seat, "channel:rare", window=10, before=page["next_before"])
        pages += 1
    assert [row["id"] for row in page["messages"]] == [rare]
    assert pages == 4


def test_a_key_finds_live_messages_beyond_the_window_once(seat: Seat, mq: Menzil) -> None:
    old = [mq.send("work", {}, ordering_key="k") for _ in range(2)]
    mq.send_batch("work", [{}] * 30)
    new = mq.send("work", {}, ordering_key="k")
    seen: list[int] = []
    page = search(seat, "key:k", window=10)
    seen += [row["id"] for row in page["messages"]]
    assert seen == [new, old[1], old[0]]
    while page["next_before"] is not None:
        page = search(seat, "key:k", window=10, before=page["next_before"])
        seen += [row["id"] for row in page["messages"]]
    assert len(seen) == 3


def test_a_search_in_the_past_begins_there(seat: Seat, mq: Menzil, watched_db: str) -> None:
    old = mq.send_batch("work", [{}] * 20)
    with psycopg.connect(watched_db) as conn:
        # As if they had been sent ten days ago; the month may be the one before.
        conn.execute("select menzil._ensure_archive_months(now() - interval '10 days', 1)")
        conn.execute("update menzil.message set created_at = created_at - interval '10 days'")
    mq.send_batch("work", [{}] * 50)
    page = search(seat, "until:5d", window=10)
    assert [row["id"] for row in page["messages"]] == sorted(old, reverse=True)[:10]
    assert search(seat, "since:5d", window=1000)["looked_through"] == 70
    assert len(search(seat, "since:5d", limit=100)["messages"]) == 50


def test_a_search_that_reaches_the_oldest_time_asked_for_ends(seat: Seat, mq: Menzil, watched_db: str) -> None:
    mq.send_batch("work", [{}] * 40)
    with psycopg.connect(watched_db) as conn:
        conn.execute("select menzil._ensure_archive_months(now() - interval '10 days', 1)")
        conn.execute("update menzil.message set created_at = created_at - interval '10 days'")
    new = mq.send("work", {})
    page = search(seat, "since:1d", window=10)
    assert ([row["id"] for row in page["messages"]], page["next_before"]) == ([new], None)


def test_a_channel_that_is_not_there_is_refused_with_the_nearest_name(seat: Seat, mq: Menzil) -> None:
    with pytest.raises(UnknownNameError) as refused:
        search(seat, "channel:wrok")
    assert "Did you mean work?" in str(refused.value.hint)


def test_error_texts_of_lists_are_redacted(seat: Seat, mq: Menzil) -> None:
    mq.send("work", {})
    fail(mq, "work", "refused: Authorization: Bearer abc")
    (row,) = search(seat, redactor=Redactor(["authorization"]))["messages"]
    assert row["last_error"] == "[RETRYABLE] refused: Authorization: [redacted]"


def test_a_list_says_what_it_asked_for_and_how_large_bodies_are(seat: Seat, mq: Menzil) -> None:
    mq.send("work", {"x": "y" * 100})
    page = search(seat, "channel:work status:pending")
    assert page["search"] == {"channel": "work", "status": "pending"}
    assert page["messages"][0]["bytes"] >= 100
    assert search(seat, "since:2h")["search"].keys() == {"since"}


def test_no_list_counts_the_whole_table(seat: Seat, mq: Menzil) -> None:
    mq.send("work", {})
    for line in ("", "channel:work", "key:k", "idem:i", "since:1h", "until:1h", "error:x", "status:processing"):
        search(seat, line)
    # The rows of a window may be counted, because it has an end.
    assert not [text for text in seat.asked if re.search(r"count\((?!\*\) as passed from w\b|\*\) from q\b)", text)]
