"""What Prometheus gets: names, labels, counters that never fall, and an answer when the database gives none."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import menzil
from menzil.telemetry.exporter import Exporter, render
from menzil.telemetry.metric_names import FAMILIES, OTHER, QUEUE
from tests.telemetry.scraped import OPENMETRICS, asking, count_now, scrape, series, value


def fail(mq: menzil.Menzil, channel: str, error: str, *, permanent: bool = False) -> None:
    (message,) = mq.dequeue(channels=channel)
    mq.fail(message, error, permanent=permanent)


def test_the_numbers_of_a_day_are_there(db: str, mq: menzil.Menzil) -> None:
    mq.channel_set("billing", max_concurrency=4, on_dead="block")
    mq.channel_set("mail", release_interval=60, release_count=2)
    mq.send_batch("billing", [{}] * 5)
    mq.send("billing", {}, delay=3600)
    mq.send("mail", {})
    (done,) = mq.dequeue(channels="billing")
    mq.complete(done)
    fail(mq, "billing", "HTTP 503 Service Unavailable")
    fail(mq, "billing", "HTTP 404 Not Found", permanent=True)
    fail(mq, "billing", "ValueError: no")
    mq.dequeue(channels=["mail", "billing"], limit=2)
    mq.send("billing", {}, ordering_key="k")
    mq.send("billing", {}, ordering_key="k")
    (message,) = mq.dequeue(channels="billing")
    mq.fail(message, "no", permanent=True)
    mq.channel_pause("mail")
    found = scrape(db)
    assert value(found, "menzil_up") == 1
    assert [key for key in found if key[0] == "menzil_build_info"]
    assert value(found, "menzil_messages_sent_total", channel="billing") == 8
    assert value(found, "menzil_messages_ended_total", channel="billing", status="completed") == 1
    assert value(found, "menzil_messages_ended_total", channel="billing", status="failed") == 2
    attempts = {
        labels: count
        for (name, labels), count in found.items()
        if name == "menzil_attempts_total" and ("channel", "billing") in labels and count
    }
    assert {(dict(labels)["result"], dict(labels)["status_class"]): count for labels, count in attempts.items()} == {
        ("completed", ""): 1,
        ("failed", "5xx"): 1,
        ("failed", "4xx"): 1,
        ("failed", ""): 2,
    }
    assert value(found, "menzil_messages_in_flight", channel="mail") == 1
    assert value(found, "menzil_messages_in_flight", channel="billing") == 1
    assert value(found, "menzil_channel_concurrency_used_ratio", channel="billing") == 0.25
    assert value(found, "menzil_channel_rate_used_ratio", channel="mail") == 0.5
    assert value(found, "menzil_channel_held", channel="mail", reason="paused") == 1
    assert value(found, "menzil_channel_held", channel="billing", reason="paused") == 0
    assert value(found, "menzil_ordering_keys_blocked", channel="billing") == 1
    assert value(found, "menzil_dead_letters", channel="billing") == 2
    assert value(found, "menzil_messages_scheduled") == 3
    assert value(found, "menzil_delivery_seconds_bucket", channel="billing", le="+Inf") == 3
    assert value(found, "menzil_workers", status="alive") == 0


def test_a_histogram_is_cumulative(db: str, mq: menzil.Menzil) -> None:
    mq.send_batch("billing", [{}] * 3)
    for message in mq.dequeue(limit=3):
        mq.complete(message)
    found = scrape(db)
    counts = [
        count
        for (name, labels), count in found.items()
        if name == "menzil_delivery_seconds_bucket" and ("channel", "billing") in labels
    ]
    assert len(counts) == 12
    assert counts == sorted(counts)
    assert counts[-1] == 3


def test_nothing_is_said_that_is_not_in_the_table(db: str, mq: menzil.Menzil) -> None:
    mq.create_endpoint("partner", "http", {"url": "https://example.com/"})
    mq.send("partner", {})
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute(
            "select menzil.feed_advance('lake', 'archive', (select p.xid from menzil.feed_position('archive') p), 0)"
        )
        conn.execute("call menzil.run_jobs()")
        conn.execute("select menzil.worker_hello('w', 'h', 1, '0', null, 1)")
    found = scrape(db)
    suffixes = {"histogram": "_bucket"}
    said: dict[str, set[str]] = {}
    for name, labels in found:
        said.setdefault(name, set()).update(label for label, _ in labels)
    table = {f"{one.name}{suffixes.get(one.kind, '')}": one for one in QUEUE}
    assert said.keys() <= table.keys()
    for name, labelled in said.items():
        more = {"le"} if table[name].kind == "histogram" else set()
        assert labelled == set(table[name].labels) | more, name
    quiet = {"menzil_channel_concurrency_used_ratio", "menzil_channel_rate_used_ratio"}  # nothing here has a limit
    assert table.keys() - said.keys() == quiet


def test_openmetrics_is_spoken_when_it_is_asked_for(db: str, mq: menzil.Menzil) -> None:
    mq.send("billing", {})
    count_now(db)
    with asking(db) as asked:
        exporter = Exporter(asked.run)
        plain_type, plain = exporter.render("text/plain")
        open_type, opened = exporter.render(OPENMETRICS)
        odd_type, odd = exporter.render("application/openmetrics-text;version=new\r\n")
    assert plain_type.startswith("text/plain")
    assert open_type.startswith("application/openmetrics-text")
    assert odd_type.startswith("text/plain")
    assert odd == plain
    assert opened.endswith(b"# EOF\n")
    assert series(plain) == series(opened, openmetrics=True)


def test_those_who_ask_at_once_share_one_scrape(db: str, mq: menzil.Menzil) -> None:
    with asking(db) as asked:
        exporter = Exporter(asked.run)
        ready = threading.Barrier(8)

        def ask() -> bytes:
            ready.wait()
            return exporter.render()[1]

        with ThreadPoolExecutor(8) as pool:
            bodies = {future.result() for future in [pool.submit(ask) for _ in range(8)]}
        assert len(bodies) == 1
        once = asked.count
        exporter.render()
        render(asked.run)
        assert asked.count == 2 * once  # render() has an exporter of its own
        render(asked.run)
        assert asked.count == 2 * once
        fresh = Exporter(asked.run, fresh=0)
        fresh.render()
        fresh.render()
        assert asked.count == 4 * once


def test_a_database_that_does_not_answer_is_down_and_no_error(
    db: str, mq: menzil.Menzil, caplog: pytest.LogCaptureFixture
) -> None:
    with asking(db) as asked:
        exporter = Exporter(asked.run, fresh=0)
        asked.conn.close()
        content_type, body = exporter.render()
        exporter.render()
        assert series(body) == {("menzil_up", ()): 0}
        assert content_type.startswith("text/plain")
        asked.conn = psycopg.connect(db, autocommit=True)
        assert value(series(exporter.render()[1]), "menzil_up") == 1
    said = [record.getMessage() for record in caplog.records if record.name == "menzil.metrics"]
    assert len(said) == 2
    assert "cannot be scraped" in said[0]


def test_a_database_without_menzil_is_down(fresh_db: str) -> None:
    with asking(fresh_db) as asked:
        assert series(Exporter(asked.run).render()[1]) == {("menzil_up", ()): 0}


def test_a_monitor_may_scrape(db: str, mq: menzil.Menzil) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("create role watcher login password 'x' in role menzil_monitor")
    try:
        found = scrape_as(make_conninfo(db, user="watcher", password="x"))
        assert value(found, "menzil_up") == 1
    finally:
        with psycopg.connect(db, autocommit=True) as conn:
            conn.execute("drop role watcher")


def scrape_as(dsn: str) -> Any:
    with asking(dsn) as asked:
        return series(Exporter(asked.run).render()[1])


def test_channels_beyond_the_limit_are_counted_together(db: str, mq: menzil.Menzil) -> None:
    for n in range(5):
        mq.channel_set(f"tenant-{n}", max_concurrency=2)
        mq.send_batch(f"tenant-{n}", [{}] * (n + 1))
    mq.channel_pause("tenant-0")
    mq.dequeue(channels="tenant-1")
    count_now(db)
    with asking(db) as asked:
        exporter = Exporter(asked.run, fresh=0, most=3)
        found = scrape(db, exporter)
        channels = {dict(labels)["channel"] for name, labels in found if "channel" in dict(labels)}
        assert channels == {"tenant-4", "tenant-3", "tenant-2", OTHER}
        assert value(found, "menzil_messages_sent_total", channel=OTHER) == 1 + 2
        assert value(found, "menzil_messages_waiting", channel=OTHER) == 1 + 1
        assert value(found, "menzil_channel_held", channel=OTHER, reason="paused") == 1
        assert value(found, "menzil_channel_concurrency_used_ratio", channel=OTHER) == 0.5


def test_no_counter_falls_while_channels_come_grow_and_go(db: str, mq: menzil.Menzil) -> None:
    with asking(db) as asked:
        exporter = Exporter(asked.run, fresh=0, most=2)
        last: dict[Any, float] = {}
        steps = [
            lambda: mq.send_batch("mail", [{}] * 3),
            lambda: mq.channel_set("small"),
            lambda: mq.send_batch("small", [{}] * 50),  # now busier than those with a name
            lambda: mq.send_batch("billing", [{}] * 2),
            lambda: mq.channel_purge("mail"),
            lambda: (mq.channel_release("mail"), finish(db)),
            lambda: mq.channel_set("late"),  # takes the free name
            lambda: mq.send_batch("late", [{}] * 9),
            lambda: mq.channel_set("mail"),  # of the same name, and another channel
            lambda: mq.send_batch("mail", [{}] * 1),
            lambda: mq.send_batch("small", [{}] * 1),
        ]
        for step in steps:
            step()
            found = scrape(db, exporter)
            counters = {
                key: count for key, count in found.items() if key[0].endswith("_total") or key[0].endswith("_bucket")
            }
            fallen = {key: (last[key], count) for key, count in counters.items() if count < last.get(key, 0)}
            assert fallen == {}
            last = counters
        assert value(last, "menzil_messages_sent_total", channel="late") == 9
        assert value(last, "menzil_messages_sent_total", channel=OTHER) == 51 + 1


def finish(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil._finish_releases()")
        assert conn.execute("select count(*) from menzil.channels where name = 'mail'").fetchone() == (0,)


def test_counters_outlive_the_exporter_and_the_pulse(db: str, mq: menzil.Menzil) -> None:
    mq.send_batch("billing", [{}] * 3)
    before = scrape(db)
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("delete from menzil.pulse_minute")  # as after 48 hours, and then after 90 days
    mq.send("billing", {})
    after = scrape(db)
    assert value(before, "menzil_messages_sent_total", channel="billing") == 3
    assert value(after, "menzil_messages_sent_total", channel="billing") == 4


def test_a_channel_of_any_name_is_a_label(db: str, mq: menzil.Menzil) -> None:
    names = ['a"b', "back\\slash", "größe 日本", "_other", "{x}"]
    for name in names:
        mq.channel_set(name)
        mq.send(name, {})
    found = scrape(db)
    assert {name: value(found, "menzil_messages_waiting", channel=name) for name in names} == dict.fromkeys(names, 1)


def test_a_job_that_fails_keeps_the_time_of_its_last_good_round(db: str, mq: menzil.Menzil) -> None:
    with psycopg.connect(db, autocommit=True) as conn, asking(db) as asked:
        conn.execute("call menzil.run_jobs()")
        exporter = Exporter(asked.run, fresh=0)
        name = "menzil_janitor_last_success_timestamp_seconds"
        good = value(series(exporter.render()[1]), name, janitor="expiry")
        assert good > 1.7e9
        later = "clock_timestamp() + interval '1 h'"
        conn.execute(f"update menzil.job set last_error = 'no', last_run_at = {later} where name = 'expiry'")
        assert value(series(exporter.render()[1]), name, janitor="expiry") == good
        assert value(series(Exporter(asked.run).render()[1]), name, janitor="expiry") is None


def test_a_reader_of_the_feed_and_a_held_snapshot_are_seen(db: str, mq: menzil.Menzil) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute(
            "select menzil.feed_advance('lake', 'archive', (select p.xid from menzil.feed_position('archive') p), 0)"
        )
    mq.send("billing", {})
    (message,) = mq.dequeue()
    mq.complete(message)
    mq.send("mail", {})
    with psycopg.connect(db) as stranger:
        stranger.execute("select txid_current()")
        found = scrape(db)
    assert value(found, "menzil_feed_lag_seconds", consumer="lake") > 0
    assert value(found, "menzil_snapshot_age_seconds") > 0
    assert value(found, "menzil_oldest_waiting_seconds", channel="mail") > 0


def test_the_names_follow_the_conventions() -> None:
    for family in FAMILIES.values():
        assert family.name.startswith("menzil_")
        assert family.name.endswith("_total") == (family.kind == "counter")
        if family.kind == "histogram":
            assert family.name.endswith("_seconds")
