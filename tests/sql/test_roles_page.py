"""What docs/explanation/roles.md says that a role can do to others, tried as that role."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from tests.sql.queue import Queue

URL = "https://example.com/hook?token=hunter2"
REDIS = {"host": "cache.example.com", "stream": "s", "start": "earliest", "auth": {"password": "hunter2"}}


@pytest.fixture
def acting(connect: Callable[..., psycopg.Connection]) -> Callable[[str], Queue]:
    def act(role: str) -> Queue:
        conn = connect()
        conn.execute(f"set role {role}")
        return Queue(conn)

    return act


def refused(queue: Queue, query: str) -> bool:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        queue.all(query)
    return True


def test_an_application_sees_the_last_error_of_any_message_and_cancels_it(queue: Queue, acting) -> None:
    sent = queue.send()
    queue.fail(queue.lease(), "the words of a receiver")
    application = acting("menzil_application")
    assert application.status(sent).last_error == "the words of a receiver"
    assert application.call("message_cancel", sent) is True
    assert application.call("inbox_claim", "billing", "7") is True
    assert queue.call("inbox_claim", "billing", "7") is False
    for query in ("select * from menzil.queue", "select * from menzil.endpoints", "select menzil.metrics()"):
        assert refused(application, query)


def test_a_worker_settles_the_lease_of_another_and_reads_every_secret(queue: Queue, acting) -> None:
    queue.call("create_endpoint", "hook", "http", {"url": URL, "auth": {"type": "bearer", "token": "hunter2"}})
    sent = queue.send()
    queue.dequeue(worker="another")
    worker = acting("menzil_worker")
    assert worker.call("message_complete", sent, 1) is not None
    assert queue.status(sent).status == "completed"
    held = queue.send()
    assert [one.id for one in worker.dequeue(lock_ms=7 * 86_400_000)] == [held]
    (config,) = worker.all("select config from menzil.delivery_configs(array['hook'])")
    assert (config[0]["url"], config[0]["auth"]["token"]) == (URL, "hunter2")
    queue.call("worker_hello", "another", "host", 1, "0.2.0")
    worker.call("worker_stop", "another")
    assert queue.rows("get_worker_status")[0].status == "stopped"
    assert worker.call("cleanup_old_archive_partitions", 1) == 0
    assert worker.call("reap_bulk_sends", "0") == 0
    for query in ("select menzil.send('work', '1')", "select * from menzil.queue", "select menzil.channel_set('x')"):
        assert refused(worker, query)


def test_a_worker_reads_the_secrets_of_a_bridge_and_takes_in_its_name(queue: Queue, acting) -> None:
    queue.call("bridge_create", "b", "redis", REDIS, "work")
    worker = acting("menzil_worker")
    assert worker.one("select config from menzil.bridge_open('b', 'i', 'h', 1, '0')") == REDIS
    worker.call("bridge_begin", "b", "s", "0-0")
    worker.rows("bridge_take", "b", "s", "0-0", "9-0", ["1"])
    assert queue.one("select payload from menzil.queue") == 1
    assert queue.one("select position from menzil.bridge_positions") == "9-0"
    for call in ("pause('b')", "seek('b', 's', '1-0')", "drop('b')", "alter('b', null, 'work')"):
        assert refused(worker, f"select menzil.bridge_{call}")


@pytest.mark.parametrize("role", ["menzil_monitor", "menzil_pipeline"])
def test_who_only_looks_sees_bridges_without_secrets(queue: Queue, acting, role: str) -> None:
    queue.call("bridge_create", "b", "redis", REDIS, "work")
    one = acting(role)
    assert one.one("select config ->> 'host' from menzil.bridges") == "cache.example.com"
    assert "hunter2" not in str(one.all("select * from menzil.bridges"))
    for query in ("select * from menzil.bridge_open('b', 'i', 'h', 1, '0')", "select * from menzil.bridge_secret"):
        assert refused(one, query)


def test_a_monitor_sees_configs_without_secrets_and_changes_nothing(queue: Queue, acting) -> None:
    queue.call("create_endpoint", "hook", "http", {"url": URL, "auth": {"type": "bearer", "token": "hunter2"}})
    monitor = acting("menzil_monitor")
    seen = str(monitor.all("select * from menzil.endpoints")) + str(monitor.all("select * from menzil.event_log"))
    assert "token=***" in seen
    assert "hunter2" not in seen
    for query in ("select payload from menzil.queue", "select menzil.message_cancel(1)", "select menzil.maintain()"):
        assert refused(monitor, query)


def test_a_pipeline_reads_payloads_and_moves_the_position_of_another_reader(queue: Queue, acting) -> None:
    queue.send(payload={"card": 4000})
    pipeline = acting("menzil_pipeline")
    assert pipeline.one("select payload from menzil.queue") == {"card": 4000}
    position = queue.rows("feed_position", "archive")[0].xid
    queue.call("feed_advance", "lake", "archive", position, 0)
    pipeline.call("feed_advance", "lake", "archive", position, 5)
    assert queue.one("select row_id from menzil.consumers") == 5
    queue.rows("bulk_open", "nightly")
    assert pipeline.call("bulk_abort", "nightly") is True
    for query in ("select * from menzil.message_dequeue(1000)", "select menzil.message_cancel(1)"):
        assert refused(pipeline, query)


def test_an_admin_sees_a_mark_in_place_of_a_secret(queue: Queue, acting) -> None:
    queue.call("create_endpoint", "hook", "http", {"url": URL, "auth": {"type": "bearer", "token": "hunter2"}})
    admin = acting("menzil_admin")
    assert "hunter2" not in str(admin.all("select * from menzil.endpoints"))
    assert refused(admin, "select * from menzil.endpoint_secret")
    # It may call what a worker calls, and the page says so.
    assert "hunter2" in str(admin.all("select config from menzil.delivery_configs(array['hook'])"))


def test_a_role_without_rights_can_notify_and_nothing_else(queue: Queue, acting) -> None:
    queue.conn.execute("create role stranger")
    try:
        stranger = acting("stranger")
        stranger.conn.execute("notify menzil_wake")
        for query in ("select menzil.schema_version()", "select * from menzil.settings"):
            assert refused(stranger, query)
    finally:
        queue.conn.execute("drop role stranger")
