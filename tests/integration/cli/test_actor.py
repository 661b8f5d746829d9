"""The event log knows who typed a command, and the list of runs knows how each run of the pipeline ended."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row

from menzil.cli import main
from menzil.cli.database import Database, connect
from menzil.cli.pipeline.options import Workshop
from menzil.cli.pipeline.record import recorded
from menzil.ops import pulse, runs
from menzil.ops.run import run
from tests.integration.cli.user import User


def rows(dsn: str, query: str) -> list[dict[str, Any]]:
    with psycopg.connect(dsn, row_factory=dict_row) as conn:
        return conn.execute(query).fetchall()


def acts(user: User) -> list[tuple[str, str, str]]:
    found = rows(user.dsn, "select event_type, actor, via from menzil.event_log order by id")
    return [(row["event_type"], row["actor"], row["via"]) for row in found]


def types(user: User, *words: str, **environment: str) -> None:
    env = {"MENZIL_DSN": user.dsn, **environment}
    result = CliRunner().invoke(main, words, env=env, prog_name="menzil")
    assert result.exit_code == 0, result.output


def test_a_command_is_the_act_of_the_user_at_this_machine(user: User) -> None:
    before = acts(user)
    user.gets("channel", "pause", "work")
    assert acts(user)[len(before) :] == [
        ("channel.paused", f"{getpass.getuser()}@{socket.gethostname()} (as postgres)", "cli")
    ]


def test_a_command_is_the_act_of_whom_it_names(user: User) -> None:
    types(user, "--actor", "ada", "channel", "pause", "work")
    types(user, "channel", "resume", "work", MENZIL_ACTOR="grace")
    types(user, "--actor", "ada", "channel", "pause", "work", MENZIL_ACTOR="grace")
    assert [actor for _, actor, _ in acts(user)[-3:]] == [
        "ada (as postgres)",
        "grace (as postgres)",
        "ada (as postgres)",
    ]


def test_a_command_that_reads_thinks_and_writes_names_its_actor(user: User) -> None:
    types(user, "--actor", "ada", "channel", "set", "work", "--max-size", "7")
    assert acts(user)[-1][1:] == ("ada (as postgres)", "cli")


def test_a_worker_that_the_command_starts_is_a_worker(user: User) -> None:
    with psycopg.connect(user.dsn, autocommit=True, application_name="menzil worker (settle)") as conn:
        conn.execute("select menzil.channel_pause('work')")
    assert acts(user)[-1][2] == "worker"


# --- runs -------------------------------------------------------------------------------------------------------------


@contextmanager
def shop(dsn: str) -> Iterator[Workshop]:
    with connect(dsn) as conn:
        yield Workshop(dsn, Database(conn), None, False)


def told(user: User) -> list[dict[str, Any]]:
    with psycopg.connect(user.dsn, autocommit=True) as conn:
        return run(conn, runs.pipeline_runs())


def test_a_run_says_how_it_ended(user: User) -> None:
    with shop(user.dsn) as here, recorded(here, "export", "/lake") as done:
        (going,) = told(user)
        done.rows, done.files = 10, 2
    assert (going["kind"], going["lake"], going["ended_at"]) == ("export", "/lake", None)
    (over,) = told(user)
    assert (over["rows"], over["files"], over["verdict"], over["error"]) == (10, 2, "ok", None)
    assert over["ended_at"] >= over["started_at"]


@pytest.mark.parametrize(
    ("error", "verdict", "text"),
    [
        (ValueError("no such lake\n at Java line 7"), "failed", "no such lake"),
        (ValueError(), "failed", "ValueError"),
        (KeyboardInterrupt(), "interrupted", "KeyboardInterrupt"),
        (SystemExit(1), "ok", None),
    ],
)
def test_a_run_that_raises_says_so_and_raises(user: User, error: BaseException, verdict: str, text: str | None) -> None:
    with pytest.raises(type(error)), shop(user.dsn) as here, recorded(here, "audit"):
        raise error
    (over,) = told(user)
    assert (over["verdict"], over["error"]) == (verdict, text)
    assert over["ended_at"] is not None


def test_a_run_whose_connection_was_closed_meanwhile_still_ends(user: User) -> None:
    with shop(user.dsn) as here, recorded(here, "export"), psycopg.connect(user.dsn, autocommit=True) as conn:
        conn.execute("select pg_terminate_backend(%s, 5000)", [here.db.conn.info.backend_pid])
    assert told(user)[0]["verdict"] == "ok"


def test_a_role_that_may_not_write_runs_down_works_all_the_same(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    with psycopg.connect(user.dsn, autocommit=True) as conn:
        conn.execute("create role reader login password 'r' in role menzil_application")
    try:
        worked = False
        with shop(make_conninfo(user.dsn, user="reader", password="r")) as here, recorded(here, "audit"):
            worked = True
        assert worked
        assert "menzil.pipeline_runs does not show this run: permission denied" in capsys.readouterr().err
        assert told(user) == []
    finally:
        with psycopg.connect(user.dsn, autocommit=True) as conn:
            conn.execute("drop role reader")


def test_a_lake_without_a_database_is_not_written_down(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    with recorded(Workshop("", None, None, False), "audit", "/lake"):
        pass
    assert told(user) == []
    assert capsys.readouterr().err == ""


# --- pulse ------------------------------------------------------------------------------------------------------------


def test_the_pulse_is_read_as_records(user: User) -> None:
    user.gets("send", "work", "1")
    with psycopg.connect(user.dsn, autocommit=True) as conn:
        conn.execute("select menzil.job_run('pulse')")
        (total,) = run(conn, pulse.pulse_of())
        (channel,) = run(conn, pulse.pulse(total.at))
    assert (total.channel, total.sent, total.waiting, total.ended_ms) == (None, 1, 1, [0] * 12)
    assert (channel.channel, channel.sent, channel.try_ms) == ("work", 1, [0] * 12)
    assert total.oldest_s is not None
    assert total.oldest_s > 0
    assert len(pulse.BOUNDS_MS) == 11
