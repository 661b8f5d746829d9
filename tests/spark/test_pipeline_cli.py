"""`menzil pipeline send`, `fanout` and `replay` as somebody at a terminal uses them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import psycopg
import pytest

from menzil.cli.pipeline import watch
from menzil.cli.pipeline.options import Workshop
from menzil.cli.pipeline.source import kind_of
from menzil.cli.pipeline.watch import bar
from menzil.model.errors import UsageError
from menzil.spark.session import archive, java, launch
from tests.integration.cli.user import User
from tests.spark import mapped, stock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from menzil.cli.database import Database


@pytest.fixture
def conn(db: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('billing')")
        yield conn


@pytest.fixture
def user(db: str, conn: psycopg.Connection[Any], spark: SparkSession) -> User:
    """Somebody whose commands find a Spark that runs already: a new one takes seconds each time."""
    return User(db)


def waiting(conn: psycopg.Connection[Any]) -> int:
    row = conn.execute("select count(*) from menzil.queue").fetchone()
    assert row is not None
    return int(row[0])


def test_a_file_is_sent_after_its_plan_was_seen_and_once(
    user: User, conn: psycopg.Connection[Any], tmp_path: Path
) -> None:
    orders = tmp_path / "orders.csv"
    orders.write_text('id,customer,note\n007,ada,"two\nlines, ""quoted"""\n008,bob,\n')
    words = [
        "pipeline",
        "send",
        str(orders),
        "--endpoint",
        "billing",
        "--send-id",
        "o-1",
        "--column",
        "ordering_key=customer",
    ]

    plan = user.types(*words)
    assert (plan.exit_code, plan.stdout) == (1, "")
    assert "Sends 2 messages of 2 rows.\n  2 to billing\nFor instance:\n" in plan.stderr
    assert "Nothing was changed. Add --yes to do it." in plan.stderr
    assert waiting(conn) == 0

    done = user.types(*words, "--yes")
    assert (done.exit_code, done.stdout) == (0, "2\n")
    assert conn.execute("select payload, ordering_key from menzil.queue order by id").fetchall() == [
        ({"id": "007", "customer": "ada", "note": 'two\nlines, "quoted"'}, "ada"),
        ({"id": "008", "customer": "bob"}, "bob"),
    ]
    again = user.reads(*words, "--yes")
    assert (again["plan"]["already_sent"], again["done"]["messages"], again["done"]["repeated"]) == (2, 2, True)
    assert waiting(conn) == 2


def test_rows_that_would_be_refused_are_shown_and_stop_the_send_until_they_have_a_place_to_go(
    user: User, conn: psycopg.Connection[Any], tmp_path: Path
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        '{"endpoint": "billing", "body": "{}"}\n{"endpoint": "nowhere", "body": "{}"}\n{"endpoint": "billing"}\n'
    )
    words = ["pipeline", "send", str(rows), "--payload", "body", "--send-id", "r", "--yes"]
    stopped = user.types(*words)
    assert (stopped.exit_code, stopped.stdout) == (1, "")
    assert "2 rows would be refused; nothing is sent while there are any:" in stopped.stderr
    assert "1 × There is no channel or endpoint named 'nowhere'." in stopped.stderr
    assert stopped.stderr.endswith("Nothing was sent.\n")
    assert waiting(conn) == 0

    sent = user.types(*words, "--rejects", str(tmp_path / "rejects"))
    assert (sent.exit_code, sent.stdout) == (1, "1\n")
    assert waiting(conn) == 1


def test_events_of_a_file_go_to_those_who_subscribed(user: User, conn: psycopg.Connection[Any], tmp_path: Path) -> None:
    conn.execute("select menzil.create_event_type('paid')")
    conn.execute("""select menzil.subscribe('paid', 'billing', '{"country": "TR"}')""")
    events = tmp_path / "events.jsonl"
    events.write_text("".join(json.dumps({"id": n, "country": "TR" if n % 2 else "DE"}) + "\n" for n in range(10)))
    said = user.reads("pipeline", "fanout", str(events), "--event-type", "paid", "--send-id", "f", "--yes")
    assert (said["plan"]["events"], said["plan"]["unwanted"], said["plan"]["endpoints"]) == (10, 5, {"billing": 5})
    assert said["done"]["messages"] == waiting(conn) == 5
    assert conn.execute("select distinct metadata from menzil.queue").fetchall() == [({"event_type": "paid"},)]


def test_a_replay_shows_whom_it_reaches_and_how_long_it_takes(
    user: User, conn: psycopg.Connection[Any], spark: SparkSession, tmp_path: Path
) -> None:
    from menzil.spark.jobs.export import export

    stock.archive(conn, 60, months=1)
    conn.execute("select menzil.channel_release('c' || n) from unnest('{0, 2, 3, 4}'::integer[]) n")  # they are gone
    export(spark, user.dsn, tmp_path / "lake")
    words = ["pipeline", "replay", "--lake", str(tmp_path / "lake"), "--run-id", "r1", "--rate", "0.1"]
    assert "Hint: give --endpoint NAME, or --all" in user.fails(*words)

    plan = user.types(*words, "--endpoint", "c1", "--where", "num_attempts < 3")
    assert plan.exit_code == 1
    assert (
        "Sends 8 ended messages once more, over 1 min 20 s at 0.1 per second.\n  8 to c1, created 2026-01-03"
        in plan.stderr
    )
    everybody = user.types(*words, "--all", "--yes")
    assert (everybody.exit_code, everybody.stdout) == (1, "")
    assert "Nothing is sent: There is no channel or endpoint named 'c0'." in everybody.stderr
    assert user.gets(*words, "--endpoint", "c1", "--where", "num_attempts < 3", "--yes") == "8"
    assert waiting(conn) == 8
    wrong = user.fails(*words, "--endpoint", "c1", "--where", "colour = 1")
    assert wrong.startswith("Error: A column, variable, or function parameter with name `colour` cannot be resolved.")
    assert "org.apache" not in wrong


def test_the_line_of_every_night_exports_without_yes_and_only_a_drop_asks_for_it(
    user: User, conn: psycopg.Connection[Any], tmp_path: Path
) -> None:
    stock.archive(conn, 6, months=1)
    words = ["pipeline", "export", "--lake", str(tmp_path / "lake")]
    night = user.types(*words)
    assert (night.exit_code, night.stdout) == (0, "6\n")
    assert "2026-01: 6 messages in " in night.stderr
    plan = user.plans(*words, "--drop")
    assert plan["plan"]["drop"] is True
    assert conn.execute("select count(*) from menzil.archive").fetchone() == (6,)


def test_what_can_be_refused_without_spark_does_not_start_it(
    db: str, conn: psycopg.Connection[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = User(db)
    said = user.fails("pipeline", "send", str(tmp_path / "none.csv"), "--endpoint", "billing", "--send-id", "x")
    assert said.startswith("Error: There is no file or directory")
    (tmp_path / "rows.csv").write_text("id\n1\n")
    words = ["pipeline", "send", str(tmp_path / "rows.csv"), "--endpoint", "billing", "--send-id", "x"]
    assert user.types(*words, "--column", "nonsense").exit_code == 2
    # Without the extra there is a sentence, and what helps.
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    assert user.fails(*words) == "Error: PySpark is not installed.\nHint: run `pip install 'menzil[spark]'`\n"


def test_a_process_without_the_extra_says_so_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "messages" / "metadata").mkdir(parents=True)
    program = "import sys; sys.modules['pyspark'] = None; from menzil.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "pipeline", "audit", "--lake", str(tmp_path)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: PySpark is not installed.\nHint: run `pip install 'menzil[spark]'`\n"


def test_the_name_of_a_source_tells_its_format(tmp_path: Path) -> None:
    assert [kind_of(name, None) for name in ("a.csv", "a.tsv.gz", "a.jsonl", "a.parquet", str(tmp_path))] == [
        "csv", "csv", "json", "parquet", "parquet",
    ]  # fmt: skip
    assert kind_of("orders", "table") == "table"
    with pytest.raises(UsageError, match="What is orders"):
        kind_of("orders", None)


def test_the_bar_fills_from_left_to_right() -> None:
    assert bar(0, 4) == "[>                       ] 0 of 4 tasks"
    assert bar(2, 4) == "[============>           ] 2 of 4 tasks"
    assert bar(4, 4) == "[========================] 4 of 4 tasks"


@pytest.mark.parametrize("archived", ["on", "off"])
def test_the_first_run_of_a_machine_says_why_it_takes_longer(
    archived: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("MENZIL_CLASS_ARCHIVE", archived)
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"")
    for name in ("LOOK", "LINE"):
        monkeypatch.setattr(watch, name, 0.01)
    said, deadline = "", time.monotonic() + 60
    with subprocess.Popen(["true", *archive.flags(java.find_java(), str(jar), True)]) as jvm:
        monkeypatch.setattr(launch, "_running", [jvm])
        with watch.watching(Workshop("", cast("Database", None), None, False), as_json=False):
            while said.count("Starting Spark") < 2:
                assert time.monotonic() < deadline, said
                said += capsys.readouterr().err
    assert said.count(watch.FIRST) == (archived == "on")
    assert said.startswith(watch.FIRST if archived == "on" else "Starting Spark")


@pytest.mark.slow
def test_the_command_starts_and_stops_its_own_spark(db: str, conn: psycopg.Connection[Any], tmp_path: Path) -> None:
    (tmp_path / "Größe.csv").write_text("id,amount\n1,2.50\n")
    command = [sys.executable, "-m", "menzil", "pipeline", "send", str(tmp_path / "Größe.csv"), "--endpoint", "billing",
               "--send-id", "s", "--schema", "id bigint, amount decimal(10,2)", "--master", "local[1]", "--yes",
               "--json"]  # fmt: skip
    # A Java that compiles only once is all the same to the command, and quicker up. It maps classes that are archived
    # for another one, and archives none itself, which no process would map.
    quick = {"MENZIL_DSN": db, "JDK_JAVA_OPTIONS": mapped.options()}
    quick |= {"MENZIL_CLASS_ARCHIVE": "off", "LC_ALL": "C"}  # a script's locale, and a name that ASCII lacks
    done = subprocess.run(
        command, env={**os.environ, **quick}, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["done"]["messages"] == 1
    assert "Exception" not in done.stderr
    assert conn.execute("select payload::text from menzil.queue").fetchall() == [('{"id": 1, "amount": 2.50}',)]
