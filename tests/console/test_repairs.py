"""What a page says that repairs it: the command runs as it is shown, and the button beside it does the same."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape

import psycopg
import pytest
from click.testing import CliRunner

from menzil import Menzil
from menzil.cli.main import main
from menzil.console import Access, Console
from menzil.embedded import Embedded
from tests.conftest import database
from tests.console.doing import confirm, planned
from tests.console.seat import Browser, served
from tests.sql.clock import until

#: Names of channels that a command would read as options.
LIKE_OPTIONS = ("-x", "--help")
HTTP = {"url": "https://partner.example/"}


@dataclass
class Here:
    dsn: str
    seat: Browser
    mq: Menzil
    conn: psycopg.Connection

    def reasons(self, number: int) -> list[str]:
        return [one for (one,) in self.conn.execute("select reason from menzil.message_why(%s)", (number,)).fetchall()]

    def verdict(self, number: int) -> str:
        """The part of the page that says why, as HTML."""
        page = self.seat.get(f"/messages/{number}")
        found = re.search(r'<section[^>]* id="why".*?</section>', page.text, re.DOTALL)
        assert found is not None, page.words[:500]
        return found[0]

    def buttons(self, number: int) -> list[str]:
        return [unescape(one) for one in re.findall(r'href="/acts/([^"]+)"', self.verdict(number))]

    def take(self, channel: str) -> None:
        assert len(self.mq.dequeue(1, 600, [channel], worker="w/1")) == 1

    def kill(self, channel: str) -> int:
        """Let the first message of a channel die."""
        (taken,) = self.mq.dequeue(1, 600, [channel], worker="w/1")
        self.mq.fail(taken, "HTTP 410", permanent=True)
        return taken.id


@pytest.fixture(scope="module")
def here(server: Embedded, _installed: str) -> Iterator[Here]:
    with (
        database(server, "console_repairs", _installed) as dsn,
        psycopg.connect(dsn, autocommit=True) as conn,
        Menzil(dsn) as mq,
        served(Console(dsn, local=Access.admin("ada"))) as seat,
    ):
        yield Here(dsn, seat, mq, conn)


def test_session_that_holds_a_message_is_ended_by_a_command_that_can_be_copied(here: Here) -> None:
    here.mq.channel_set("held")
    number = here.mq.send("held", {})
    with psycopg.connect(here.dsn) as other:
        other.execute("select menzil.message_cancel(%s)", (number,))
        until(lambda: "held" in here.reasons(number))  # a session is named once it has held something for a second
        shown = here.verdict(number)
        command = f"psql \"$MENZIL_DSN\" -c 'select pg_terminate_backend({other.info.backend_pid})'"
        assert f">{command}</code>" in unescape(re.sub(r"</?span[^>]*>", "", shown))
        other.rollback()


def test_other_reasons_are_words(here: Here) -> None:
    here.mq.channel_set("paused")
    number = here.mq.send("paused", {})
    here.mq.channel_pause("paused")
    assert here.reasons(number)[:2] == ["channel_paused", "no_worker"]
    assert "<code>no worker</code>" in here.verdict(number)


def _resting(here: Here) -> int:
    here.mq.create_endpoint("resting", "http", HTTP)
    taken, number = here.mq.send("resting", {"n": 1}), here.mq.send("resting", {"n": 2})
    here.take("resting")
    here.conn.execute(
        "select menzil.message_fail(array[%s::bigint], array[1::bigint], array['HTTP 429'],"
        " p_retry_afters => array[interval '1 hour'], p_rests => array[true])",
        (taken,),
    )
    return number


def _full(here: Here) -> int:
    here.mq.channel_set("full", max_concurrency=1)
    here.mq.send("full", {})
    here.take("full")
    return here.mq.send("full", {})


def _at_its_rate(here: Here) -> int:
    here.mq.channel_set("rate", release_interval=3600, release_count=1)
    here.mq.send("rate", {})
    here.take("rate")
    return here.mq.send("rate", {})


def _behind_a_retry(here: Here) -> int:
    here.mq.channel_set("retried")
    here.mq.send("retried", {}, ordering_key="k")
    number = here.mq.send("retried", {}, ordering_key="k")
    (taken,) = here.mq.dequeue(1, 600, ["retried"], worker="w/1")
    here.mq.fail(taken, "HTTP 503")
    return number


def _behind_an_erased_letter(here: Here) -> int:
    here.mq.channel_set("blocked", on_dead="block")
    here.mq.send("blocked", {}, ordering_key="k")
    number = here.mq.send("blocked", {}, ordering_key="k")
    here.conn.execute("select menzil.message_erase(%s)", (here.kill("blocked"),))
    return number


def _redriven(here: Here) -> int:
    here.mq.channel_set("redriven")
    here.mq.send("redriven", {})
    number = here.kill("redriven")
    redrive = "select menzil.redrive_message(d.id) from menzil.dlq d where d.original_message_id = %s"
    here.conn.execute(redrive, (number,))
    return number


@pytest.mark.parametrize(
    ("stage", "reason", "act"),
    [
        (_resting, "endpoint_resting", "endpoint-reset?endpoint=resting"),
        (_full, "concurrency_full", "channel-limits?channel=full"),
        (_at_its_rate, "rate_full", "channel-limits?channel=rate"),
        (_behind_a_retry, "behind_key", "message-retry-now?id={before}"),
        (_behind_an_erased_letter, "key_blocked_by_dead_letter", "message-cancel?id={before}"),
        (_redriven, "ended", None),
    ],
)
def test_button_beside_a_reason_does_what_repairs_it(here: Here, stage: object, reason: str, act: str | None) -> None:
    assert callable(stage)
    number = stage(here)
    assert here.reasons(number)[0] == reason
    assert here.buttons(number) == ([] if act is None else [act.format(before=number - 1)])


def test_dead_letter_whose_body_was_erased_is_cancelled_for_its_key(here: Here) -> None:
    here.mq.channel_set("freed", on_dead="block")
    here.mq.send("freed", {}, ordering_key="k")
    number = here.mq.send("freed", {}, ordering_key="k")
    letter = here.kill("freed")
    here.conn.execute("select menzil.message_erase(%s)", (letter,))
    plan = planned(here.seat, "message-cancel", id=str(letter))
    assert "too late" not in plan.page.words
    assert "blocks its ordering key no longer" in plan.page.words
    confirm(here.seat, plan)
    assert "key_blocked_by_dead_letter" not in here.reasons(number)


@pytest.mark.parametrize("name", LIKE_OPTIONS)
def test_command_for_a_name_like_an_option_does_what_the_plan_says(here: Here, name: str) -> None:
    def typed(command: str) -> None:
        result = CliRunner().invoke(main, shlex.split(command)[1:], env={"MENZIL_DSN": here.dsn})
        assert result.exit_code == 0, result.output
        assert "Usage:" not in result.output

    limits = {"max_size": "none", "release_count": "1", "interval": "0", "on_dead": "continue"}
    here.mq.channel_set(name)
    typed(planned(here.seat, "channel-limits", channel=name, max_concurrency="7", **limits).command)
    typed(planned(here.seat, "channel-pause", channel=name).command)
    typed(planned(here.seat, "send", channel=name, payload="-5").command)
    row = here.conn.execute(
        "select c.max_concurrency, c.paused, p.payload::text from menzil.channels c, menzil.message_peek(c.name) p"
        " where c.name = %s", (name,),
    ).fetchone()  # fmt: skip
    assert row == (7, True, "-5")
    typed(planned(here.seat, "channel-resume", channel=name).command)
    assert here.conn.execute("select paused from menzil.channels where name = %s", (name,)).fetchone() == (False,)
    typed(planned(here.seat, "schedule-create", schedule=f"{name}s", cron="0 3 * * *", channel=name).command)
    assert here.conn.execute("select 1 from menzil.schedules where name = %s", (f"{name}s",)).fetchone() == (1,)


@pytest.mark.parametrize("name", LIKE_OPTIONS)
def test_repair_of_a_full_channel_with_a_name_like_an_option_runs(here: Here, name: str) -> None:
    here.mq.channel_set(f"{name}-full", max_concurrency=1)
    here.mq.send(f"{name}-full", {})
    here.take(f"{name}-full")
    number = here.mq.send(f"{name}-full", {})
    row = here.conn.execute("select reason, repair from menzil.message_why(%s) limit 1", (number,)).fetchone()
    assert row is not None
    assert row[0] == "concurrency_full"
    result = CliRunner().invoke(main, shlex.split(row[1])[1:], env={"MENZIL_DSN": here.dsn})
    assert result.exit_code == 0, result.output
    assert "concurrency_full" not in here.reasons(number)
