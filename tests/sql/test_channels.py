"""Channels: made, changed while they run, paused, purged, and released when they have drained."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.sql.clock import pass_time, until
from tests.sql.queue import Queue, ids


def channel(queue: Queue, name: str = "work") -> Any:
    (row,) = queue.all("select * from menzil.channels where name = %s", name)
    return row


def events(queue: Queue) -> list[str]:
    return [row[0] for row in queue.all("select event_type from menzil.event_log order by id")]


def refusal(queue: Queue, query: str) -> str:
    with pytest.raises(psycopg.Error) as refused:
        queue.one(query)
    return refused.value.sqlstate


def test_a_new_channel_has_no_limits(queue: Queue) -> None:
    row = channel(queue)
    assert (row.is_endpoint, row.enabled, row.paused, row.released, row.on_dead) == (
        False,
        True,
        False,
        False,
        "continue",
    )
    assert (row.max_concurrency, row.max_size, row.release_interval_ms, row.release_count) == (None, None, 0, 1)


def test_a_channel_is_changed_while_it_runs(queue: Queue) -> None:
    queue.call("channel_set", "work", 5, 100, 1000, 10, "block")
    row = channel(queue)
    assert (row.max_concurrency, row.max_size, row.release_interval_ms, row.release_count) == (5, 100, 1000, 10)
    assert row.on_dead == "block"
    queue.call("channel_set", "work")
    assert channel(queue).max_concurrency is None
    assert events(queue) == ["channel.created", "channel.changed", "channel.changed"]


def test_setting_a_channel_keeps_its_messages_and_its_id(queue: Queue) -> None:
    sent, before = queue.send(), channel(queue).id
    queue.call("channel_set", "work", p_max_concurrency=3)
    assert channel(queue).id == before
    assert queue.lease().id == sent


def test_an_endpoint_has_the_limits_of_a_channel(queue: Queue) -> None:
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    queue.call("channel_set", "hook", p_max_concurrency=1)
    queue.send_batch("hook", 2)
    assert len(queue.dequeue(5)) == 1
    assert queue.one("select is_endpoint from menzil.channels where name = 'hook'") is True
    queue.call("channel_pause", "hook")
    assert queue.call("purge_endpoint", "hook") == 1


def test_names_of_any_letters_are_channels(queue: Queue) -> None:
    for name in ("Name", "name", "sipariş.günlük", "a b", "x'; drop schema menzil cascade; --", '"', "日" * 200):
        queue.call("channel_set", name)
        queue.send(name)
        assert queue.lease([name]).channel == name


def test_names_that_an_older_version_took_can_still_be_changed(queue: Queue) -> None:
    changes = (
        ("channel", "select menzil.channel_set(%s, 5)"),
        ("event_type", "select menzil.create_event_type(%s, 'told')"),
        ("feed_consumer", "select menzil.feed_advance(%s, 'archive', '700', 0)"),
    )
    for table, change in changes:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="may not begin or end with a space"):
            queue.conn.execute(change, ["old "])
        queue.conn.execute(change, ["old"])
        queue.conn.execute(f"update menzil.{table} set name = 'old ' where name = 'old'")
        queue.conn.execute(change.replace("5", "6").replace("told", "again"), ["old "])
    assert queue.one("select max_concurrency from menzil.channels where name = 'old '") == 6


def test_a_paused_channel_accepts_and_holds(queue: Queue) -> None:
    queue.call("channel_set", "other")
    held = queue.send_batch("work", 2)
    queue.call("channel_pause", "work")
    held += [queue.send(), queue.send(priority=10), queue.send(ordering_key="k")]
    free = queue.send("other")
    assert ids(queue.dequeue(10)) == [free]
    assert channel(queue).paused is True
    queue.call("channel_resume", "work")
    assert sorted(ids(queue.dequeue(10))) == held


def test_what_is_in_flight_may_finish_while_its_channel_is_paused(queue: Queue) -> None:
    sent = queue.send_batch("work", 2)
    message = queue.lease()
    queue.call("channel_pause", "work")
    queue.heartbeat(message)
    assert queue.complete(message) == {sent[0]: "settled"}
    assert queue.dequeue() == []


def test_a_retry_in_a_paused_channel_waits_for_the_resume(queue: Queue) -> None:
    sent = queue.send()
    queue.fail(queue.lease())
    queue.call("channel_pause", "work")
    pass_time(queue.conn, 30)
    assert queue.dequeue() == []
    queue.call("channel_resume", "work")
    assert queue.lease().id == sent


def test_pausing_twice_is_one_pause(queue: Queue) -> None:
    for name in ("channel_pause", "channel_pause", "channel_resume", "channel_resume"):
        queue.call(name, "work")
    assert events(queue) == ["channel.created", "channel.paused", "channel.resumed"]


def test_an_empty_channel_can_be_paused_before_its_first_message(queue: Queue) -> None:
    queue.call("channel_pause", "work")
    sent = queue.send(priority=4)
    assert queue.dequeue() == []
    queue.call("channel_resume", "work")
    assert queue.lease().id == sent


def test_purging_cancels_everything_that_waits(queue: Queue) -> None:
    queue.call("channel_set", "other")
    running = queue.send()
    message = queue.lease()
    waiting = [
        queue.send(),
        queue.send(priority=7),
        queue.send(scheduled_at=queue.one("select now() + interval '1 hour'")),
        queue.send(ordering_key="k"),
        queue.send(ordering_key="k"),
    ]
    elsewhere = queue.send("other")
    assert queue.call("channel_purge", "work") == 5
    assert {queue.status(sent).status for sent in waiting} == {"cancelled"}
    assert queue.complete(message) == {running: "settled"}
    assert ids(until(lambda: queue.dequeue(10))) == [elsewhere]
    assert queue.call("channel_purge", "work") == 0
    assert queue.one("select metadata from menzil.event_log where event_type = 'channel.purged'") == {"messages": 5}


def test_a_purged_channel_goes_on(queue: Queue) -> None:
    queue.send_batch("work", 300)
    queue.send(ordering_key="k")
    queue.dequeue(10)
    assert queue.call("channel_purge", "work") == 291
    sent = [queue.send(), queue.send(ordering_key="k")]
    taken: list[int] = []
    until(lambda: taken.extend(ids(queue.dequeue(10))) or len(taken) == 2)
    assert sorted(taken) == sent


def test_a_large_channel_is_purged_whole(queue: Queue) -> None:
    queue.one("select menzil.send_batch('work', array_fill('1'::jsonb, array[10050]))")
    assert queue.call("channel_purge", "work") == 10_050
    assert queue.one("select count(*) from menzil.queue") == 0


def test_a_purge_makes_room(queue: Queue) -> None:
    queue.call("channel_set", "work", p_max_size=5)
    queue.send_batch("work", 5)
    assert queue.call("channel_purge", "work") == 5
    assert len(queue.send_batch("work", 5)) == 5


def test_an_empty_channel_is_gone_once_released(queue: Queue) -> None:
    queue.call("channel_release", "work")
    assert queue.all("select * from menzil.channels") == []
    assert refusal(queue, "select menzil.send('work', '{}')") == "42704"
    assert events(queue)[1:] == ["channel.released", "channel.dropped"]


def test_a_released_channel_drains_and_then_disappears(queue: Queue) -> None:
    sent = queue.send_batch("work", 2)
    message = queue.lease()
    queue.call("channel_release", "work")
    for call in ("send('work', '{}')", "send_batch('work', array['{}'::jsonb])", "channel_set('work')"):
        assert refusal(queue, f"select menzil.{call}") == "55000"
    assert refusal(queue, """select menzil.send_many('[{"channel": "work", "payload": 1}]')""") == "55000"
    assert channel(queue).released is True
    queue.fail(message, retry_after="0")
    for expected in sent:
        message = queue.lease()
        assert message.id == expected
        queue.complete(message)
    queue.call("maintain")
    assert queue.all("select * from menzil.channels") == []
    assert queue.archived(sent[0]).channel == "work"


def test_the_name_of_a_released_channel_can_be_used_again(queue: Queue) -> None:
    old = channel(queue).id
    queue.call("channel_release", "work")
    queue.call("channel_set", "work")
    assert channel(queue).id != old
    sent = queue.send()
    assert queue.lease(["work"]).id == sent


def test_a_message_of_a_transaction_that_commits_after_the_release_is_drained(queue: Queue, connect) -> None:
    slow = Queue(connect(autocommit=False))
    sent = slow.send()
    queue.call("channel_release", "work")
    slow.conn.commit()
    message = queue.lease()
    assert message.id == sent
    assert message.channel == "work"
    assert queue.complete(message) == {sent: "settled"}


def test_a_dead_letter_that_blocks_its_key_does_not_keep_a_channel_from_leaving(queue: Queue) -> None:
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    for name in ("work", "hook"):
        queue.call("channel_set", name, p_on_dead="block")
        queue.send(name, ordering_key="k")
        assert queue.fail(queue.lease(), "[PERMANENT]") == "dead"
    queue.call("channel_release", "work")
    queue.call("drop_endpoint", "hook")
    assert queue.all("select name from menzil.channels") == []


def test_releasing_twice_is_one_release(queue: Queue) -> None:
    queue.send()
    queue.call("channel_release", "work")
    queue.call("channel_release", "work")
    assert events(queue) == ["channel.created", "channel.released"]


@pytest.mark.parametrize(
    "call",
    [
        "channel_set('new')",
        "channel_set('work', p_max_concurrency => 1)",
        "channel_pause('work')",
        "channel_resume('work')",
        "channel_release('work')",
        "create_endpoint('new', 'http', '{\"url\": \"https://example.com/\"}')",
        "alter_endpoint('hook', '{\"url\": \"https://example.org/\"}')",
        "disable_endpoint('hook')",
        "enable_endpoint('hook')",
        "drop_endpoint('hook')",
        "set_retry_policy('work', '{\"max_retries\": -1}')",
    ],
)
def test_a_session_without_triggers_changes_no_channel(queue: Queue, call: str) -> None:
    """Nothing would keep the gate in step: a new channel gives out nothing, and a paused one goes on."""
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    before = queue.all("select * from menzil.channel order by id"), events(queue)
    queue.conn.execute("set session_replication_role = replica")
    try:
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="session_replication_role"):
            queue.one(f"select menzil.{call}")
        assert queue.send(), "who changes no channel is not concerned"
        assert queue.lease()
    finally:
        queue.conn.execute("reset session_replication_role")
    assert (queue.all("select * from menzil.channel order by id"), events(queue)) == before
