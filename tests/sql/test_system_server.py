"""The same engine on the PostgreSQL of this machine, an older release than the embedded one: a short way through it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.types.json import Jsonb

from menzil.install import migrate
from tests.integration.install.system_postgres import missing, system_postgres
from tests.sql import golden
from tests.sql.clock import pass_time, until
from tests.sql.emptying import empty
from tests.sql.queue import Queue, ids
from tests.sql.test_golden_schema import FILE

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")


@pytest.fixture(scope="module")
def installed() -> Iterator[str]:
    with system_postgres() as dsn:
        migrate(dsn)
        yield dsn


@pytest.fixture
def system(installed: str) -> Iterator[Queue]:
    with psycopg.connect(installed, autocommit=True) as conn:
        empty(conn)
        queue = Queue(conn)
        queue.call("channel_set", "work")
        yield queue


def test_a_message_goes_all_the_way(system: Queue) -> None:
    sent = system.send(payload={"a": 1}, headers={"X-A": "1"}, idempotency_key="k")
    assert system.send(payload={"a": 1}, idempotency_key="k") == sent
    message = system.lease()
    assert (message.id, message.payload, message.headers) == (sent, {"a": 1}, {"X-A": "1"})
    assert system.complete(message) == {sent: "settled"}
    assert system.archived(sent).status == "completed"


def test_order_keys_schedules_and_expiry_hold(system: Queue) -> None:
    first, second = system.send(ordering_key="k"), system.send(ordering_key="k")
    urgent = system.send(priority=10)
    system.send(expires_at=system.one("select now() + interval '5 seconds'"))
    later = system.send(scheduled_at=system.one("select now() + interval '5 seconds'"))
    pass_time(system.conn, 6)
    taken = system.dequeue(10)
    assert ids(taken)[0] == urgent
    assert sorted(ids(taken)) == [first, urgent, later]
    system.complete(*taken)
    assert ids(until(lambda: system.dequeue(10))) == [second]


def test_failures_limits_and_lost_leases_hold(system: Queue) -> None:
    system.call("channel_set", "narrow", 1, 10, 1, 100)
    sent = system.send_batch("narrow", 2)
    assert system.fail(system.lease(), retry_after="0") == "retry"
    message = until(lambda: system.dequeue(5))[0]
    assert message.id == sent[0], "a retry comes back to the position it had"
    assert system.dequeue() == []
    pass_time(system.conn, 61)
    taken: list[int] = []

    def finish() -> bool:
        for leased in system.dequeue(5):
            system.fail(leased, "[PERMANENT] no")
            taken.append(leased.id)
        return len(taken) == 2

    until(finish)
    assert system.one("select count(*) from menzil.dlq") == 2
    assert [row[0] for row in system.all("select outcome from menzil.attempts order by ended_at")][:2] == [
        "failed",
        "recovered",
    ]


def test_many_messages_in_one_call_and_the_janitors(system: Queue) -> None:
    sent = system.call("send_many", ["work"] * 50, [Jsonb({"n": n}) for n in range(50)])
    assert ids(system.dequeue(100)) == sent
    system.call("maintain")
    assert system.call("maintain_archive_partitions", 4) == 1


def test_a_message_without_a_month_gets_one_once_it_ended(system: Queue) -> None:
    sent = system.send()
    system.conn.execute("update menzil.message set created_at = '2016-02-29'; update menzil.line set flags = flags | 1")
    system.complete(system.lease())
    assert system.call("archive_completed_messages", 0) == 1
    place = "select tableoid::regclass::text from menzil.message where id = %s"
    assert system.one(place, sent) == "menzil.archive_2016_02"


def test_every_job_runs(system: Queue) -> None:
    system.conn.execute("call menzil.run_jobs()")
    assert (
        system.all("select name, last_error from menzil.jobs where last_error is not null or last_run_at is null") == []
    )


def test_a_rebuild_gives_places_again(system: Queue) -> None:
    sent = system.send_batch("work", 300)
    system.conn.execute("delete from menzil.line; delete from menzil.run; delete from menzil.lane")
    assert system.call("rebuild") == 300
    assert ids(system.dequeue(500)) == sent


def test_the_schema_is_the_same_as_on_the_embedded_server(system: Queue) -> None:
    assert golden.lines(system.conn) == FILE.read_text().splitlines()
