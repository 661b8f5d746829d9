"""The change feed as a stream: every ended message once, whoever commits when."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from menzil.spark.session import explain
from tests.spark import stock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITERS, EACH, CALL = 16, 60, 6


@pytest.fixture
def conn(db: str) -> Iterator[stock.Conn]:
    with psycopg.connect(db, autocommit=True) as conn:
        yield conn


class Stream:
    """A query over the feed that collects what it reads; its checkpoint lasts from run to run."""

    def __init__(self, spark: SparkSession, db: str, place: Path, **options: Any) -> None:
        self.spark, self.place = spark, str(place / "checkpoint")
        self.options = {"dsn": db, "table": "archive", **options}
        self.batches: list[list[int]] = []

    def start(self, **trigger: Any) -> Any:
        reader = self.spark.readStream.format("menzil").schema("id bigint")
        for name, value in self.options.items():
            reader = reader.option(name, str(value))

        def collect(frame: Any, number: int) -> None:
            self.batches.append([row.id for row in frame.collect()])

        writer = reader.load().writeStream.foreachBatch(collect).option("checkpointLocation", self.place)
        return writer.trigger(**trigger).start()

    def run(self) -> list[int]:
        """Read what is there now; the ids that came."""
        before = len(self.batches)
        query = self.start(availableNow=True)
        query.awaitTermination(120)
        if query.exception() is not None:
            raise query.exception()
        return [row for batch in self.batches[before:] for row in batch]


class Mutant(threading.Thread):
    """A reader as people write it first: whatever is visible and beyond the last row it saw."""

    def __init__(self, db: str, place: str) -> None:
        super().__init__()
        self.db, self.expression = db, place
        self.seen: Counter[int] = Counter()
        self.over = threading.Event()
        self.looked = threading.Event()

    def run(self) -> None:
        with psycopg.connect(self.db, autocommit=True) as conn:
            last: tuple[Any, ...] = ("0", 0)  # and the row that warmed up the other reader is not theirs
            while True:
                over = self.over.is_set()
                self.looked.clear()
                query = f"""select ended_xid::text, id from menzil.archive
                    where id < 1000000 and {self.expression} order by ended_xid, id"""
                rows = conn.execute(query.encode(), last).fetchall()
                self.seen.update(row[1] for row in rows)
                if rows:
                    last = rows[-1] if "ended_xid" in self.expression else ("0", max(row[1] for row in rows))
                self.looked.set()
                if over:
                    return
                self.over.wait(0.02)


def lease(conn: stock.Conn, channel: str) -> list[Any]:
    leased: list[Any] = []
    while len(leased) < EACH:
        leased += conn.execute(
            "select id, num_attempts from menzil.message_dequeue(600000, 100, array[%s])", (channel,)
        )
    return leased


def write(db: str, number: int, leased: list[Any], started: threading.Barrier) -> None:
    """Complete the messages of one channel in transactions that stay open for a while and sometimes roll back."""
    dice = random.Random(number)
    with psycopg.connect(db, autocommit=True) as conn:
        started.wait(60)
        while leased:
            part = leased[: dice.randint(1, CALL)]
            with conn.transaction(force_rollback=(rolled_back := dice.random() < 0.3)):
                ids, attempts = zip(*part, strict=True)
                conn.execute("select menzil.message_complete(%s::bigint[], %s::bigint[])", (list(ids), list(attempts)))
                conn.execute("select pg_sleep(%s)", (dice.random() * 0.15,))
            if not rolled_back:
                leased = leased[len(part) :]


def test_sixteen_writers_lose_nothing_and_repeat_nothing(
    spark: SparkSession, db: str, conn: stock.Conn, tmp_path: Path
) -> None:
    for number in range(WRITERS):
        conn.execute("select menzil.channel_set(%s)", (f"c{number}",))
        conn.execute(
            "select menzil.send_batch(%s, array(select '{}'::jsonb from generate_series(1, %s)))", (f"c{number}", EACH)
        )
    wanted = {row[0] for row in conn.execute("select id from menzil.queue")}
    stream = Stream(spark, db, tmp_path, consumer="sixteen")
    stock.archive(conn, 1, first=1_000_000)
    query = stream.start(processingTime="0 seconds")
    query.processAllAvailable()  # it is warm, and reads while they write
    mutants = {
        "id > last": Mutant(db, "%s::text is not null and id > %s"),
        "no bound": Mutant(db, "(ended_xid, id) > (%s::xid8, %s::bigint)"),
    }
    started = threading.Barrier(WRITERS)
    writers = [
        threading.Thread(target=write, args=(db, number, lease(conn, f"c{number}"), started))
        for number in range(WRITERS)
    ]
    try:
        for thread in (*mutants.values(), *writers):
            thread.start()
        for thread in writers:
            thread.join(120)
        query.processAllAvailable()
    finally:
        query.stop()
        for mutant in mutants.values():
            mutant.over.set()
            mutant.join(30)
    assert stream.batches.pop(0) == [1_000_000]
    seen = Counter(row for batch in stream.batches for row in batch)
    assert set(seen) == wanted
    assert set(seen.values()) == {1}
    assert len(stream.batches) > 1
    for name, mutant in mutants.items():
        assert set(mutant.seen) < wanted, f"a reader with {name} was lucky: this test shows nothing"


def test_a_row_that_commits_late_is_still_ahead(spark: SparkSession, db: str, conn: stock.Conn, tmp_path: Path) -> None:
    stream = Stream(spark, db, tmp_path)
    stock.make_months(conn)
    with psycopg.connect(db) as late:
        stock.archive(late, 2, first=100)
        stock.archive(conn, 2, first=200)
        assert stream.run() == []  # 200 is committed, and something before it is not
        late.commit()
    assert stream.run() == [100, 101, 200, 201]
    assert stream.run() == []


@pytest.mark.usefixtures("compiled")
def test_batches_are_as_small_as_asked_and_a_restart_goes_on(
    spark: SparkSession, db: str, conn: stock.Conn, tmp_path: Path
) -> None:
    stock.archive(conn, 25)
    stream = Stream(spark, db, tmp_path, maxRowsPerTrigger=10, rowsPerTask=4, consumer="billing")
    assert stream.run() == list(range(1, 26))
    assert [len(batch) for batch in stream.batches] == [10, 10, 5]
    behind = "select feed, behind_since from menzil.consumers where name = 'billing'"
    assert conn.execute(behind).fetchone() == ("archive", None)
    stock.archive(conn, 1, first=50)
    assert (
        conn.execute(behind).fetchone()
        == conn.execute("select 'archive', ended_at from menzil.archive where id = 50").fetchone()
    )
    assert stream.run() == [50]


def test_history_that_is_cleaned_up_unread_stops_the_reader(
    spark: SparkSession, db: str, conn: stock.Conn, tmp_path: Path
) -> None:
    stock.archive(conn, 6, months=2)
    stream = Stream(spark, db, tmp_path)
    assert len(stream.run()) == 6
    stock.drop_january(conn)
    assert stream.run() == []  # what it had read may go
    stock.archive(conn, 6, months=2, first=100)
    stock.drop_january(conn)
    with pytest.raises(Exception, match="cleaned up") as caught:
        stream.run()
    told = str(explain(caught.value))
    assert told.startswith("Rows that this reader had not seen were cleaned up at")
    assert "failOnDataLoss" in told
    assert "Traceback" not in told
    stream.options["failOnDataLoss"] = "false"
    assert stream.run() == [101, 103, 105]
    # Who starts now has lost nothing: it begins with what there is.
    assert sorted(Stream(spark, db, tmp_path / "new").run()) == [1, 3, 5, 101, 103, 105]


def test_a_reader_starts_where_it_is_told(spark: SparkSession, db: str, conn: stock.Conn, tmp_path: Path) -> None:
    stock.archive(conn, 3)
    latest = Stream(spark, db, tmp_path / "latest", startingOffsets="latest")
    assert latest.run() == []
    (xid,) = conn.execute("select ended_xid::text from menzil.archive limit 1").fetchone() or ()
    place = f'{{"xid": {xid}, "id": 2}}'
    assert Stream(spark, db, tmp_path / "place", startingOffsets=place).run() == [3]
    stock.archive(conn, 2, first=10)
    assert latest.run() == [10, 11]


def test_the_event_log_is_a_feed_too(spark: SparkSession, db: str, conn: stock.Conn, tmp_path: Path) -> None:
    stream = Stream(spark, db, tmp_path, table="event_log")
    before = stream.run()
    conn.execute("select menzil.channel_set('a')")
    conn.execute("select menzil.channel_pause('a')")
    news = [row[0] for row in conn.execute("select id from menzil.event_log order by xid, id")][len(before) :]
    assert news
    assert stream.run() == news
