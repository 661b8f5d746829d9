"""A database knows where it lives. A copy gives out no message and fires no schedule; everything else works."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.sql.queue import Queue
from tests.sql.staging import bulk, row


@pytest.fixture
def copy(queue: Queue) -> Iterator[Queue]:
    """The queue of a database that was cloned: the home it carries is that of another database."""
    queue.conn.execute("update menzil.home set database_oid = 1, database_name = 'shop'")
    yield queue
    queue.call("adopt")


def refused(queue: Queue, function: str, *arguments: object) -> psycopg.errors.Diagnostic:
    with pytest.raises(psycopg.Error) as caught:
        queue.call(function, *arguments)
    assert caught.value.sqlstate == "MZ003"
    return caught.value.diag


def test_a_copy_gives_out_no_message_however_often_it_is_asked(copy: Queue) -> None:
    copy.send_batch("work", 5)
    for _ in range(3):
        said = refused(copy, "message_dequeue", 60_000, 10)
        assert said.message_primary
        assert "is a copy of database shop" in said.message_primary
        assert "menzil adopt" in (said.message_hint or "")
        refused(copy, "message_dequeue", 60_000, 10, ["work"])
        refused(copy, "message_next", [], [], 60_000, 10)
    assert copy.one("select count(*) from menzil.lease") == 0


def test_a_copy_gives_nothing_to_a_worker_that_delivers_to_endpoints(copy: Queue) -> None:
    copy.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    copy.call("send", "hook", {})
    with pytest.raises(psycopg.Error, match="is a copy"):
        copy.rows("message_dequeue", 60_000, 10, p_endpoints=True)


def test_a_copy_fires_no_schedule(copy: Queue) -> None:
    copy.call("schedule_create", "tick", "* * * * *", "UTC", "work", {})
    copy.conn.execute("update menzil.schedule set next_at = now() - interval '1 s'")
    refused(copy, "schedule_fire_due")
    copy.call("maintain")  # keeps house, and leaves schedules out
    copy.call("job_run", "schedules")
    assert "is a copy" in copy.one("select last_error from menzil.job where name = 'schedules'")
    assert copy.one("select count(*) from menzil.message") == 0
    assert copy.call("adopt") is True
    assert copy.call("schedule_fire_due") == 1


def test_an_adopted_copy_gives_out_what_waited(copy: Queue) -> None:
    sent = copy.send_batch("work", 5)
    copy.call("worker_hello", "of the original", "host", 1, "0")
    refused(copy, "message_dequeue", 60_000, 10)
    assert copy.call("adopt") is True
    assert copy.rows("get_worker_status") == [], "workers of the original are not missed"
    assert copy.call("copy_notice") is None
    assert sorted(message.id for message in copy.dequeue(10)) == sorted(sent)
    assert copy.call("adopt") is False, "it is live already"
    event = copy.one(
        "select event_type, old_value ->> 'database_name' as name from menzil.event order by id desc limit 1"
    )
    assert event == ("database.adopted", "shop")


def test_a_copy_can_be_read_and_sent_to(copy: Queue) -> None:
    message = copy.send()
    assert copy.status(message).status == "pending"
    assert copy.rows("message_peek", "work", 10)
    assert copy.rows("metrics")
    assert copy.one("select count(*) from menzil.queue") == 1
    assert copy.one("select status from menzil.health_check() where check_name = 'copy'") == "warning"
    copy.call("message_cancel", message)


def test_a_bulk_send_into_a_copy_is_accepted(copy: Queue) -> None:
    assert bulk(copy, row(), row(), row()) == (3, 3)
    assert copy.one("select count(*) from menzil.queue") == 3


def test_a_disowned_database_stands_still_until_it_is_adopted(queue: Queue) -> None:
    queue.send()
    assert queue.call("disown") is True
    try:
        assert "was disowned" in queue.call("copy_notice")
        refused(queue, "message_dequeue", 60_000, 10)
        assert queue.call("disown") is False
    finally:
        assert queue.call("adopt") is True
    assert queue.lease()


@pytest.mark.parametrize("function", ["adopt", "rebuild"])
def test_a_copy_whose_sequences_stayed_behind_gives_no_id_twice(copy: Queue, function: str) -> None:
    """Logical replication carries rows, and no values of sequences."""
    old = copy.send_batch("work", 4)
    copy.call("message_cancel", old[3])
    copy.call("create_event_type", "of the original")
    copy.call("subscribe", "of the original", "work")
    rows = {table: copy.one(f"select max(id) from menzil.{table}") for table in ("channel", "event", "subscription")}
    for (sequence,) in copy.conn.execute("select oid::regclass::text from pg_class where relkind = 'S'").fetchall():
        if sequence.startswith("menzil."):
            copy.conn.execute(f"alter sequence {sequence} restart")
    copy.call(function)
    copy.call("adopt")
    new = copy.send_batch("work", 3)
    assert min(new) > max(old)
    copy.call("channel_set", "new")
    assert copy.call("subscribe", "of the original", "new") > rows["subscription"]
    assert copy.one("select id from menzil.channel where name = 'new'") > rows["channel"]
    assert copy.one("select max(id) from menzil.event") > rows["event"]
    assert sorted(message.id for message in copy.dequeue(10)) == sorted([*old[:3], *new])


def test_a_database_without_a_home_stands_still(queue: Queue) -> None:
    queue.conn.execute("delete from menzil.home")
    try:
        assert "does not know where it was installed" in queue.call("copy_notice")
        refused(queue, "message_dequeue", 60_000, 10)
    finally:
        queue.call("adopt")


def test_a_home_that_is_adopted_inside_a_savepoint_is_one(queue: Queue, connect) -> None:
    user = Queue(connect(autocommit=False))
    user.conn.execute("update menzil.home set database_oid = 1")
    with user.conn.transaction():
        user.call("adopt")
    user.conn.commit()
    assert queue.one("select xmin = writer from menzil.home") is True


@pytest.mark.parametrize(
    ("change", "is_copy"),
    [
        ("database_name = 'renamed'", False),
        ("writer = '3'", False),  # the table was rewritten: pg_restore --clean into the same database
        ("system_identifier = 1", True),  # pg_createsubscriber, or a dump in a cluster that gave out the same oid
        ("system_identifier = 1, server_major = 14, writer = '3'", True),  # a dump restored into a newer release
        ("system_identifier = null", False),  # the owner could not read it
        ("system_identifier = null, writer = '3'", True),  # and the row was loaded by a restore
    ],
)
def test_what_is_a_copy(queue: Queue, change: str, is_copy: bool) -> None:
    if "writer" not in change:
        change += ", writer = pg_current_xact_id()::xid"
    queue.conn.execute(f"update menzil.home set {change}")
    try:
        assert (queue.call("copy_notice") is not None) is is_copy
    finally:
        queue.conn.execute("update menzil.home set database_oid = 1")
        queue.call("adopt")


def test_after_pg_upgrade_the_new_cluster_is_written_down(queue: Queue) -> None:
    # What pg_upgrade leaves: another cluster of a newer release, and the row as it was.
    queue.conn.execute(
        "update menzil.home set system_identifier = 1, server_major = 14, writer = pg_current_xact_id()::xid"
    )
    assert queue.call("copy_notice") is None
    queue.send()
    assert queue.lease()
    assert queue.call("job_run", "cluster") == 1
    known = "select system_identifier = (select c.system_identifier from pg_control_system() c) from menzil.home"
    assert queue.one(known) is True
    assert queue.call("copy_notice") is None
    assert queue.call("job_run", "cluster") == 0


def test_an_owner_who_may_not_read_the_control_file_has_a_queue_all_the_same(queue: Queue) -> None:
    queue.conn.execute("create role plain_owner")
    queue.conn.execute("revoke execute on function pg_control_system() from public")
    try:
        for name in ("_is_copy", "_system_identifier"):
            queue.conn.execute(f"grant execute on function menzil.{name}() to plain_owner")
        queue.conn.execute("grant usage on schema menzil to plain_owner; grant select on menzil.home to plain_owner")
        queue.conn.execute("set role plain_owner")
        assert queue.one("select menzil._system_identifier()") is None
        assert queue.one("select menzil._is_copy()") is False
    finally:
        queue.conn.execute("reset role")
        queue.conn.execute("grant execute on function pg_control_system() to public")
        queue.conn.execute("drop owned by plain_owner; drop role plain_owner")
