"""`menzil message why`, `life`, `compare`, `show --html` and searches as a user types them."""

from __future__ import annotations

from pathlib import Path

import pytest

from menzil import Menzil
from menzil.ops.searching import WINDOW
from tests.integration.cli.user import User


def test_why_names_the_reason_and_the_repair(user: User, mq: Menzil) -> None:
    sent = user.gets("send", "work", "1")
    user.gets("channel", "pause", "work")
    said = user.gets("message", "why", sent)
    assert said.startswith("channel paused: ")
    assert "→ menzil channel resume work" in said
    found = user.reads("message", "why", sent)
    assert found["id"] == int(sent)
    assert found["why"][0]["reason"] == "channel_paused"
    assert found["why"][0].keys() == {"rank", "reason", "sentence", "since", "until", "blocked_by", "repair"}


def test_the_repair_that_why_names_can_be_typed(user: User, mq: Menzil) -> None:
    sent = user.gets("send", "work", "1")
    user.gets("channel", "pause", "work")
    repair = user.reads("message", "why", sent)["why"][0]["repair"]
    assert repair.split()[0] == "menzil"
    user.gets(*repair.split()[1:])
    assert "channel_paused" not in {reason["reason"] for reason in user.reads("message", "why", sent)["why"]}


def test_why_of_a_message_that_never_was_is_something_to_fix(user: User) -> None:
    result = user.types("message", "why", "999")
    assert (result.exit_code, result.stdout[:8]) == (1, "unknown:")
    assert user.types("message", "why", "999", "--json").exit_code == 1


def test_life_tells_the_message_and_its_relatives(user: User, mq: Menzil) -> None:
    sent = user.gets("send", "work", "1")
    mq.fail(mq.dequeue()[0], "HTTP 500", permanent=True)
    again = user.gets("dlq", "redrive", user.gets("dlq", "list").splitlines()[1].split()[0])
    lines = user.gets("message", "life", sent).splitlines()
    assert lines[0].split()[1] == "sent"
    assert f"[{again}]" in "\n".join(lines)
    assert lines[-1].startswith(f"{again}  redrive of {sent}, pending in work")
    found = user.reads("message", "life", sent)
    assert found.keys() == {"id", "life", "family"}
    before = user.gets("message", "life", again).splitlines()[-1]
    assert before == f"{sent}  came before it, failed in work"


def test_secrets_are_hidden_when_asked(user: User, mq: Menzil) -> None:
    sent = user.gets("send", "work", '{"password": "hunter2", "n": 1}')
    mq.fail(mq.dequeue()[0], "password=hunter2", permanent=True)
    other = user.gets("send", "work", '{"password": "other", "n": 2}')
    for words in (["message", "show", sent], ["message", "compare", sent, other], ["message", "list"]):
        assert "hunter2" in user.types(*words).stdout
        assert "hunter2" not in user.types(*words, "--redact").stdout
        assert "hunter2" not in user.types(*words, "--redact", "--json").stdout


def test_two_messages_are_compared(user: User) -> None:
    a, b = (user.gets("send", "work", text) for text in ('{"n": 1.10, "x": [1, 2]}', '{"n": 1.1000001, "x": [1, 2]}'))
    result = user.types("message", "compare", a, b)
    assert result.exit_code == 1
    assert "~ $.n  1.10 → 1.1000001" in result.stdout
    assert "$.x" not in result.stdout
    (created,) = (line.split() for line in result.stdout.splitlines() if line.startswith("~ created at"))
    assert created[-3] != created[-1], "two times that differ are shown as the same text"
    assert "$.x" in user.types("message", "compare", a, b, "--all").stdout
    assert user.types("message", "compare", a, a).exit_code == 0
    assert "payload: equal" in user.gets("message", "compare", a, a)
    assert "no message 999" in user.fails("message", "compare", a, "999")


def test_two_tries_are_compared(user: User, mq: Menzil) -> None:
    sent = user.gets("send", "work", "1")
    for error in ("HTTP 500", "HTTP 503"):
        mq.fail(mq.dequeue()[0], error, retry_after=0)
    assert "HTTP 500 → [RETRYABLE] HTTP 503" in user.types("message", "compare", "1", "2", "--tries", sent).stdout
    assert "its tries are: 1, 2" in user.fails("message", "compare", "1", "9", "--tries", sent)


def test_a_message_becomes_a_page_without_its_secrets(user: User, mq: Menzil, tmp_path: Path) -> None:
    sent = user.gets("send", "work", '{"password": "hunter2", "price": 1.10}')
    page = tmp_path / "message.html"
    assert user.gets("message", "show", sent, "--html", str(page)) == ""
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "hunter2" not in text
    assert "1.10" in text
    assert "<script" not in text
    assert user.reads("message", "show", sent, "--html", str(page))["payload"]["password"] == "[redacted]"
    assert "There is no directory" in user.fails("message", "show", sent, "--html", str(tmp_path / "no" / "x.html"))
    assert "--html /dev/stdout" in user.fails("message", "show", sent, "--html", "-")
    assert "--out /dev/stdout" in user.fails("report", "--out", "-")
    assert not Path("-").exists()


def test_json_keeps_every_digit(user: User) -> None:
    sent = user.gets("send", "work", '{"n": 100000000000000000000.10}')
    assert "100000000000000000000.10" in user.gets("message", "show", sent)
    assert "100000000000000000000.10" in user.gets("message", "show", sent, "--json")


def test_a_list_is_narrowed_by_qualifiers(user: User, mq: Menzil) -> None:
    a = int(user.gets("send", "work", "1", "--ordering-key", "k"))
    b = int(user.gets("send", "work", "1"))
    found = user.reads("message", "list", "status:pending", "since:2h")
    assert [one["id"] for one in found["messages"]] == [b, a]
    assert found.keys() == {"messages", "next_before", "looked_through", "search"}
    assert [one["id"] for one in user.reads("message", "list", "key:k")["messages"]] == [a]
    mq.fail(mq.dequeue()[0], "it timed out", permanent=True)
    assert [one["id"] for one in user.reads("message", "list", "error:timed out")["messages"]] == [a]
    assert "Did you mean channel:?" in user.fails("message", "list", "chanel:work")
    assert "Did you mean work?" in user.fails("message", "list", "channel:wrok")
    assert "say the same thing" in user.fails("message", "list", "channel:work", "--channel", "work")


def test_a_page_that_found_nothing_yet_says_where_to_go_on(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    user.gets("channel", "set", "rare")
    user.gets("send", "rare", "1")
    user.gets("send", "work", "--batch", stdin="1\n" * 10)
    monkeypatch.setattr("menzil.cli.message.SCAN", 4)
    assert WINDOW == 20_000
    assert "go on with --before" in user.types("message", "list", "channel:rare").stderr
