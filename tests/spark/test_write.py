"""`df.write.format("menzil")`: rows become messages, or a sentence says why not and nothing was sent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from menzil.spark.session import explain
from tests.spark.sending import one, staged, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def refusal(frame: DataFrame, dsn: str, **options: Any) -> str:
    with pytest.raises(Exception) as refused:  # noqa: PT011  # whatever Spark makes of it
        write(frame, dsn, **options)
    said = explain(refused.value)
    assert said.hint
    return said.message


def test_rows_of_many_partitions_become_messages_in_their_order(spark: SparkSession, work: str) -> None:
    frame = spark.range(0, 1000, 1, 7).selectExpr("cast(id as string) as payload")
    write(frame, work, "first", endpoint="work")
    assert one(work, "select array_agg(payload::int order by id) from menzil.queue") == list(range(1000))
    assert one(work, "select state, row_count, created_count from menzil.bulk_sends") == ("done", 1000, 1000)
    assert one(work, "select count(*) from menzil.message_dequeue(1000, 100)") == 100
    assert staged(work) == 0


@pytest.mark.usefixtures("compiled")
def test_everything_a_message_can_carry_comes_from_columns(spark: SparkSession, work: str) -> None:
    frame = spark.sql("""
        select 'work' as channel, named_struct('a', 1, 'b', array('x')) as payload, 7S as priority, 'k' as ordering_key,
               'i' as idempotency_key, '6f1c7b2e-4c1d-4b8e-9b57-0d0c3e8a1f11' as correlation_id,
               timestamp'2001-02-03T04:05:06.789Z' as scheduled_at, timestamp'2099-01-01T00:00:00Z' as expires_at,
               map('X-Tenant', 'a') as headers, '{"m": 1}' as metadata, 12L as replay_of""")
    write(frame, work)
    columns = (
        "payload, priority, ordering_key, idempotency_key, correlation_id::text,"
        " scheduled_at = '2001-02-03T04:05:06.789Z', expires_at = '2099-01-01Z', headers, metadata, replay_of"
    )
    assert one(work, f"select {columns} from menzil.queue") == (
        {"a": 1, "b": ["x"]}, 7, "k", "i", "6f1c7b2e-4c1d-4b8e-9b57-0d0c3e8a1f11", True, True, {"X-Tenant": "a"},
        {"m": 1}, 12,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "options", "told", "hint"),
    [
        (
            "raise_error('a row was read') || '' as payload",
            {"endpoint": "work", "send_id": "x"},
            "UsageError: There is no option 'send_id' here.",
            "did you mean sendId?",
        ),
        (
            "raise_error('a row was read') || '' as payload",
            {"endpoint": "wrok"},
            "UnknownNameError: There is no channel or endpoint named 'wrok'.",
            "menzil channel list",
        ),
        (
            "'1' as payload, 'wrok' as endpoint",
            {},
            "UnknownNameError: There is no channel or endpoint named 'wrok'.",
            "menzil channel list",
        ),
    ],
)
def test_a_misspelled_option_or_endpoint_is_refused_before_a_row_is_staged_and_the_sentence_comes_first(
    spark: SparkSession, work: str, columns: str, options: dict[str, str], told: str, hint: str
) -> None:
    frame = spark.sql(f"select {columns}")
    with pytest.raises(Exception, match="menzil") as refused:
        frame.write.format("menzil").option("dsn", work).options(**options).mode("append").save()
    raw = str(refused.value)
    assert told in "".join(raw.splitlines()[:2])  # of a task, Spark says first where it comes from
    assert "Traceback" not in raw
    said = explain(refused.value)
    assert f"{type(said).__name__}: {said.message}" == told
    assert hint in str(said.hint)
    assert one(work, "select count(*) from menzil.bulk_sends") == 0


def test_a_send_that_is_done_stays_done_when_its_endpoint_is_gone(spark: SparkSession, work: str) -> None:
    frame = spark.sql("select '1' as payload")
    write(frame, work, "kept", endpoint="work")
    one(work, "select menzil.channel_release('work')")
    write(frame, work, "kept", endpoint="work")
    assert one(work, "select count(*) from menzil.queue") == 1


def test_bytes_are_sent_as_they_are(spark: SparkSession, work: str) -> None:
    write(spark.sql("select x'00ff' as payload"), work, endpoint="work")
    assert one(work, "select content, payload from menzil.queue") == (b"\x00\xff", None)


def test_the_same_send_id_again_sends_nothing(spark: SparkSession, work: str) -> None:
    frame = spark.range(10).selectExpr("cast(id as string) as payload")
    write(frame, work, "once", endpoint="work")
    write(frame, work, "once", endpoint="work")
    assert one(work, "select count(*) from menzil.queue") == 10
    write(frame, work, "twice", endpoint="work")
    assert one(work, "select count(*) from menzil.queue") == 20


def test_bad_rows_are_named_and_nothing_is_sent(spark: SparkSession, work: str) -> None:
    frame = spark.range(0, 100, 1, 4).selectExpr(
        "case when id % 30 = 7 then '{' else '1' end as payload", "concat('order-', id) as ordering_key"
    )
    said = refusal(frame, work, send_id="bad", endpoint="work")
    assert said.startswith("4 of 100 rows cannot be sent, so none was. Row 8 to 'work' with ordering key 'order-7':")
    assert "order-37" in said
    assert "Traceback" not in said
    assert "\n" not in said
    assert one(work, "select count(*) from menzil.queue") == 0
    assert (staged(work), one(work, "select count(*) from menzil.bulk_sends")) == (0, 0)
    write(frame.where("payload <> '{'"), work, "bad", endpoint="work")  # the id is free again
    assert one(work, "select count(*) from menzil.queue") == 96


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("'1' as payload", {"endpoint": "nobody"}, "There is no channel or endpoint named 'nobody'."),
        ("'1' as payload, 1 as colour", {"endpoint": "work"}, "A message has no 'colour'"),
        ("'1' as payload", {}, "Which endpoint?"),
        ("'1' as payload", {"endpoint": "work", "mode": "overwrite"}, "cannot be overwritten"),
        ("named_struct('a', double('NaN')) as payload", {"endpoint": "work"}, "nan is no number of JSON"),
        ("concat('1', char(0)) as payload", {"endpoint": "work"}, "PostgreSQL did not take the rows"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_a_sentence(
    spark: SparkSession, work: str, columns: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(Exception) as refused:  # noqa: PT011
        write(spark.sql(f"select {columns}"), work, **options)
    assert said in explain(refused.value).message
    assert one(work, "select count(*) from menzil.queue") == 0
    assert staged(work) == 0


def test_a_full_queue_refuses_the_whole_send(spark: SparkSession, work: str) -> None:
    one(work, "select menzil.set_setting('max_queue_size', '9')::text")
    said = refusal(spark.range(10).selectExpr("'1' as payload"), work, endpoint="work")
    assert "Queue backpressure" in said
    assert one(work, "select count(*) from menzil.queue") == 0


def test_a_task_that_fails_after_half_its_rows_is_tried_again_and_counts_once(
    spark: SparkSession, work: str, tmp_path: Path
) -> None:
    mark = tmp_path / "failed"

    def fail_once(batches: Any) -> Any:
        from pyspark import TaskContext

        for number, batch in enumerate(batches):
            yield batch
            if number == 1 and TaskContext.get().partitionId() == 1 and not mark.exists():
                mark.touch()
                raise RuntimeError("The first try dies here.")

    size = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    try:
        frame = spark.range(0, 3000, 1, 3).selectExpr("cast(id as string) as payload")
        write(frame.mapInArrow(fail_once, "payload string"), work, "failing", endpoint="work")
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", size)
    assert mark.exists()
    assert one(work, "select count(*), count(distinct payload) from menzil.queue") == (3000, 3000)
    assert staged(work) == 0


def test_a_task_that_always_fails_sends_nothing_and_cleans_up(spark: SparkSession, work: str) -> None:
    frame = spark.range(0, 100, 1, 2).selectExpr("if(id = 99, raise_error('broken row'), '1') as payload")
    with pytest.raises(Exception, match="broken row"):
        write(frame, work, "broken", endpoint="work")
    assert one(work, "select count(*) from menzil.queue") == 0
    assert staged(work) == 0


def test_two_sends_with_the_same_idempotency_keys_create_each_message_once(spark: SparkSession, work: str) -> None:
    frame = spark.range(100).selectExpr("cast(id as string) as payload", "concat('k', id) as idempotency_key")
    write(frame, work, "a", endpoint="work")
    write(frame, work, "b", endpoint="work")
    assert one(work, "select count(*) from menzil.queue") == 100
    assert one(work, "select row_count, created_count from menzil.bulk_sends where send_id = 'b'") == (100, 0)


def test_a_role_of_the_pipeline_is_enough(spark: SparkSession, work: str) -> None:
    from psycopg.conninfo import make_conninfo

    one(work, "select 1")
    with psycopg.connect(work, autocommit=True) as conn:
        conn.execute("drop role if exists mz_spark; create role mz_spark login password 'x' in role menzil_pipeline")
    try:
        narrow = make_conninfo(work, user="mz_spark", password="x")
        write(spark.range(10).selectExpr("'1' as payload"), narrow, endpoint="work")
        assert one(work, "select count(*) from menzil.queue") == 10
        assert one(narrow, "select row_count from menzil.bulk_sends") == 10
    finally:
        with psycopg.connect(work, autocommit=True) as conn:
            conn.execute("drop owned by mz_spark; drop role mz_spark")
