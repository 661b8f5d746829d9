"""Schedules: each slot fires once whoever fires it, one bad schedule never holds up the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row


@pytest.fixture
def conn(db: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(db, autocommit=True) as connection:
        connection.execute("select menzil.channel_set('reports')")
        yield connection


def create(conn: psycopg.Connection, name: str = "nightly", cron: str = "0 3 * * *", **options: Any) -> int:
    arguments = {
        "p_time_zone": "Europe/Istanbul",
        "p_endpoint_name": "reports",
        "p_payload": '{"kind": "nightly"}',
        **options,
    }
    named = ", ".join(f"{key} => %({key})s" for key in arguments)
    query = f"select menzil.schedule_create(%(p_name)s, %(p_cron)s, {named})"
    (made,) = conn.execute(query, {"p_name": name, "p_cron": cron, **arguments}).fetchone()
    return made


def make_due(conn: psycopg.Connection, name: str, ago: str) -> None:
    """Turn the clock of one schedule back: its next slot is the first one since then."""
    conn.execute(
        """update menzil.schedule set next_at = menzil.cron_next(cron, time_zone, clock_timestamp() - %s::interval)
            where name = %s""",
        [ago, name],
    )


def fire(conn: psycopg.Connection) -> int:
    (fired,) = conn.execute("select menzil.schedule_fire_due()").fetchone()
    return fired


def state(conn: psycopg.Connection, name: str) -> dict[str, Any]:
    cursor = conn.cursor(row_factory=dict_row)
    return cursor.execute("select * from menzil.schedules where name = %s", [name]).fetchone()


def test_a_new_schedule_waits_for_its_first_slot(conn: psycopg.Connection) -> None:
    create(conn)
    schedule = state(conn, "nightly")
    assert schedule["next_at"] > datetime.now(UTC)
    assert schedule["last_slot_at"] is None
    assert fire(conn) == 0


def test_a_due_slot_sends_one_message_with_everything_it_should_carry(conn: psycopg.Connection) -> None:
    create(
        conn,
        cron="0 0 1 1 *",
        p_priority=7,
        p_ordering_key="k",
        p_expires_after=timedelta(days=500),
        p_headers='{"X-A": "b"}',
        p_metadata='{"team": "x", "schedule": "not mine"}',
    )
    make_due(conn, "nightly", "366 days")
    assert fire(conn) == 1
    assert fire(conn) == 0
    schedule = state(conn, "nightly")
    slot = schedule["last_slot_at"]
    cursor = conn.cursor(row_factory=dict_row)
    (message,) = cursor.execute("select * from menzil.queue").fetchall()
    assert message["id"] == schedule["last_message_id"]
    assert message["channel"] == "reports"
    assert message["payload"] == {"kind": "nightly"}
    assert (message["priority"], message["ordering_key"], message["headers"]) == (7, "k", {"X-A": "b"})
    assert message["expires_at"] == slot + timedelta(days=500)
    assert message["idempotency_key"] == f"schedule:nightly:{int(slot.timestamp())}"
    assert message["metadata"] == {
        "team": "x",
        "schedule": "nightly",
        "slot_at": slot.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    assert schedule["next_at"].year == slot.year + 1
    assert schedule["last_error"] is None
    assert conn.execute("select slot_at, message_id from menzil.schedule_slot").fetchall() == [(slot, message["id"])]


def test_after_a_downtime_only_the_latest_slot_fires(conn: psycopg.Connection) -> None:
    for name, cron, ago in [
        ("minutes", "*/5 * * * *", "400 days"),
        ("days", "30 4 * * *", "400 days"),
        ("gaps", "*/7 9-17 1-7,20 * MON", "60 days"),
        ("years", "0 0 29 2 *", "30 years"),
        ("just now", "* * * * *", "70 seconds"),
    ]:
        create(conn, name, cron)
        make_due(conn, name, ago)
        before = datetime.now(UTC)
        assert fire(conn) == 1, name
        schedule = state(conn, name)
        assert schedule["last_slot_at"] <= datetime.now(UTC), name
        assert schedule["next_at"] > before, name
        # Nothing between the slot that fired and the next one: it was the latest.
        (following,) = conn.execute(
            "select menzil.cron_next(cron, time_zone, last_slot_at) from menzil.schedules where name = %s", [name]
        ).fetchone()
        assert following == schedule["next_at"], name
    assert conn.execute("select count(*) from menzil.queue").fetchone() == (5,)


def test_a_slot_that_was_fired_is_never_fired_again(conn: psycopg.Connection) -> None:
    create(conn, cron="0 0 1 1 *")
    for _ in range(3):
        make_due(conn, "nightly", "366 days")
        fire(conn)
    assert conn.execute("select count(*) from menzil.queue").fetchone() == (1,)
    assert state(conn, "nightly")["last_error"] is None


def test_a_schedule_being_fired_by_another_is_left_to_it(conn: psycopg.Connection, db: str) -> None:
    for name in ["one", "two"]:
        create(conn, name, "0 0 1 1 *")
        make_due(conn, name, "366 days")
    with psycopg.connect(db) as other:
        other.execute("select from menzil.schedule where name = 'one' for update")
        assert fire(conn) == 1
        assert state(conn, "two")["last_message_id"] is not None
    assert fire(conn) == 1


def test_many_firing_at_once_send_each_slot_once(conn: psycopg.Connection, db: str) -> None:
    for number in range(20):
        create(conn, f"s{number}", "0 0 1 1 *")
        make_due(conn, f"s{number}", "366 days")
    fired: list[int] = []
    start = threading.Barrier(4)

    def work() -> None:
        with psycopg.connect(db, autocommit=True) as mine:
            start.wait(timeout=60)
            fired.extend(mine.execute("select menzil.schedule_fire_due(3)").fetchone()[0] for _ in range(12))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    fired.append(fire(conn))
    assert sum(fired) == 20
    assert conn.execute("select count(*), count(distinct metadata ->> 'schedule') from menzil.queue").fetchone() == (
        20,
        20,
    )


def test_a_rolled_back_firing_leaves_the_slot_due(conn: psycopg.Connection) -> None:
    create(conn, cron="0 0 1 1 *")
    make_due(conn, "nightly", "366 days")
    with conn.transaction(force_rollback=True):
        assert fire(conn) == 1
    assert conn.execute("select count(*) from menzil.queue").fetchone() == (0,)
    assert fire(conn) == 1


def test_metadata_that_no_message_could_carry_is_refused_when_the_schedule_is_made(conn: psycopg.Connection) -> None:
    """Each message has the name of its schedule and its slot in its metadata, too."""
    conn.execute("select menzil.set_setting('max_payload_size', '2048')")
    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        create(conn, p_metadata='{"note": "' + "n" * 2000 + '"}')
    create(conn, p_metadata='{"note": "' + "n" * 1900 + '"}')
    make_due(conn, "nightly", "366 days")
    assert fire(conn) == 1


def test_a_refused_send_does_not_hold_up_the_other_schedules(conn: psycopg.Connection) -> None:
    conn.execute("select menzil.create_endpoint('hook', 'http', '{\"url\": \"https://example.com\"}')")
    conn.execute("select menzil.channel_set('full', p_max_size => 1)")
    conn.execute("select menzil.send('full', '{}')")
    for name, endpoint in [("a", "full"), ("b", "hook"), ("c", "reports"), ("d", "gone")]:
        if endpoint == "gone":
            conn.execute("select menzil.channel_set('gone')")
        create(conn, name, "0 0 1 1 *", p_endpoint_name=endpoint)
        make_due(conn, name, "366 days")
    conn.execute("select menzil.disable_endpoint('hook'), menzil.channel_release('gone')")
    assert fire(conn) == 1
    assert state(conn, "a")["last_error"].startswith("53400: ")
    assert state(conn, "b")["last_error"].startswith("55000: ")
    assert state(conn, "c")["last_error"] is None
    assert state(conn, "d")["last_error"].startswith("42704: ")
    for name in "abcd":
        assert state(conn, name)["next_at"] > datetime.now(UTC)
    # Its next slot, when nothing is in the way any more, clears the error.
    conn.execute("select menzil.enable_endpoint('hook')")
    make_due(conn, "b", "366 days")
    assert fire(conn) == 1
    assert state(conn, "b")["last_error"] is None
    failures = "select entity_id from menzil.event_log where event_type = 'schedule.failed' order by id"
    assert sorted(conn.execute(failures).fetchall()) == [("a",), ("b",), ("d",)]


def test_a_slot_that_met_a_full_disk_stays_due(conn: psycopg.Connection) -> None:
    create(conn, cron="0 0 1 1 *")
    make_due(conn, "nightly", "366 days")
    conn.execute("""
        create function pg_temp.refuse() returns trigger language plpgsql as
          $$ begin raise exception 'no space left on device' using errcode = 'disk_full'; end $$;
        create trigger no_room before insert on menzil.message for each row execute function pg_temp.refuse()""")
    with pytest.raises(psycopg.errors.DiskFull):
        fire(conn)
    conn.execute("drop trigger no_room on menzil.message")
    assert fire(conn) == 1
    assert state(conn, "nightly")["last_error"] is None


def test_a_slot_found_after_its_expiry_sends_nothing(conn: psycopg.Connection) -> None:
    create(conn, cron="0 0 1 1 *", p_expires_after=timedelta(minutes=1))
    conn.execute("update menzil.schedule set next_at = clock_timestamp() - interval '2 minutes'")
    assert fire(conn) == 0
    assert "expired" in state(conn, "nightly")["last_error"]
    assert state(conn, "nightly")["next_at"] > datetime.now(UTC)
    assert conn.execute("select count(*) from menzil.queue").fetchone() == (0,)


def test_a_schedule_whose_time_zone_vanished_is_paused_with_its_reason(conn: psycopg.Connection) -> None:
    create(conn, "lost", "0 0 1 1 *")
    create(conn, "found", "0 0 1 1 *")
    for name in ["lost", "found"]:
        make_due(conn, name, "366 days")
    conn.execute("update menzil.schedule set time_zone = 'Mars/Olympus' where name = 'lost'")
    assert fire(conn) == 1
    assert state(conn, "lost")["paused"] is True
    assert "no time zone" in state(conn, "lost")["last_error"]


def test_a_paused_schedule_lets_its_slots_pass(conn: psycopg.Connection) -> None:
    create(conn, cron="* * * * *")
    conn.execute("select menzil.schedule_pause('nightly'), menzil.schedule_pause('nightly')")
    make_due(conn, "nightly", "1 hour")
    assert fire(conn) == 0
    conn.execute("select menzil.schedule_resume('nightly')")
    assert state(conn, "nightly")["next_at"] > datetime.now(UTC) - timedelta(seconds=1)
    events = conn.execute(
        "select event_type from menzil.event_log where entity_type = 'schedule' order by id"
    ).fetchall()
    assert events == [("schedule.created",), ("schedule.paused",), ("schedule.resumed",)]


def test_resuming_what_is_not_paused_keeps_a_due_slot(conn: psycopg.Connection) -> None:
    create(conn, cron="0 0 1 1 *")
    make_due(conn, "nightly", "366 days")
    conn.execute("select menzil.schedule_resume('nightly')")
    assert fire(conn) == 1


def test_a_dropped_schedule_is_gone_and_its_name_is_free(conn: psycopg.Connection) -> None:
    create(conn, cron="0 0 1 1 *")
    make_due(conn, "nightly", "366 days")
    fire(conn)
    conn.execute("select menzil.schedule_drop('nightly')")
    assert conn.execute("select count(*) from menzil.schedule_slot").fetchone() == (0,)
    assert conn.execute("select count(*) from menzil.queue").fetchone() == (1,)
    create(conn)


def test_old_slots_are_pruned_and_the_newest_kept(conn: psycopg.Connection) -> None:
    schedule = create(conn)
    conn.execute(
        """insert into menzil.schedule_slot (schedule_id, slot_at)
           select %s, now() - n * interval '1 minute' from generate_series(1, 1500) n""",
        [schedule],
    )
    conn.execute("select menzil._schedule_prune(%s)", [schedule])
    kept = conn.execute(
        "select count(*), max(slot_at) > now() - interval '2 minutes' from menzil.schedule_slot"
    ).fetchone()
    assert kept == (1000, True)


def test_unknown_names_are_refused(conn: psycopg.Connection) -> None:
    for function in ["schedule_drop", "schedule_pause", "schedule_resume"]:
        with pytest.raises(psycopg.errors.UndefinedObject, match="'nobody'"):
            conn.execute(f"select menzil.{function}('nobody')")
        with pytest.raises(psycopg.errors.NullValueNotAllowed):
            conn.execute(f"select menzil.{function}(null)")
    with pytest.raises(psycopg.errors.UndefinedObject):
        create(conn, p_endpoint_name="nobody")


def test_a_second_schedule_of_the_same_name_is_refused(conn: psycopg.Connection) -> None:
    create(conn)
    with pytest.raises(psycopg.errors.DuplicateObject) as refusal:
        create(conn)
    assert "schedule_drop" in refusal.value.diag.message_hint


def test_what_a_send_would_refuse_is_refused_when_the_schedule_is_made(conn: psycopg.Connection) -> None:
    refused: list[tuple[type[psycopg.Error], dict[str, Any]]] = [
        (psycopg.errors.NullValueNotAllowed, {"name": None}),
        (psycopg.errors.NullValueNotAllowed, {"cron": None}),
        (psycopg.errors.NullValueNotAllowed, {"p_time_zone": None}),
        (psycopg.errors.NullValueNotAllowed, {"p_endpoint_name": None}),
        (psycopg.errors.NullValueNotAllowed, {"p_payload": None}),
        (psycopg.errors.NullValueNotAllowed, {"p_priority": None}),
        (psycopg.errors.InvalidParameterValue, {"name": ""}),
        (psycopg.errors.InvalidParameterValue, {"cron": "0 0 30 2 *"}),
        (psycopg.errors.InvalidParameterValue, {"cron": "now and then"}),
        (psycopg.errors.InvalidParameterValue, {"p_time_zone": "Europe/Stambul"}),
        (psycopg.errors.InvalidParameterValue, {"p_priority": 11}),
        (psycopg.errors.InvalidParameterValue, {"p_expires_after": timedelta(0)}),
        (psycopg.errors.InvalidParameterValue, {"p_ordering_key": ""}),
        (psycopg.errors.InvalidParameterValue, {"p_headers": "[]"}),
        (psycopg.errors.InvalidParameterValue, {"p_metadata": '"x"'}),
        (psycopg.errors.ProgramLimitExceeded, {"p_payload": '"' + "x" * 1_100_000 + '"'}),
    ]
    for error, options in refused:
        with pytest.raises(error) as refusal:
            create(conn, **options)
        assert refusal.value.diag.message_hint, options
    assert conn.execute("select count(*) from menzil.schedules").fetchone() == (0,)


def test_the_limit_of_a_firing_is_checked(conn: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.NullValueNotAllowed):
        conn.execute("select menzil.schedule_fire_due(null)")
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        conn.execute("select menzil.schedule_fire_due(0)")
