"""`menzil report`: the page straight from the database, without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from menzil import Menzil
from tests.integration.cli.user import User


def history(user: User, mq: Menzil) -> None:
    """Four delivered and three dead letters of two causes to work, one dead letter to other."""
    mq.channel_set("other")
    mq.send_batch("work", [{"n": n} for n in range(7)])
    mq.send("other", {})
    for message in mq.dequeue(limit=10, lease=30):
        if message.channel == "other":
            mq.fail(message, "HTTP 503 in 31 ms", permanent=True)
        elif message.payload["n"] < 4:
            mq.complete(message)
        else:
            mq.fail(message, f"HTTP {'410' if message.payload['n'] == 4 else '503'} in 7 ms", permanent=True)


def test_the_page_is_drawn_from_the_database_and_says_first_what_is_wrong(
    user: User, mq: Menzil, tmp_path: Path
) -> None:
    history(user, mq)
    out = tmp_path / "report.html"
    said = user.types("report", "--out", str(out), "--goal-percent", "50")
    assert (said.exit_code, said.stdout) == (0, "")
    lines = said.stderr.splitlines()
    assert lines[0] == "other delivered nothing: 1 message, 1 dead letter."
    assert lines[1].startswith("3 dead letters of 2 endpoints: HTTP 503 in # ms.")
    assert lines[-1] == f"8 messages in {out}."
    html = out.read_text()
    assert "menzil dlq redrive --all --cause &#x27;HTTP 503 in # ms&#x27; --yes" in html
    assert "from the live database" in html
    (command,) = [trouble["command"] for trouble in user.reads("report", "--out", str(out))["wrong"]
                  if "HTTP 410" in trouble["sentence"]]  # fmt: skip
    assert command == "menzil dlq redrive --endpoint work --cause 'HTTP 410 in # ms' --yes"
    # The command does what the page promises, and then the page no longer offers it.
    assert user.gets("dlq", "redrive", "--endpoint", "work", "--cause", "HTTP 410 in # ms", "--yes") == "1"
    again = user.reads("pipeline", "report", "--out", str(out))["wrong"]
    assert [trouble["command"] for trouble in again if "HTTP 410" in trouble["sentence"]] == [None]


def test_a_report_with_a_beginning_is_compared_with_the_period_before(user: User, mq: Menzil, tmp_path: Path) -> None:
    history(user, mq)
    found = user.reads("report", "--out", str(tmp_path / "r.html"), "--from", "-1h")
    assert (found["total"]["sent"], found["before"]["sent"]) == (8, 0)
    found = user.reads("report", "--out", str(tmp_path / "r.html"), "--from", "+1h", "--to", "+2h")
    assert found["total"]["sent"] == 0
    assert "There is no ended message in this window." in (tmp_path / "r.html").read_text()
    said = user.fails("report", "--out", str(tmp_path / "r.html"), "--from", "-1h", "--to", "-2h")
    assert said == "Error: The range ends before it begins.\nHint: give a later --to\n"


def test_a_small_report_starts_no_spark_and_needs_no_extra(user: User, mq: Menzil, tmp_path: Path) -> None:
    history(user, mq)
    out = tmp_path / "report.html"
    program = "import sys; sys.modules['pyspark'] = sys.modules['pyarrow'] = None; from menzil.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "report", "--dsn", user.dsn, "--out", str(out), "--json"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["total"]["sent"] == 8
    assert out.read_text().startswith("<!doctype html>")


def test_more_messages_than_one_process_should_count_are_work_for_spark(
    user: User, mq: Menzil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history(user, mq)
    monkeypatch.setattr("menzil.cli.report_small.MOST", 7)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    said = user.fails("report", "--out", str(tmp_path / "r.html"))
    assert said == "Error: PySpark is not installed.\nHint: run `pip install 'menzil[spark]'`\n"
    # A shorter range is small again.
    assert user.types("report", "--out", str(tmp_path / "r.html"), "--from", "+1h").exit_code == 0
