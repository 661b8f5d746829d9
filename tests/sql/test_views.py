"""What readers may select from: the documented columns, in any state of the queue."""

from __future__ import annotations

import pytest

from tests.sql.clock import pass_time
from tests.sql.queue import Queue

VIEWS = {
    "queue": """id status channel endpoint_id endpoint payload content payload_hash priority ordering_key
        idempotency_key correlation_id headers metadata scheduled_at next_retry_at expires_at created_at
        processing_started_at unlock_at num_attempts retry_count last_error state worker redrive_of replay_of""",
    "dlq": """id original_message_id endpoint_id endpoint_name protocol status failed_at redriven_at redriven_id payload
        content payload_hash priority ordering_key idempotency_key correlation_id headers metadata scheduled_at
        expires_at created_at num_attempts retry_count last_error state redrive_of replay_of blocks_key attempts
        cause cause_hash""",
    "archive": """id status channel endpoint_id priority num_attempts retry_count created_at scheduled_at expires_at
        first_leased_at leased_at ended_at ended_xid worker payload content payload_hash ordering_key idempotency_key
        correlation_id headers metadata last_error state redrive_of replay_of response""",
    "endpoints": """id name protocol config retry_policy enabled paused created_at updated_at circuit_state
        circuit_failure_count next_probe_at""",
    "channels": """id name is_endpoint enabled paused released max_concurrency max_size release_interval_ms
        release_count on_dead in_flight created_at updated_at""",
    "event_log": "id event_type entity_type entity_id old_value new_value metadata created_at xid actor via",
    "attempts": """message_id attempt channel outcome leased_at ended_at worker error response status_code
        duration_ms""",
    "settings": "name value default_value minimum maximum unit description",
    "schedules": """id name cron time_zone endpoint_name payload priority ordering_key expires_after headers
        metadata paused next_at last_slot_at last_message_id last_error created_at""",
    "event_types": "name description schema created_at",
    "subscriptions": "id event_type endpoint_name filter created_at",
    "bulk_sends": "send_id state what opened_at touched_at committed_at row_count created_count first_id last_id",
    "consumers": "name feed xid row_id started_at advanced_at behind_since",
    "jobs": "name call every next_at last_run_at last_worker last_count last_error",
    "pulse": """at channel waiting in_flight oldest_s sent completed failed_tries dead deferred expired cancelled
        ended_ms try_ms step""",
    "pipeline_runs": "id kind lake started_at ended_at rows files verdict error",
    "bridges": (
        "id name protocol config channel event_type paused created_at updated_at taken refused lost moved_at processes "
        "heartbeat_at lag growing_since last_error"
    ),
    "bridge_positions": "name partition position taken refused lost moved_at lag",
    "plans": (
        "id kind filter rate note status actor via counted counted_exactly done skipped taken_back created_at "
        "started_at ended_at last_due_at last_error"
    ),
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_its_documented_columns(queue: Queue, view: str) -> None:
    cursor = queue.conn.execute(f"select * from menzil.{view}")
    assert {column.name for column in cursor.description} == set(VIEWS[view].split())


def test_every_view_is_documented(queue: Queue) -> None:
    found = queue.all("select viewname from pg_views where schemaname = 'menzil'")
    assert {row[0] for row in found if not row[0].startswith("_")} == VIEWS.keys()


def test_no_view_calls_a_function_of_ours(queue: Queue) -> None:
    # An upgrade replaces functions; a view that depended on one would stand in its way.
    rows = queue.all(
        """select d.refobjid::regproc from pg_depend d join pg_rewrite r on r.oid = d.objid
             join pg_proc p on p.oid = d.refobjid and d.refclassid = 'pg_proc'::regclass
            where d.classid = 'pg_rewrite'::regclass and p.pronamespace = 'menzil'::regnamespace"""
    )
    assert rows == []


def test_the_queue_holds_live_messages_only(queue: Queue) -> None:
    states = {
        "pending": queue.send(),
        "scheduled": queue.send(scheduled_at="2099-01-01"),
        "head": queue.send(ordering_key="k"),
        "behind": queue.send(ordering_key="k"),
        "processing": queue.send(priority=10),
        "completed": queue.send(priority=9),
        "retried": queue.send(priority=8),
        "dead": queue.send(priority=7),
    }
    taken = {message.id: message for message in queue.dequeue(4)}
    queue.complete(taken[states["completed"]])
    queue.fail(taken[states["retried"]])
    queue.fail(taken[states["dead"]], "[PERMANENT]")
    rows = dict(queue.all("select id, status from menzil.queue"))
    processing = states.pop("processing")
    assert rows.pop(processing) == "processing"
    live = ("pending", "scheduled", "head", "behind", "retried")
    assert rows == {states[name]: "pending" for name in live}


def test_plain_channels_have_no_endpoint_in_the_queue(queue: Queue) -> None:
    queue.send()
    assert queue.one("select endpoint, endpoint_id from menzil.queue") == (None, None)


def test_the_dead_letters_of_an_endpoint_name_it(queue: Queue) -> None:
    made = queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    queue.send("hook")
    queue.fail(queue.lease(), "[PERMANENT] [DISABLE] 410")
    row = queue.one("select endpoint_id, endpoint_name, protocol, status from menzil.dlq")
    assert row == (made, "hook", "http", "failed")


def test_views_keep_the_history_of_a_channel_that_is_gone(queue: Queue) -> None:
    sent = queue.send()
    queue.fail(queue.lease(), retry_after="0")
    queue.fail(queue.lease(), "[PERMANENT]")
    queue.call("channel_release", "work")
    assert queue.one("select channel from menzil.archive") == "work"
    assert queue.one("select endpoint_name from menzil.dlq") == "work"
    assert queue.all("select channel, outcome from menzil.attempts where message_id = %s order by attempt", sent) == [
        ("work", "failed"),
        ("work", "failed"),
    ]


def test_what_operators_do_is_in_the_event_log(queue: Queue) -> None:
    queue.call("channel_set", "work", 5)
    queue.call("channel_pause", "work")
    queue.call("channel_resume", "work")
    queue.send()
    queue.call("channel_purge", "work")
    queue.call("channel_release", "work")
    rows = queue.all("select * from menzil.event_log order by id")
    assert [row.event_type for row in rows] == [
        "channel.created",
        "channel.changed",
        "channel.paused",
        "channel.resumed",
        "channel.purged",
        "channel.released",
        "channel.dropped",
    ]
    assert {(row.entity_type, row.entity_id) for row in rows} == {("channel", "work")}
    assert rows[1].old_value["max_concurrency"] is None
    assert rows[1].new_value["max_concurrency"] == 5


def test_a_rolled_back_change_leaves_no_event(queue: Queue) -> None:
    with queue.conn.transaction(force_rollback=True):
        queue.call("channel_pause", "work")
    assert queue.all("select event_type from menzil.event_log") == [("channel.created",)]


def test_the_first_schedule_and_the_next_try_are_two_times(queue: Queue) -> None:
    sent = queue.send(scheduled_at=queue.one("select now() + interval '30 seconds'"))
    pass_time(queue.conn, 31)
    queue.fail(queue.lease())
    row = queue.one("select scheduled_at, next_retry_at from menzil.queue where id = %s", sent)
    assert row.scheduled_at < queue.now() < row.next_retry_at


def test_a_reader_of_the_feed_is_behind_until_it_has_had_the_last_end(queue: Queue) -> None:
    queue.send_batch("work", 4)
    taken = queue.dequeue(4)
    queue.complete(*taken[:3])
    rows = queue.all("select id, ended_xid, ended_at from menzil.archive order by id")
    behind = "select behind_since from menzil.consumers"
    for had, since in ((0, rows[0].ended_at), (1, rows[0].ended_at), (3, None)):
        queue.conn.execute("delete from menzil.feed_consumer")
        queue.conn.execute(
            """insert into menzil.feed_consumer (name, feed, xid, row_id, started_at, advanced_at)
               values ('lake', 'archive', %s, %s, now(), now())""",
            [rows[0].ended_xid, rows[had - 1].id if had else 0],
        )
        assert queue.one(behind) == since
    queue.complete(taken[3])
    assert queue.one(behind) == queue.archived(taken[3].id).ended_at


def test_the_attempts_of_one_message_are_found_by_its_id(queue: Queue) -> None:
    sent = queue.send()
    queue.fail(queue.lease(), retry_after="0")
    queue.complete(queue.lease())
    look = "select outcome from menzil.attempts where message_id = %s order by attempt"
    assert [row.outcome for row in queue.all(look, sent)] == ["failed", "completed"]
    queue.conn.execute("set enable_seqscan = off")
    plan = "\n".join(row[0] for row in queue.all("explain " + look, sent))
    assert "Seq Scan" not in plan.replace("Seq Scan on channel", "")
