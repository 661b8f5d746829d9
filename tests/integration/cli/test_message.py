"""`menzil message` as a user types it."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from menzil import Menzil
from menzil.ops import looking_messages
from tests.integration.cli.user import User


def test_a_message_shows_its_whole_life(user: User, mq: Menzil) -> None:
    sent = user.gets("send", "work", '{"a": "b"}', "--header", "x-a=1")
    waiting = user.gets("message", "show", sent)
    assert "waits for its turn" in waiting
    (message,) = mq.dequeue(worker="w-1")
    assert "by w-1, leased until" in user.gets("message", "show", sent)
    mq.fail(message, "HTTP 503 Service Unavailable", retry_after=0.001)
    (message,) = mq.dequeue(worker="w-2")
    mq.complete(message)
    lines = [line.split() for line in user.gets("message", "show", sent).splitlines() if line.startswith("20")]
    assert [line[1] for line in lines] == ["sent", "failed", "completed", "completed"]
    assert lines[1][2:4] == ["attempt", "1,"]
    found = user.reads("message", "show", sent)
    assert [attempt["outcome"] for attempt in found["attempts"]] == ["failed", "completed"]
    assert found["attempts"][0]["error"] == "[RETRYABLE] HTTP 503 Service Unavailable"
    assert found["attempts"][0]["worker"] == "w-1"
    assert (found["status"], found["headers"], found["payload"]) == ("completed", {"x-a": "1"}, {"a": "b"})


def test_what_a_stranger_wrote_cannot_move_the_cursor(user: User, mq: Menzil) -> None:
    sent = user.gets("send", "work", '{"evil": "\\u001b[2Jgone \\u009b"}')
    (message,) = mq.dequeue()
    mq.fail(message, "\x1b]0;title\x07\nsecond line", permanent=True)
    for words in (["message", "show", sent], ["message", "list"]):
        shown = user.types(*words).output
        assert not {"\x1b", "\x07", "\x9b"} & set(shown)
        assert "title" in shown


def test_bytes_are_shown_by_their_number_and_whole_in_json(user: User) -> None:
    sent = user.gets("send", "work", "--bytes", "-", stdin=b"\x00\xff")
    assert user.gets("message", "show", sent).splitlines()[-1] == "2 bytes"
    assert user.reads("message", "show", sent)["content"] == "AP8="


def test_a_list_goes_from_the_newest_to_the_oldest_page_by_page(user: User, mq: Menzil) -> None:
    ids = [int(user.gets("send", "work", str(number))) for number in range(5)]
    mq.complete(mq.dequeue()[0])
    first = user.reads("message", "list", "--limit", "3")
    assert [one["id"] for one in first["messages"]] == ids[:1:-1]
    assert first["next_before"] == ids[2]
    second = user.reads("message", "list", "--limit", "3", "--before", str(ids[2]))
    assert [(one["id"], one["status"]) for one in second["messages"]] == [(ids[1], "pending"), (ids[0], "completed")]
    assert second["next_before"] is None
    assert f"--before {ids[2]}" in user.types("message", "list", "--limit", "3").stderr


@pytest.mark.parametrize("status", looking_messages.STATUSES)
def test_a_list_may_be_of_one_status_and_channel(user: User, mq: Menzil, status: str) -> None:
    user.gets("channel", "set", "other")
    words = ["send", "other", "1"]
    sent = int(user.gets(*words, *(["--expires", "0"] if status == "expired" else [])))
    user.gets("send", "work", "1")
    if status == "cancelled":
        user.gets("message", "cancel", str(sent))
    elif status == "expired":
        mq.mark_expired()
    elif status != "pending":
        (message,) = mq.dequeue(channels="other")
        if status == "completed":
            mq.complete(message)
        elif status == "failed":
            mq.fail(message, "no", permanent=True)
    found = user.reads("message", "list", "--status", status, "--channel", "other")
    assert [(one["id"], one["status"]) for one in found["messages"]] == [(sent, status)]
    user.gets("channel", "set", "third")
    assert user.reads("message", "list", "--status", status, "--channel", "third")["messages"] == []


def test_a_filter_looks_only_so_far_and_says_where_to_go_on(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    user.gets("channel", "set", "rare")
    rare = int(user.gets("send", "rare", "1"))
    user.gets("send", "work", "--batch", stdin="1\n" * 10)
    monkeypatch.setattr("menzil.cli.message.SCAN", 4)
    pages: list[Any] = []
    before: list[str] = []
    while not pages or pages[-1]["next_before"]:
        pages.append(user.reads("message", "list", "--channel", "rare", *before))
        before = ["--before", str(pages[-1]["next_before"])]
    assert [one["id"] for page in pages for one in page["messages"]] == [rare]
    assert len(pages) == 3


def test_peek_shows_what_comes_next_and_takes_nothing(user: User, mq: Menzil) -> None:
    low = int(user.gets("send", "work", '{"n": 1}'))
    high = int(user.gets("send", "work", '{"n": 2}', "--priority", "9"))
    found = user.reads("message", "peek", "work")
    assert [(one["id"], one["payload"]) for one in found] == [(high, {"n": 2}), (low, {"n": 1})]
    assert user.gets("message", "peek", "work", "--limit", "1").splitlines()[1].split()[0] == str(high)
    assert len(mq.dequeue(2)) == 2
    assert "Nothing waits" in user.types("message", "peek", "work").stderr


def test_a_payload_too_deep_for_python_is_shown_all_the_same(user: User) -> None:
    with psycopg.connect(user.dsn) as conn:
        (sent,) = conn.execute("select menzil.send('work', (repeat('[', 3000) || repeat(']', 3000))::jsonb)").fetchone()
    assert "[[[[" in user.gets("message", "show", str(sent))
    assert "[[[[" in user.reads("message", "show", str(sent))["payload"]
    assert "nested too deeply" in user.gets("message", "peek", "work")


def test_cancel_says_for_each_message_whether_it_was_in_time(user: User, mq: Menzil) -> None:
    first, second = user.gets("send", "work", "1"), user.gets("send", "work", "2")
    mq.dequeue()
    result = user.types("message", "cancel", first, second)
    assert (result.exit_code, result.stdout) == (1, f"{first} too late\n{second} cancelled\n")


def test_retry_now_hurries_a_message_that_waits_for_its_time(user: User, mq: Menzil) -> None:
    sent = user.gets("send", "work", "1", "--delay", "1h")
    assert mq.dequeue() == []
    assert user.gets("message", "retry-now", sent) == f"{sent} due now"
    assert len(mq.dequeue()) == 1
    result = user.types("message", "retry-now", sent)
    assert (result.exit_code, result.stdout) == (1, f"{sent} waits for no time\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "999"], "There is no message 999."),
        (["show", "first"], "'first' is not a valid integer"),
        (["cancel", "999"], "There is no message 999."),
        (["cancel"], "Missing argument"),
        (["retry-now", "999"], "There is no message 999."),
        (["peek", "nowhere"], "There is no channel or endpoint named 'nowhere'."),
        (["list", "--status", "lost"], "'lost' is not one of"),
        (["list", "--limit", "1000000"], "is not in the range"),
        (["show", "99999999999999999999"], "out of range"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_one_sentence(user: User, words: list[str], said: str) -> None:
    assert said in user.fails("message", *words)
