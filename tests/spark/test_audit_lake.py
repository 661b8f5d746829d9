"""A real history, audited in its database and in a lake alone: clean as it was made, and caught wherever it is bent."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from menzil.cli import main
from menzil.cli.database import connected
from menzil.cli.report_small import small_report
from menzil.report import Figures, Slo
from menzil.spark.jobs.audit import AuditReport, audit
from menzil.spark.jobs.export import export
from menzil.spark.jobs.report import report
from tests.spark import busy

pytestmark = pytest.mark.slow

SENT = 1000

#: What is bent in the database before the second export, and the kinds that tell; the ids come back from SQL.
PLANTS = {
    "early": "update menzil.message m set scheduled_at = a.first_leased_at + interval '1 ms' from menzil.archive a"
    " where a.id = m.id and m.id = %s returning m.id",
    "late": "update menzil.message m set expires_at = a.leased_at from menzil.archive a"
    " where a.id = m.id and m.id = %s returning m.id",
    "outcome": """update menzil.returned set retry_count = retry_count + 1 where %s::bigint is not null and id = (
      select max(id) from menzil.archive where status = 'completed' and retry_count > 0) returning id""",
    "origin": "update menzil.message set replay_of = id + 1 where id = %s returning id",
    "attempts": "update menzil.done set attempt = attempt + 1 where lo_id = %s and n = 1 returning lo_id",
}
PLAIN = """select id from menzil.archive
  where status = 'completed' and num_attempts = 1 and scheduled_at is null and expires_at is null
    and redrive_of is null and ordering_key is null and channel = 'free' order by id limit %s"""
PERMANENT = """update menzil.attempt set error = '[PERMANENT] HTTP 410' where (message_id, attempt) in (
  select a.message_id, a.attempt from menzil.attempts a join menzil.archive m on m.id = a.message_id
   where a.outcome = 'failed' and a.attempt = 1 and m.status = 'completed' order by 1 limit 1) returning message_id"""
#: The engine kept to the limits that held; the log now says that they were tighter.
TIGHTER = (("narrow", '{"max_concurrency": 1}'), ("paced", '{"release_count": 1}'))
CIRCUIT = """insert into menzil.event (event_type, entity_type, entity_id, created_at)
  select kind, 'endpoint', 'free', (select min(created_at) from menzil.archive) + after
    from (values ('circuit.opened', interval '1 ms'), ('circuit.closed', interval '91 ms')) v (kind, after)"""


def found(report: AuditReport) -> dict[str, list[int]]:
    return {check.kind: report.found(check.kind) for check in report.checks if check.violations}


def plainly(made: Figures) -> dict[str, Any]:
    """What is counted, without percentiles: those of Spark are approximate."""
    counts = ("channel", "sent", "completed", "failed", "expired", "cancelled", "retried", "tries", "within")
    return {
        "total": {name: made.total[name] for name in counts[1:]},
        "endpoints": [{name: row[name] for name in counts} for row in made.endpoints],
        "buckets": [(row["bucket"], row["sent"]) for row in made.times],
        "errors": sorted((row["cause"], row["messages"], row["sample_id"]) for row in made.errors),
        "incidents": [(row["channel"], row["seconds"]) for row in made.incidents],
    }


def bend(conn: psycopg.Connection[Any]) -> dict[str, list[int]]:
    """Plant one violation of each kind; the ids."""
    free = [row[0] for row in conn.execute(PLAIN, (len(PLANTS),)).fetchall()]
    planted = {}
    for (kind, query), target in zip(PLANTS.items(), free, strict=True):
        planted[kind] = [row[0] for row in conn.execute(query, (target,)).fetchall()]  # type: ignore[call-overload]
    planted["retries"] = [row[0] for row in conn.execute(PERMANENT).fetchall()]
    for name, change in TIGHTER:
        conn.execute("update menzil.event set new_value = new_value || %s where entity_id = %s", (change, name))
    assert all(len(ids) == 1 for ids in planted.values())
    return planted


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[AuditReport]:
    """What the command has found, besides what it says: the job runs as it is, and its result is kept."""
    kept: list[AuditReport] = []

    def keeping(*given: Any, **more: Any) -> AuditReport:
        kept.append(audit(*given, **more))
        return kept[-1]

    monkeypatch.setattr("menzil.spark.jobs.audit.audit", keeping)
    return kept


def test_a_lake_alone_is_audited_and_reported_like_its_database(
    spark: SparkSession, db: str, tmp_path: Path, reports: list[AuditReport]
) -> None:
    told = busy.make(db, SENT)
    ledger = tmp_path / "ledger.csv"
    ledger.write_text("id,acknowledged_at\n" + "".join(f"{i},{at.isoformat()}\n" for i, at in told))
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute(CIRCUIT)
    said = CliRunner().invoke(main, ["pipeline", "audit", "--dsn", db, "--ledger", str(ledger), "--commit-slack", "0"])
    (live,) = reports
    assert found(live) == {}
    assert (said.exit_code, live.ok) == (0, True), said.output
    assert "Every promise that can be checked was kept." in said.stderr
    assert [check.kind for check in live.checks if check.skipped] == []
    counts = live.counts
    assert (counts["acknowledged"], counts["live"]) == (SENT, 0)
    assert counts["ended"] > SENT  # redriven dead letters are messages of their own
    ends = ("completed", "failed", "expired", "cancelled")
    assert sum(counts[name] for name in ends) == counts["ended"]
    assert min(counts[name] for name in ends) > 0

    # It is no blind eye: what is bent is found, in a lake alone, by its kind and its ids, and nothing else is.
    with psycopg.connect(db, autocommit=True) as conn:
        planted = bend(conn)
    bent = tmp_path / "bent"
    assert export(spark, db, bent).rows == counts["ended"]
    said = CliRunner().invoke(
        main, ["pipeline", "audit", "--lake", str(bent), "--ledger", str(ledger), "--show", "1000"]
    )
    alone = reports[-1]
    caught = found(alone)
    assert caught.pop("concurrency")
    assert caught.pop("rate")
    assert caught == planted
    # Of the channels with limits only those are over, of which the log now says tighter ones.
    over = {(each.kind, each.channel) for each in alone.violations if each.kind in ("concurrency", "rate")}
    assert over == {("concurrency", "narrow"), ("rate", "paced")}
    # Only what is live now it cannot know.
    assert [check.kind for check in alone.checks if check.skipped] == ["ended-and-live"]
    assert {name: alone.counts[name] for name in ("ended", "failed", "acknowledged")} == {
        name: counts[name] for name in ("ended", "failed", "acknowledged")
    }
    # The command tells the story of each, and exits with 1.
    assert said.exit_code == 1, said.output
    assert f"{counts['ended']:,} ended ({counts['completed']:,} completed, " in said.stdout
    assert "1  Nothing is delivered before its schedule" in said.stdout
    assert f"message {planted['early'][0]} to free" in said.stdout
    assert "attempt 1" in said.stdout
    assert f"{sum(check.violations for check in alone.checks)} violations found." in said.stderr

    # With Spark, of the lake and of the database.
    made = report(spark, str(bent), tmp_path / "report.html")
    assert (made.total["sent"], made.incident_count) == (counts["ended"], 1)
    assert (made.incidents[0]["channel"], made.incidents[0]["seconds"]) == ("free", 0.09)
    out = tmp_path / "live.html"
    said = CliRunner().invoke(main, ["pipeline", "report", "--dsn", db, "--out", str(out), "--json"])
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["total"]["sent"] == counts["ended"]
    assert "from the live database" in out.read_text(encoding="utf-8")
    assert db not in out.read_text(encoding="utf-8")

    # Without Spark: the lake by Arrow, the database by SQL, and both together, in which each message counts once.
    options: dict[str, Any] = {"slo": Slo(), "start": None, "end": None, "now": datetime.now(UTC)}
    with connected(db) as live_db:
        for small in (small_report(str(bent), None, **options), small_report(None, live_db, **options),
                      small_report(str(bent), live_db, **options)):  # fmt: skip
            assert plainly(small) == plainly(made)


def test_a_lake_that_is_not_there_is_named_before_anything_starts(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    for words in (
        ["audit", "--lake", missing],
        ["report", "--lake", missing, "--out", str(tmp_path / "page.html")],
        ["replay", "--lake", missing, "--all", "--run-id", "x"],
    ):
        told = CliRunner().invoke(main, ["pipeline", *words])
        assert told.exit_code == 2
        assert told.stderr == (
            f"Error: There is no lake in {missing}.\nHint: `menzil pipeline export --lake {missing}` makes one\n"
        )
    told = CliRunner().invoke(main, ["pipeline", "report", "--lake", missing, "--out", f"{missing}/page.html"])
    assert told.stderr.startswith(f"Error: There is no directory {missing}.\nHint: ")
    told = CliRunner().invoke(main, ["pipeline", "audit", "--lake", missing, "--ledger", f"{missing}/sent.csv"])
    assert told.stderr.startswith(f"Error: There is no file or directory {missing}/sent.csv.\nHint: ")
