"""A handler fails: what its author finds in the log, with the attempt and in the dead letter."""

from __future__ import annotations

import logging

import pytest
from click.testing import CliRunner

import menzil
from menzil.cli import main
from tests.acceptance.crew import Crew


def charge(order: str) -> int:
    return price(order)


def price(order: str) -> int:
    return {"a": 1}[order]


@pytest.mark.parametrize("kind", ["async", "plain", "transaction"])
def test_the_traceback_is_in_the_log_the_attempt_and_the_dead_letter(
    crew: Crew, db: str, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    app = menzil.Worker(db, endpoints=False, janitors=False)

    async def awaited(message: menzil.Message) -> None:
        charge(message.payload)

    def plain(message: menzil.Message, conn: object = None) -> None:
        charge(message.payload)

    app.handler("work", transaction=kind == "transaction")(awaited if kind == "async" else plain)  # type: ignore[call-overload]
    (id,) = crew.send("work", "missing")
    with caplog.at_level(logging.WARNING, "menzil.worker"):
        app.run(once=True)
    (line,) = [text for text in caplog.messages if text.startswith("failed")]
    first, *rest = line.splitlines()
    assert "channel=work" in first
    assert "then=retry" in first
    assert rest[0] == "    Traceback (most recent call last):"
    assert any("in charge" in one for one in rest)
    assert rest[-1] == "    KeyError: 'missing'"
    kept = crew.ask("select response ->> 'traceback' from menzil.attempts where message_id = %s", id)
    calls = [one.split(", in ")[1] for one in kept.splitlines() if one.startswith("File")]
    assert calls == ["awaited" if kind == "async" else "plain", "charge", "price"]


def test_a_dead_letter_shows_where_each_attempt_failed(crew: Crew, db: str) -> None:
    app = menzil.Worker(db, endpoints=False, janitors=False)

    @app.handler("work")
    def work(message: menzil.Message) -> None:
        charge(message.payload)

    crew.ask("select menzil.set_setting('default_max_retries', '2')")
    crew.send("work", "missing")
    while not crew.ask("select count(*) from menzil.dlq"):
        app.run(once=True)
        crew.ask("select menzil.message_retry_now(id) from menzil.queue where status = 'pending'")
    attempts, dlq_id = crew.conn.execute("select attempts, id from menzil.dlq").fetchone() or ([], 0)
    assert len(attempts) == 3
    assert all("in charge" in one["response"]["traceback"] for one in attempts)
    shown = CliRunner().invoke(main, ["dlq", "show", str(dlq_id), "--dsn", db])
    assert shown.exit_code == 0, shown.output
    assert shown.output.count("in charge") == len(attempts)
    (message_id,) = crew.conn.execute("select original_message_id from menzil.dlq").fetchone() or (0,)
    shown = CliRunner().invoke(main, ["message", "show", str(message_id), "--dsn", db])
    assert shown.output.count("in charge") == len(attempts)
