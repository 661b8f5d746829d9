"""One message with all that is known of it, two side by side, and a message as a page."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import psycopg
import pytest

from menzil import Menzil
from menzil.model import exact
from menzil.model.errors import UnknownNameError
from menzil.model.redact import MARK, Redactor
from menzil.report.incident import incident
from menzil.watch import messages
from menzil.watch.redaction import redactor
from tests.integration.watch.conftest import Seat

HIDE = Redactor(["password", "authorization", "$.card.*"])


def dead(mq: Menzil, payload: object = None, error: str = "HTTP 500") -> int:
    sent = mq.send("work", {} if payload is None else payload)
    (message,) = mq.dequeue(channels="work", worker="w-1")
    mq.fail(message, error, permanent=True)
    return sent


def test_one_message_has_its_life_its_tries_and_its_family(seat: Seat, mq: Menzil, watched_db: str) -> None:
    sent = dead(mq, {"n": 1})
    with psycopg.connect(watched_db, autocommit=True) as conn:
        row = conn.execute("select menzil.redrive_message(id) from menzil.dlq").fetchone()
        assert row is not None
    found = messages.one(seat, sent)
    assert (found["status"], found["payload"], found["why"][0]["reason"]) == ("failed", {"n": 1}, "ended")
    assert [attempt["outcome"] for attempt in found["attempts"]] == ["failed"]
    assert {row["what"] for row in found["life"]} >= {"sent", "dead_letter"}
    assert [one["message_id"] for one in found["family"]] == [sent, row[0]]
    child = messages.one(seat, row[0])
    assert (child["redrive_of"], child["ended_at"]) == (sent, None)


def test_an_id_that_never_was_is_refused(seat: Seat) -> None:
    with pytest.raises(UnknownNameError):
        messages.one(seat, 999)
    assert messages.waits(seat, 999)["why"][0]["reason"] == "unknown"


def test_numbers_have_every_digit_they_were_sent_with(seat: Seat, mq: Menzil, watched_db: str) -> None:
    text = '{"big": 12345678901234567890123, "price": 1.10, "tiny": 0.10000000000000000000000001}'
    with psycopg.connect(watched_db, autocommit=True) as conn:
        row = conn.execute("select menzil.send('work', %s::jsonb)", (text,)).fetchone()
        assert row is not None
    found = messages.one(seat, row[0], redactor=HIDE)
    assert all(part in exact.dumps(found["payload"]) for part in re.findall(r"[\d.]{3,}", text))


def test_everything_that_strangers_wrote_is_redacted(seat: Seat, mq: Menzil) -> None:
    sent = mq.send(
        "work",
        {"password": "hunter2", "card": {"number": "hunter2"}, "note": "password=hunter2"},
        headers={"Authorization": "hunter2"},
        metadata={"password": "hunter2"},
    )
    (message,) = mq.dequeue(channels="work")
    mq.fail(message, "refused: Authorization: Bearer hunter2", permanent=True)
    found = messages.one(seat, sent, redactor=HIDE)
    assert "hunter2" not in exact.dumps(found, default=str)
    assert found["payload"]["card"] == {"number": MARK}
    assert "hunter2" in exact.dumps(messages.one(seat, sent), default=str)


def test_the_setting_of_the_database_says_what_is_hidden(seat: Seat, mq: Menzil) -> None:
    mq.set_setting("redact", "flavour, $.deep.*")
    hidden = redactor(seat).value({"flavour": 1, "deep": {"x": 1}, "password": 1})
    assert hidden == {"flavour": MARK, "deep": {"x": MARK}, "password": 1}


@pytest.mark.parametrize(
    "name",
    ["Authorization", "Cookie", "Set-Cookie", "password", "db_password", "client_secret", "accessToken", "X-Api-Key"],
)
def test_a_database_hides_the_usual_secrets_by_itself(seat: Seat, name: str) -> None:
    assert redactor(seat).value({"x": [{name: "hunter2"}]}) == {"x": [{name: MARK}]}
    assert redactor(seat).faults == []
    assert repr(redactor(seat)) == repr(Redactor())


def test_bytes_are_redacted_as_text_or_hidden_as_a_whole(seat: Seat, mq: Menzil, watched_db: str) -> None:
    with psycopg.connect(watched_db, autocommit=True) as conn:
        ids = [
            conn.execute("select menzil.message_create('work', %s::bytea)", (body,)).fetchone()
            for body in (b"password=hunter2 x=1", b"\xff\xfehunter2")
        ]
    shown = [messages.one(seat, row[0], redactor=HIDE)["content"] for row in ids if row is not None]
    assert shown == [b"password=[redacted] x=1", MARK.encode()]


def test_two_messages_are_compared_by_field_and_path(seat: Seat, mq: Menzil) -> None:
    a = mq.send("work", {"x": 1, "same": [1, 2]}, priority=1)
    b = mq.send("work", {"x": 2, "same": [1, 2]})
    found = messages.compare(seat, a, b)
    fields = {field["field"]: field for field in found["fields"]}
    assert (fields["channel"]["equal"], fields["priority"]["equal"]) == (True, False)
    differences = [row for row in found["body"]["payload"]["rows"] if row["change"] != "equal"]
    assert [(row["path"], row["a"], row["b"]) for row in differences] == [("$.x", 1, 2)]


def test_secrets_that_differ_are_not_shown_by_a_comparison(seat: Seat, mq: Menzil) -> None:
    a, b = mq.send("work", {"password": "one"}), mq.send("work", {"password": "two"})
    found = messages.compare(seat, a, b, redactor=HIDE)
    assert found["body"]["payload"]["equal"]
    assert "two" not in exact.dumps(found["body"], default=str)
    shown = messages.compare_redaction(seat, a, HIDE)
    (row,) = [row for row in shown["body"]["payload"]["rows"] if row["change"] == "changed"]
    assert (row["path"], row["b"]) == ("$.password", MARK)


def test_two_tries_are_compared(seat: Seat, mq: Menzil) -> None:
    sent = mq.send("work", {})
    for error in ("HTTP 500", "HTTP 503"):
        (message,) = mq.dequeue(channels="work")
        mq.fail(message, error, retry_after=0)
    found = messages.compare_tries(seat, sent, 1, 2)
    (error,) = [field for field in found["fields"] if field["field"] == "error"]
    assert (error["a"], error["b"]) == ("[RETRYABLE] HTTP 500", "[RETRYABLE] HTTP 503")
    with pytest.raises(UnknownNameError, match="no try 7"):
        messages.compare_tries(seat, sent, 1, 7)


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.words += data


EVIL = "</pre></bdi><script>alert(1)</script><img src=x onerror=alert(1)> \x1b[2J \u202egnp.exe"


def test_a_page_of_a_message_runs_nothing_and_loads_nothing(seat: Seat, mq: Menzil, watched_db: str) -> None:
    with psycopg.connect(watched_db, autocommit=True) as conn:
        row = conn.execute(
            "select menzil.send_with_options('work', jsonb_build_object('x', %s::text, 'password', 'hunter2'),"
            " p_ordering_key => %s, p_headers => jsonb_build_object('x-note', 'a'), p_metadata => %s)",
            (EVIL.replace("\x1b", ""), "<script>k</script>", '{"<script>": "<script>"}'),
        ).fetchone()
        assert row is not None
    (message,) = mq.dequeue(channels="work", worker="<script>w</script>")
    mq.fail(message, EVIL, permanent=True)
    found = messages.one(seat, row[0], redactor=HIDE)
    text = incident(found, made_at=datetime.now(UTC), source="<script>db</script>")
    page = Page(text)
    assert not {"script", "img", "link", "iframe", "object", "embed", "form", "a", "base"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "href", "style")]
    assert "default-src 'none'" in str(dict(page.attributes)["content"]) or "default-src 'none'" in text
    assert not re.search(r"url\((?!#)", text)
    assert "hunter2" not in text
    assert not {"\x1b", "\u202e"} & set(text)
    assert "alert(1)" in page.words  # it is told, and does nothing


def test_a_page_of_a_message_that_waits_says_why(seat: Seat, mq: Menzil) -> None:
    mq.channel_pause("work")
    sent = mq.send("work", {"n": 1})
    text = incident(messages.one(seat, sent), made_at=datetime.now(UTC))
    assert "Why it waits" in text
    assert "menzil channel resume work" in text
    assert 'role="img"' in text


def test_a_page_of_a_huge_message_is_cut_and_says_so(seat: Seat, mq: Menzil) -> None:
    sent = mq.send("work", {"x": "y" * 500_000})
    text = incident(messages.one(seat, sent), made_at=datetime.now(UTC))
    assert len(text) < 300_000
    assert "more characters are left out" in text
