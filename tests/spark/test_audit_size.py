"""The audit of a long history: `pytest -n 0 -m torture tests/spark/test_audit_size.py -s`.

MENZIL_AUDIT_MESSAGES says how many messages; five millions unless given.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from menzil.spark.jobs.audit import AuditReport, History, audit_history
from tests.spark.made_history import (
    CHANNELS,
    LIMIT,
    MAX_RETRIES,
    RATE_COUNT,
    RATE_MS,
    clean_events,
    clean_history,
    event_frame,
)
from tests.spark.plants import ALIVE, planted

pytestmark = [pytest.mark.torture, pytest.mark.timeout(7200), pytest.mark.usefixtures("compiled")]

NUMBER = int(os.environ.get("MENZIL_AUDIT_MESSAGES", "5000000"))


def kept(spark: SparkSession, messages: DataFrame, place: Path) -> DataFrame:
    """On disk, so that making it is not part of what is measured."""
    messages.write.parquet(str(place))
    return spark.read.parquet(str(place))


def audited(history: History, what: str) -> AuditReport:
    started = time.monotonic()
    report = audit_history(history, samples=50)
    number = sum(check.violations for check in report.checks)
    print(f"{what}: {NUMBER:,} messages, {number} violations, {time.monotonic() - started:.0f} s")
    return report


def found(report: AuditReport) -> dict[str, list[int]]:
    return {check.kind: report.found(check.kind) for check in report.checks if check.violations}


def test_millions_of_messages_are_clean_and_every_planted_violation_among_them_is_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    clean = kept(spark, clean_history(spark, NUMBER), tmp_path / "clean")
    known = {"events": clean_events(spark), "commit_slack": timedelta(0), "ledger": clean.select("id")}
    report = audited(History(clean, **known), "clean")
    assert found(report) == {}
    assert report.counts["ended"] == NUMBER
    garden = planted(spark, NUMBER, clean)
    live = spark.createDataFrame(
        [(i, "channel-0", None) for i in garden.expected[ALIVE]],
        "id bigint, channel string, processing_started_at timestamp",
    )
    assert found(audited(History(garden.messages, live=live, **known), "planted")) == garden.expected


def test_a_channel_that_has_all_messages_is_swept_by_many_tasks(spark: SparkSession, tmp_path: Path) -> None:
    one = clean_history(spark, NUMBER).withColumns({
        "ordering_key": F.concat_ws(" ", "channel", "ordering_key"), "channel": F.lit("channel-0"),
        "endpoint_id": F.lit(1),
    })  # fmt: skip
    messages = kept(spark, one, tmp_path / "one")

    def with_limits(concurrency: int, rate: int) -> History:
        limits = f'{{"max_concurrency": {concurrency}, "release_interval_ms": {RATE_MS}, "release_count": {rate}}}'
        events = event_frame(spark, [
            ("setting.changed", "default_max_retries", '"10"', f'"{MAX_RETRIES}"', -90.0),
            ("channel.created", "channel-0", None, limits, -60.0),
        ])  # fmt: skip
        return History(messages, events=events, commit_slack=timedelta(0))

    assert found(audited(with_limits(LIMIT * CHANNELS, RATE_COUNT * CHANNELS), "one channel")) == {}
    tight = found(audited(with_limits(CHANNELS // 2, CHANNELS), "one channel, tighter limits"))
    assert set(tight) == {"concurrency", "rate"}
