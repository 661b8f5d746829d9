"""A lake of menzil 0.1, with manifests and without field ids, becomes Iceberg tables: no byte is written again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from menzil.cli import main
from menzil.ops import lake as ops
from menzil.ops.run import run
from menzil.spark import lake
from menzil.spark.jobs.export import export
from menzil.spark.jobs.export_rows import event_rows, rows
from menzil.spark.lake import LakeDamagedError, layout
from menzil.spark.lake.adopt import adopt
from menzil.spark.lake.compare import archived as in_archive
from menzil.spark.lake.cover import Part
from menzil.spark.lake.fingerprint import LEAN_EVENTS, Fingerprint, of_frame
from menzil.spark.lake.schema import EVENTS, MESSAGES
from tests.spark.lake_history import DECEMBER, JANUARY, archived, event_lines, fill, in_database, in_lake, lines_in_lake

pytestmark = pytest.mark.slow


class OldLake:
    """Writes as menzil 0.1 did: Spark's Parquet in directories of year, month and endpoint, and manifests beside it."""

    def __init__(self, spark: SparkSession, dsn: str, place: Path) -> None:
        self.spark, self.dsn, self.place, self.number = spark, dsn, place, 0
        (place / "_manifest").mkdir(parents=True)

    def export(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            part = Part(0, int(run(conn, ops.settled_before())))
            for month in (DECEMBER, JANUARY):
                seen = in_archive(conn, month, [part])
                frame = rows(self.spark, conn, self.dsn, month, [part], seen).withColumn(
                    "priority", F.col("priority").cast("smallint")
                )
                files = self._write(frame, _directory(conn), month)
                self._manifest("export", MESSAGES, month, files, part, Fingerprint.of_archive(seen[0]))
            whole = Fingerprint.of_events(run(conn, ops.event_log_fingerprint(None, None)))
            lines = event_rows(self.spark, self.dsn, [part], whole).drop("actor", "via")
            files = self._write(lines, F.date_format("created_at", "yyyy-MM"), None)
            self._manifest("export", EVENTS, EVENTS, files, part, of_frame(lines, EVENTS, LEAN_EVENTS))
        self._manifest("run", MESSAGES, None, [], None, None)

    def _write(self, frame: DataFrame, part: Column, month: str | None) -> list[dict[str, Any]]:
        """A file for each part: of the messages of a month a channel, of the event log, without a month, a month."""
        work = self.place.parent / f"work-{self.number}"
        self.spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        rows = frame.withColumn("part", part).coalesce(1)
        rows.write.partitionBy("part").option("compression", "zstd").parquet(str(work))
        self.spark.conf.unset("spark.sql.parquet.outputTimestampType")
        files = []
        for made in sorted(work.glob("part=*/*.parquet")):
            value = made.parent.name.removeprefix("part=")
            year, number = (month or value).split("-")
            directory = f"year={year}/month={number}"
            directory = f"events/{directory}" if month is None else f"data/{directory}/endpoint={value}"
            target = self.place / directory / f"first-{month or value}-5d1c07aa-00000.parquet"
            target.parent.mkdir(parents=True, exist_ok=True)
            assert not target.exists(), "two files of one part"
            made.rename(target)
            files.append({
                "path": str(target.relative_to(self.place)), "month": month or value,
                "endpoint": None if month is None else value, "size": target.stat().st_size, "fingerprint": {},
            })  # fmt: skip
        return files

    def _manifest(
        self, kind: str, table: str, month: str | None, files: list[Any], part: Part | None, whole: Fingerprint | None
    ) -> None:
        self.number += 1
        about = None
        if part is not None and whole is not None:
            about = {"run": "first", "month": month, "parts": [part.as_json()], "fingerprint": whole.as_json()}
        document = {
            "format": 1, "kind": kind, "run": "first", "month": None if month == EVENTS else month, "at": "2025-02-01",
            "files": files, "replaces": [], "slice": about, "columns": {}, "table": table, "promoted": [],
            "keep_seconds": 0.0, "source": None,
        }  # fmt: skip
        (self.place / "_manifest" / f"{self.number:020}.json").write_text(json.dumps(document))


def _directory(conn: psycopg.Connection[Any]) -> Column:
    """What a channel's directory was called."""
    names = [name for (name,) in conn.execute("select name from menzil.channels")]
    return F.create_map(*[F.lit(text) for name in names for text in (name, layout.directory(name))])[F.col("channel")]


def test_an_old_lake_is_adopted_without_writing_data_and_goes_on(spark: SparkSession, db: str, tmp_path: Path) -> None:
    place = tmp_path / "lake"
    fill(db, 1, 12)
    OldLake(spark, db, place).export()
    told = CliRunner().invoke(main, ["pipeline", "audit", "--lake", str(place)])
    assert "menzil lake adopt" in told.output
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*.parquet")}
    (place / "data" / "left-over.parquet").write_bytes(b"which no manifest names")

    # A file that is not as it was exported stops it, and nothing has happened.
    victim = max(before)
    sound = victim.read_bytes()
    victim.write_bytes(next(path for path in before if path.parent != victim.parent).read_bytes())
    with pytest.raises(LakeDamagedError, match="hold other rows"):
        adopt(spark, place, db)
    victim.write_bytes(sound)
    before[victim] = victim.stat().st_mtime_ns

    report = adopt(spark, place, db)
    assert (report.rows, report.months, report.files) == (12, 2, len(before))
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert {Path(path) for path in lake.files(place) + lake.files(place, table="events")} == set(before)
    assert adopt(spark, place, db).repeated
    assert in_lake(place, spark) == in_lake(place) == in_database(db)
    assert lake.verify(place, db, spark=spark).problems == ()

    # It goes on: what was exported is known, what is new comes, months leave, and small files become one.
    assert export(spark, db, place, run_id="first").repeated
    fill(db, 13, 20)
    whole = in_database(db)
    assert export(spark, db, place).rows == 8
    assert lake.compact(spark, place, db).before > 0
    assert in_lake(place) == whole
    lines = lines_in_lake(place)
    assert lines.keys() == event_lines(db).keys()
    assert lake.verify(place, db, spark=spark).problems == ()
    assert export(spark, db, place, drop=True).dropped == [DECEMBER, JANUARY]
    assert archived(db) == 0
    assert in_lake(place) == whole
