"""A database of 0.1.0, full of everything it can hold, becomes one of this release, and nothing of it is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from menzil.install import drift, migrate, script
from menzil.install.tree import PACKAGE_SQL
from tests.conftest import adopt
from tests.integration.install.copies import copied
from tests.integration.install.old_release import Filled, Hand, fill
from tests.sql import golden

VIEWS = {
    **{name: ["id"] for name in ("archive", "dlq", "queue", "schedules", "channels", "endpoints", "event_log")},
    "attempts": ["message_id", "attempt"],
    "settings": ["name"],
}
Rows = dict[Any, dict[str, Any]]


@dataclass
class Stage:
    """A filled database of 0.1.0 that tests copy, and what 0.1.0 says of it."""

    dsn: str
    filled: Filled
    views: dict[str, Rows]
    statuses: Rows
    prints: list[Any]
    given: dict[str, list[Any]]  # what 0.1.0 gives when its channels are emptied
    feed: list[Any]
    readers: list[Any]
    holders: dict[str, int]  # who holds an idempotency key


@pytest.fixture(scope="session")
def stage(databases: tuple[str, str], old_tree: Path) -> Iterator[Stage]:
    with copied(databases[0], "install_filled", "template1") as dsn:
        migrate(dsn, root=old_tree)
        with psycopg.connect(dsn, autocommit=True) as conn:
            hand, filled = Hand(conn), fill(conn)
            stage = Stage(
                dsn, filled, views(hand), statuses(hand), months(hand), {}, feed(hand), readers(hand), held_keys(hand)
            )
        with copied(dsn, "install_copy", "install_filled") as copy, psycopg.connect(copy, autocommit=True) as conn:
            stage.given = {channel: drained(Hand(conn), channel) for channel in filled.plain}
        yield stage


def test_migrations_of_a_release_never_change(old_tree):
    released = {path.name: path.read_text() for path in (old_tree / "migrations").glob("*.sql")}
    assert len(released) == 5
    assert {name: (PACKAGE_SQL / "migrations" / name).read_text() for name in released} == released


def by_migrate(dsn: str) -> None:
    migrate(dsn)


def by_script(dsn: str) -> None:
    """The script, and then the statements that its notice speaks of, one by one."""
    said: list[str] = []
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        conn.execute(script("upgrade"))
        todo = conn.execute("select statement from menzil._missing_indexes()").fetchall()
        assert any("indexes are left to build" in line for line in said) == bool(todo)
        while todo:
            conn.execute(todo[0][0])
            todo = conn.execute("select statement from menzil._missing_indexes()").fetchall()


@pytest.fixture(scope="session", params=[by_migrate, by_script], ids=["migrate", "script"])
def upgrade(request: pytest.FixtureRequest) -> Callable[[str], None]:
    return request.param


@pytest.fixture(scope="session")
def upgraded_once(stage: Stage, upgrade: Callable[[str], None]) -> Iterator[str]:
    """The filled database after its upgrade; an upgrade takes ten times as long as a copy of its result."""
    with copied(stage.dsn, "install_upgraded", "install_filled") as dsn:
        upgrade(dsn)
        yield dsn


@pytest.fixture
def upgraded(upgraded_once: str) -> Iterator[str]:
    """A copy of it that the test may change."""
    with copied(upgraded_once, "install_upgraded_copy", "install_upgraded") as dsn:
        adopt(dsn)
        yield dsn


@pytest.fixture
def hand(upgraded: str) -> Iterator[Hand]:
    with psycopg.connect(upgraded, autocommit=True) as conn:
        yield Hand(conn)


def views(hand: Hand) -> dict[str, Rows]:
    found = {}
    for view, key in VIEWS.items():
        rows = [row._asdict() for row in hand.all(f"select * from menzil.{view}")]
        found[view] = {tuple(row[column] for column in key): row for row in rows}
    return found


def statuses(hand: Hand) -> Rows:
    found: Rows = {}
    for message in range(1, hand.one("select last_value from menzil.message_id") + 1):
        try:
            (row,) = hand.all("select * from menzil.message_status(%s)", message)
        except psycopg.errors.UndefinedObject:
            continue
        found[message] = row._asdict()
    return found


def months(hand: Hand) -> list[Any]:
    """The fingerprints of all months that 0.1.0 had an archive of."""
    return hand.all(
        "select m.month, f.* from generate_series(now() - interval '700 days', now(), '1 day') g(at)"
        " cross join lateral (select date_trunc('month', g.at, 'UTC') as month) m"
        " cross join lateral (select f.* from menzil.archive_fingerprint(m.month) f where extract(day from g.at) = 2) f"
        " where f.row_count > 0 order by 1"
    )


def feed(hand: Hand) -> list[Any]:
    return hand.all(
        "select id, ended_xid::text as xid from menzil.archive where ended_xid > '0' order by ended_xid, id"
    )


def readers(hand: Hand) -> list[Any]:
    return hand.all("select name, feed, xid::text, row_id, behind_since from menzil.consumers")


def held_keys(hand: Hand) -> dict[str, int]:
    keys = ("completed", "live", "unarchived")
    return {key: hand.send("once", {"key": key}, idempotency_key=key) for key in keys}


def drained(hand: Hand, channel: str) -> list[Any]:
    """Lease and complete one by one what a channel gives."""
    given = []
    while leases := hand.lease(channel):
        given += leases
        assert hand.complete(*leases) == ["settled"]
    return given


def numbers(leases: list[Any]) -> list[int]:
    return [lease.payload["n"] for lease in leases]


def test_upgraded_database_has_the_schema_of_a_fresh_one(upgraded, empty):
    migrate(empty)
    with psycopg.connect(upgraded) as conn, psycopg.connect(empty) as fresh:
        assert golden.lines(conn) == golden.lines(fresh)
        assert drift(conn) == []
    assert not migrate(upgraded).changed
    assert migrate(upgraded, reapply=True).code_applied


def test_empty_database_of_the_old_release_becomes_a_fresh_one(empty, another, old_tree, upgrade):
    migrate(another)
    migrate(empty, root=old_tree)
    upgrade(empty)
    with psycopg.connect(empty) as conn, psycopg.connect(another) as fresh:
        assert golden.lines(conn) == golden.lines(fresh)
        # A table without dropped columns: the archive of an empty database is made anew.
        dropped = "select count(*) from pg_attribute where attrelid = 'menzil.message'::regclass and attisdropped"
        assert conn.execute(dropped).fetchone() == (0,)


def test_functions_of_the_old_release_are_gone(upgraded, empty):
    migrate(empty)
    query = "select oid::regprocedure::text from pg_proc where pronamespace = 'menzil'::regnamespace order by 1"
    with psycopg.connect(upgraded) as conn, psycopg.connect(empty) as fresh:
        assert conn.execute(query).fetchall() == fresh.execute(query).fetchall()


def test_every_view_and_status_says_what_it_said(stage, hand):
    before = {name: {key: dict(row) for key, row in rows.items()} for name, rows in stage.views.items()}
    was = stage.statuses
    after, now = views(hand), statuses(hand)
    # A dead letter whose month had been dropped has its body in the archive now, so it can be seen there again.
    bodiless, hurried = stage.filled.bodiless, stage.filled.hurried
    letter = after["archive"].pop((bodiless,))
    assert (letter["status"], letter["payload"]) == ("failed", {"kept": "here"})
    assert now.pop(bodiless)["last_error"] == "[PERMANENT] long ago"
    # The time that a hurried message waits for stands in the column of a retry; in flight a message waits for none.
    assert after["queue"][hurried,].pop("next_retry_at") == now[hurried].pop("next_retry_at")
    assert before["queue"][hurried,].pop("next_retry_at") is None
    for row in before["queue"].values():
        if row["status"] == "processing":
            row["next_retry_at"] = None
    # What a setting is said to do belongs to the release; its value, its default and its range do not change.
    for row in (*before["settings"].values(), *after["settings"].values()):
        del row["description"]
    # Columns that came with the new release.
    for row in after["endpoints"].values():
        assert row.pop("circuit_state") in ("closed", "open", "half_open")
        del row["circuit_failure_count"], row["next_probe_at"]
    for row in after["dlq"].values():
        assert (row.pop("cause"), row.pop("cause_hash")) == (None, None), "the job causes fills them"
    for row in after["event_log"].values():
        assert (row.pop("actor"), row.pop("via")) == (None, None), "the old release did not write it down"
    for name in ("redact", "console_payloads", "broker_allowed_networks"):
        row = after["settings"].pop((name,))
        assert row["value"] == row["default_value"]
    for name in VIEWS:
        assert after[name] == before[name], name
    assert now == {**was, hurried: {key: value for key, value in was[hurried].items() if key != "next_retry_at"}}
    assert months(hand) == stage.prints
    assert len(stage.prints) > 2


def test_correlation_ids_and_parents_from_before_are_found(hand):
    corr = "00000000-0000-0000-0000-000000000001"
    wanted = [
        row.id for row in hand.all("select id from menzil.message where correlation_id = %s order by id desc", corr)
    ]
    child, parent = hand.all("select id, replay_of from menzil.message where replay_of is not null")[0]
    assert wanted
    for _ in range(2):  # before the job lookups has come to them, and after
        assert [row.id for row in hand.all("select id from menzil.messages_with_correlation(%s)", corr)] == wanted
        assert hand.one("select menzil.job_run('lookups')") is not None
    family = hand.all("select message_id from menzil.message_family(%s) where depth = 1", parent)
    assert child in [row.message_id for row in family]


def test_everything_drains_in_the_order_of_the_old_release(stage, hand):
    assert sum(len(given) for given in stage.given.values()) > 350
    for channel, given in stage.given.items():
        assert drained(hand, channel) == given, channel
    # A retry and a recovered lease return to the place they had.
    assert [one.id for one in drained(hand, "retried")] == stage.filled.by_retry
    assert [one.id for one in drained(hand, "future")] == [stage.filled.hurried]


def test_leases_of_the_old_release_are_settled(stage, hand):
    assert hand.complete(*stage.filled.held) == ["settled"] * len(stage.filled.held)
    assert hand.complete(*stage.filled.held) == ["unknown"] * len(stage.filled.held)
    archived = {row.id: row for row in hand.all("select * from menzil.archive where status = 'completed'")}
    for lease in stage.filled.held:
        assert archived[lease.id].num_attempts == lease.num_attempts
        assert archived[lease.id].leased_at == stage.views["queue"][lease.id,]["processing_started_at"]


def test_lost_leases_of_the_old_release_come_back(stage, hand):
    hand.do("update menzil.lease set unlock_at = unlock_at - interval '1 day', watch_at = watch_at - interval '1 day'")
    assert hand.one("select menzil.recover_stale_messages()") == len(stage.filled.held)
    assert set(hand.complete(*stage.filled.held)) == {"stale"}
    came = {lease.id: lease.num_attempts for lease in hand.lease("plain", 1000)}
    old = {lease.id: lease.num_attempts for lease in stage.filled.held if lease.id in came}
    assert len(old) == 5
    assert all(came[message] == attempt + 1 for message, attempt in old.items())


def test_ordering_keys_go_on(stage, hand):
    # One key has lost its head, the head of another is in flight, and that of the third waits for its retry.
    free = drained(hand, "busy keys")
    assert ({one.ordering_key for one in free}, numbers(free)) == ({"c"}, [1, 2, 3])
    held = [lease for lease in stage.filled.held if lease.ordering_key == "a"]
    hand.complete(*held)
    assert numbers(drained(hand, "busy keys")) == [1, 2, 3]
    waits = hand.one("select id from menzil.queue where channel = 'busy keys' and num_attempts = 1")
    assert hand.one("select menzil.message_retry_now(%s)", waits)
    assert numbers(drained(hand, "busy keys")) == [0, 1, 2, 3]
    # A dead letter that blocks its key lets it go, and the rest follows.
    assert drained(hand, "block") == []
    assert hand.one("select menzil.message_cancel(original_message_id) from menzil.dlq where endpoint_name = 'block'")
    assert numbers(drained(hand, "block")) == [1, 2]


def test_what_waits_for_its_time_comes_with_the_next_attempt(stage, hand):
    names = ["future", "deferred", "retried", "tried"]
    for name in names:
        drained(hand, name)
    waits = hand.all("select id, num_attempts, state from menzil.queue where channel = any (%s)", names)
    held = {lease.id for lease in stage.filled.held}
    waits = [row for row in waits if row.id not in held]
    assert len(waits) == 5 + 1 + 1 + 2
    for row in waits:
        assert hand.one("select menzil.message_retry_now(%s)", row.id)
    came = [lease for name in names for lease in drained(hand, name)]
    assert sorted((one.id, one.num_attempts - 1, one.state) for one in came) == sorted(waits)


def test_limits_and_circuits_go_on(stage, hand):
    # Two messages are in flight and are counted, so no slot is free.
    assert hand.lease("limited") == []
    assert hand.one("select in_flight from menzil.channels where name = 'limited'") == 2
    hand.complete(*[lease for lease in stage.filled.held if stage.views["queue"][lease.id,]["channel"] == "limited"])
    assert numbers(hand.lease("limited", 5)) == [2, 3]
    # Three live messages in a channel for five.
    hand.batch("sized", 2)
    with pytest.raises(psycopg.Error, match="max_size"):
        hand.batch("sized", 1)
    assert hand.lease("paused") == []
    hand.do("select menzil.channel_resume('paused')")
    assert numbers(drained(hand, "paused")) == [0, 1, 2, 3, 4]
    # One circuit is open; the probe of the other has closed it, though no dequeue of 0.1.0 heard of that.
    assert drained(hand, "broken") == []
    assert numbers(drained(hand, "tried")) == [3, 4]


def test_idempotency_keys_are_held_by_who_held_them(stage, hand):
    assert held_keys(hand) == stage.holders
    assert stage.holders["unarchived"] == stage.filled.unarchived
    for key in stage.holders:
        with pytest.raises(psycopg.Error, match="same key with different payload"):
            hand.send("once", {"key": "another payload"}, idempotency_key=key)
    # Retention holds only for what was completed.
    last = hand.one("select last_value from menzil.message_id")
    assert hand.send("once", {"key": "failed"}, idempotency_key="failed") > last
    assert hand.send("once", {"key": "cancelled"}, idempotency_key="cancelled") > last


def test_schedules_and_readers_of_the_feed_go_on(stage, hand):
    assert feed(hand) == stage.feed
    assert readers(hand) == stage.readers
    assert hand.one("select menzil.feed_lost('archive', %s, %s, 0)", stage.feed[-1].xid, stage.feed[-1].id) is None
    fired = "select s.message_id = c.last_message_id from menzil.schedule_slot s, menzil.schedule c"
    assert hand.all(fired) == [(True,)]
    hand.do("update menzil.schedule_slot set slot_at = slot_at - interval '1 day'")
    hand.do("update menzil.schedule set next_at = date_trunc('minute', clock_timestamp())")
    assert hand.one("select menzil.schedule_fire_due()") == 1
    assert hand.lease("ticks")[0].payload == {"tick": 1}
