"""Calls lock the table of bodies before its months, as ALTER TABLE, TRUNCATE and LOCK TABLE do it: no deadlock."""

from __future__ import annotations

from typing import Any

import pytest

from tests.races.actor import LEASE, Actor
from tests.races.stage import Stage, poll

#: Calls that pass the month of today. Each finds six messages of the channel a: one completed, two in flight.
CALLS = {
    "send": "select menzil.send('a', '{}')",
    "send with options": "select menzil.send_with_options('a', '{}', p_priority => 3)",
    "a binary message": "select menzil.message_create('a', 'x')",
    "a batch": "select menzil.send_batch('a', array['1', '2']::jsonb[])",
    "bulk": "select * from menzil.bulk_commit('s', '{t}', '{1}')",
    "publish": "select menzil.publish('shop.opened', '{}')",
    "dequeue of one": f"select count(*) from menzil.message_dequeue({LEASE}, 1)",
    "dequeue of some": f"select count(*) from menzil.message_dequeue({LEASE}, 2)",
    "dequeue of more than there are": f"select count(*) from menzil.message_dequeue({LEASE}, 90)",
    "dequeue of one channel": f"select count(*) from menzil.message_dequeue({LEASE}, 2, '{{a}}')",
    "dequeue of single leases": f"select count(*) from menzil.message_dequeue({LEASE}, 2, p_apart => true)",
    "next of one": f"select count(*) from menzil.message_next('{{}}', '{{}}', {LEASE}, 1)",
    "next of some": f"select count(*) from menzil.message_next('{{}}', '{{}}', {LEASE}, 2)",
    "next after a batch": f"select count(*) from menzil.message_next(%(ids)s, %(attempts)s, {LEASE}, 2, '{{a}}')",
    "complete": "select menzil.message_complete(%(ids)s::bigint[], %(attempts)s::bigint[])",
    "fail": "select menzil.message_fail(%(id)s::bigint, 1, '[PERMANENT] no')",
    "defer": "select menzil.message_defer(%(id)s::bigint, 1)",
    "cancel": "select menzil.message_cancel(%(last)s::bigint)",
    "status": "select * from menzil.message_status(%(id)s::bigint)",
    "peek": "select count(*) from menzil.message_peek('a', 10)",
    "feed": "select count(*) from menzil.feed_between('0', (select xid::text from menzil.feed_position('archive')))",
    "archive": "select count(*) from menzil.archive_between('2020-01-01', '2030-01-01')",
    "span of the archive": "select * from menzil.archive_span('2020-01-01', '2030-01-01')",
    "months of the archive": "select count(*) from menzil.archive_months()",
    "pulse": "select menzil._pulse(1000)",
}
LOCKS = """select
  coalesce(bool_or(l.relation = 'menzil.message'::regclass and l.granted), false),
  coalesce(bool_or(l.relation = 'menzil.message'::regclass and not l.granted), false),
  coalesce(bool_or(i.inhrelid is not null), false)
  from pg_locks l left join pg_inherits i on i.inhrelid = l.relation and i.inhparent = 'menzil.message'::regclass
  where l.pid = %s and l.database = (select oid from pg_database where datname = current_database())"""
#: A dequeue that folds lines, or visits runs, holds the table of runs.
FOLDS = "select exists (select from pg_locks l where l.pid = %s and l.relation = 'menzil.run'::regclass)"


@pytest.fixture(params=["new connection", "used connection"])
def caller(stage: Stage, request: pytest.FixtureRequest) -> tuple[Actor, dict[str, Any]]:
    """A caller, and what its calls may name. On a connection that was used every plan is cached."""
    watcher = stage.watcher
    watcher.run("select menzil.create_event_type('shop.opened')")
    watcher.run("""select menzil.create_endpoint('hook', 'http', '{"url": "https://example.com/"}')""")
    watcher.run("select menzil.subscribe('shop.opened', 'hook')")
    staging = watcher.one("select staging from menzil.bulk_open('s')")
    watcher.run(f"insert into menzil.{staging} (token, n, endpoint, payload) values ('t', 0, 'a', '{{}}')")
    sent = watcher.one("select menzil.send_batch('a', array['1', '2', '3', '4', '5', '6']::jsonb[])")
    watcher.run("select menzil.message_complete(%s::bigint, 1)", watcher.take(1, "a")[0].id)
    flying = [lease.id for lease in watcher.take(2)]
    named = {"ids": flying, "attempts": [1, 1], "id": flying[0], "last": sent[-1]}
    actor = stage.hire(patient=True, new=True)
    if request.param == "used connection":
        for text in CALLS.values():
            for _ in range(3):
                actor.begin()
                actor.conn.execute(text, named, prepare=True)
                actor.rollback()
    return actor, named


def test_a_call_that_locks_a_month_has_locked_the_table_of_bodies(stage: Stage, caller: tuple[Actor, dict[str, Any]]):
    actor, named = caller
    alone = set()
    for call, text in CALLS.items():
        actor.begin()
        actor.conn.execute(text, named)
        ((parent, _, month),) = stage.watcher.run(LOCKS, actor.pid)
        actor.rollback()
        alone |= {call} if month and not parent else set()
    assert alone == set()


def test_a_call_that_waits_for_the_table_of_bodies_holds_none_of_its_months(
    stage: Stage, caller: tuple[Actor, dict[str, Any]]
):
    actor, named = caller
    stranger = stage.hire()
    waited, held = set(), set()
    for call, text in CALLS.items():
        stranger.begin()
        stranger.run("lock table only menzil.message in access exclusive mode")
        actor.begin()
        called = stage.start(actor.conn.execute, text, named)
        poll(lambda it=called: it.done() or stage.watcher.run(LOCKS, actor.pid)[0][1], "the call waits, or it ends")  # type: ignore[misc]
        ((_, waits, month),) = stage.watcher.run(LOCKS, actor.pid)
        stranger.rollback()
        called.result()
        actor.rollback()
        waited |= {call} if waits else set()
        held |= {call} if waits and month else set()
    assert held == set()
    assert {"send", "send with options", "cancel"} <= waited


def test_a_dequeue_of_what_was_just_sent_locks_the_table_of_bodies_before_its_month(stage: Stage):
    """The first call on the connection plans its statement, the later ones have a plan: both lock in this order."""
    watcher, stranger, actor = stage.watcher, stage.hire(), stage.hire(patient=True, new=True)
    watcher.send("b")
    watcher.complete(watcher.take(1, "b"))
    months: list[bool] = []

    def dequeue() -> bool:
        watcher.send("b")
        watcher.run("select setval('menzil.swept_at', menzil._microseconds(clock_timestamp()))")  # no full look is due
        stranger.begin()
        stranger.run("lock table only menzil.message in access exclusive mode")
        called = stage.start(actor.dequeue, 5, "b")
        poll(lambda: called.done() or watcher.run(LOCKS, actor.pid)[0][1], "the call waits, or it ends")
        ((_, waits, month),) = watcher.run(LOCKS, actor.pid)
        folds = watcher.one(FOLDS, actor.pid)
        stranger.rollback()
        actor.complete(called.result())
        if waits and not folds:
            months.append(month)
        return len(months) == 3

    poll(dequeue, "three dequeues lease from the log and fold nothing")
    assert months == [False] * 3
