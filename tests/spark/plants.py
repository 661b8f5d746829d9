"""Violations to plant into a clean history: each takes some of its messages, breaks one promise, and says where."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.spark.made_history import CHANNELS, clean_history

Row = dict[str, Any]
#: What to change: rows in place of those with the same id, rows beside them, ids that are gone; and what is then found.
Planted = tuple[list[Row], list[Row], list[int], dict[str, list[int]]]


class Field:
    """The clean messages from a place on, to choose from; what is chosen is a copy."""

    def __init__(self, rows: list[Row], after: int) -> None:
        self.rows, self.after = {row["id"]: row for row in rows}, after

    def pick(self, number: int, fits: Callable[[Row], bool], after: int = 0) -> list[Row]:
        found = (self.rows[i] for i in sorted(self.rows) if i > self.after + after and fits(self.rows[i]))
        return [deepcopy(row) for row, _ in zip(found, range(number), strict=False)]


def ids(rows: list[Row]) -> list[int]:
    return [row["id"] for row in rows]


def at_first(row: Row) -> bool:
    return row["status"] == "completed" and row["num_attempts"] == 1 and row["scheduled_at"] is None


def moved(row: Row, milliseconds: int) -> Row:
    """With all its tries at another time."""
    by = timedelta(milliseconds=milliseconds)
    for t in row["attempts"]:
        t["leased_at"] += by
        t["ended_at"] += by
    for name in ("first_leased_at", "leased_at", "ended_at"):
        row[name] += by
    return row


def twice(field: Field) -> Planted:
    copies = field.pick(2, lambda row: row["status"] == "cancelled")
    return [], copies, [], {"twice": ids(copies)}


def two_ends(field: Field) -> Planted:
    copies = field.pick(2, lambda row: row["status"] == "cancelled")
    for row in copies:
        row["ended_at"] += timedelta(milliseconds=100)
    return [], copies, [], {"two-ends": ids(copies)}


def a_missing_try(field: Field) -> Planted:
    rows = field.pick(2, lambda row: row["status"] == "failed" and row["num_attempts"] == 3)
    for row in rows:
        del row["attempts"][1]
    # The failures no longer fit the retries that were counted: the same story, told by another check.
    return rows, [], [], {"attempts": ids(rows), "outcome": ids(rows)}


def two_successes(field: Field) -> Planted:
    rows = field.pick(1, lambda row: row["num_attempts"] == 2 and row["retry_count"] == 0)
    rows[0]["attempts"][0]["outcome"] = "completed"
    return rows, [], [], {"outcome": ids(rows)}


def expired_too_soon(field: Field) -> Planted:
    rows = field.pick(2, lambda row: row["status"] == "expired")
    for row in rows:
        row["ended_at"] = row["expires_at"] - timedelta(microseconds=1)
    return rows, [], [], {"outcome": ids(rows)}


def before_schedule(field: Field) -> Planted:
    rows = [moved(row, -300) for row in field.pick(1, lambda row: row["scheduled_at"] is not None)]
    return rows, [], [], {"early": ids(rows)}


def after_expiry(field: Field) -> Planted:
    rows = field.pick(3, at_first)
    # To the microsecond: who expires at the time of the lease is late, who expires right after it is not.
    for row, by in zip(rows, (0, -50_000, 1), strict=True):
        row["expires_at"] = row["leased_at"] + timedelta(microseconds=by)
    return rows, [], [], {"late": ids(rows[:2])}


def unknown_original(field: Field) -> Planted:
    gone = field.pick(1, lambda row: row["status"] == "cancelled")[0]["id"]
    rows = field.pick(2, lambda row: row["redrive_of"] is None, after=gone - field.after)
    rows[0]["replay_of"], rows[1]["replay_of"] = gone, rows[1]["id"] + 5
    return rows, [], [gone], {"origin": ids(rows), "lost": [gone]}


def one_retry_too_many(field: Field) -> Planted:
    rows = field.pick(2, lambda row: row["status"] == "failed" and row["num_attempts"] == 3)
    for row in rows:
        again = deepcopy(row["attempts"][-1])
        again["attempt"] = 4
        again["leased_at"] += timedelta(seconds=1)
        again["ended_at"] += timedelta(seconds=1)
        row["attempts"].append(again)
        row.update(num_attempts=4, retry_count=3, leased_at=again["leased_at"], ended_at=again["ended_at"])
    return rows, [], [], {"retries": ids(rows)}


def retry_of_a_permanent_error(field: Field) -> Planted:
    rows = field.pick(1, lambda row: row["status"] == "completed" and row["retry_count"] == 1)
    rows[0]["attempts"][0]["error"] = " [PERMANENT] [DISABLE] gone"
    return rows, [], [], {"retries": ids(rows)}


def two_of_a_key(field: Field) -> Planted:
    def follows_a_retry(row: Row) -> bool:
        before = field.rows.get(row["id"] - 7 * CHANNELS)
        return at_first(row) and before is not None and before["status"] == "completed" and before["num_attempts"] == 2

    # It comes six seconds early, between the two tries of the message before it.
    rows = [moved(row, -6000) for row in field.pick(2, follows_a_retry)]
    for row in rows:
        row["created_at"] -= timedelta(milliseconds=6100)
    return rows, [], [], {"key-overlap": ids(rows)}


def overtaken(field: Field) -> Planted:
    def calm(row: Row) -> bool:
        after = [field.rows.get(row["id"] + n * 7 * CHANNELS) for n in (1, 2)]
        return at_first(row) and all(other is not None and at_first(other) for other in after)

    # It waits until two later ones of its key are done.
    rows = [moved(row, 16_000) for row in field.pick(1, calm)]
    return rows, [], [], {"key-order": ids(rows)}


PLANTS: list[Callable[[Field], Planted]] = [
    twice, two_ends, a_missing_try, two_successes, expired_too_soon, before_schedule, after_expiry, unknown_original,
    one_retry_too_many, retry_of_a_permanent_error, two_of_a_key, overtaken,
]  # fmt: skip


def as_rows(rows: list[Row]) -> list[Row]:
    """What Spark collected, with times that it takes back unchanged."""

    def aware(value: Any) -> Any:
        return value.astimezone() if isinstance(value, datetime) else value

    return [
        {**{name: aware(value) for name, value in row.items()},
         "attempts": [{name: aware(value) for name, value in t.items()} for t in row["attempts"]]}
        for row in rows
    ]  # fmt: skip


#: Ids of a plant; it takes what it needs from the clean messages there.
REGION = 1600
ALIVE = "ended-and-live"


@dataclass(frozen=True)
class Garden:
    """A history with every plant in it, the clean one, and what an audit has to find."""

    messages: DataFrame
    clean: DataFrame
    expected: dict[str, list[int]]


def planted(spark: SparkSession, number: int, clean: DataFrame | None = None) -> Garden:
    """Plant everything once, at the beginning of so many messages; beside them one is lost and one both ended and live.

    Of `clean`, if it is given, only the regions of the plants are ever collected.
    """
    assert number >= REGION * len(PLANTS) + 100
    whole = clean_history(spark, number) if clean is None else clean
    rows = as_rows([row.asDict(recursive=True) for row in whole.where(F.col("id") <= REGION * len(PLANTS)).collect()])
    rows.sort(key=lambda row: row["id"])
    instead, beside, gone = [], [], [number - 7]
    expected: dict[str, list[int]] = {"lost": [number - 7], ALIVE: [number - 6]}
    for place, plant in enumerate(PLANTS):
        done = plant(Field(rows[place * REGION : (place + 1) * REGION], place * REGION + 100))
        instead += done[0]
        beside += done[1]
        gone += done[2]
        for kind, which in done[3].items():
            expected[kind] = sorted([*expected.get(kind, []), *which])
    untouched = whole.where(~F.col("id").isin([*(row["id"] for row in instead), *gone]))
    messages = untouched.unionByName(spark.createDataFrame([*instead, *beside], whole.schema))
    return Garden(messages, whole, expected)
