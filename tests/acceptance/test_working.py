"""Workers at work: what they hold while they deliver, how they wake up, who does a job, how much memory they take."""

from __future__ import annotations

import re
import time
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.acceptance.crew import Crew, until

OURS = "from pg_stat_activity where application_name like 'menzil worker%' and datname = current_database()"


def test_nothing_holds_a_transaction_or_an_old_snapshot_while_a_message_is_delivered(crew: Crew) -> None:
    crew.send("hold", "a", "b")
    crew.start("--no-janitors")
    until(lambda: len(crew.traced()) == 2, "two deliveries")
    connections = crew.ask(f"select count(*) {OURS}")
    assert connections >= 3  # lease, upkeep, listen; and heartbeats soon
    # Heartbeats and polls come and go between two looks; a transaction held during the delivery would always be there.
    still = f"select count(*) {OURS} and state = 'idle' and xact_start is null and backend_xmin is null"
    until(lambda: crew.ask(f"select count(*) {OURS}") == crew.ask(still), "a moment without any transaction")
    for _ in range(50):
        assert crew.ask(f"select count(*) {OURS} and state like 'idle in transaction%'") == 0
        assert crew.ask(f"select count(*) {OURS} and xact_start < clock_timestamp() - interval '0.5 s'") == 0
    assert crew.traced("done") == []


def test_a_delivery_that_takes_longer_than_its_lease_is_kept_by_heartbeats(crew: Crew) -> None:
    (id,) = crew.send("hold", "a")
    worker = crew.start("--no-janitors")
    until(lambda: crew.traced(), "the delivery")
    ends = "select unlock_at from menzil.queue where id = %s"
    first = crew.ask(ends, id)
    assert until(lambda: crew.ask(f"{ends} and unlock_at > %s::timestamptz + interval '1 s'", id, first), "heartbeats")
    until(lambda: crew.ask("select clock_timestamp() > %s::timestamptz", first), "the end of the first lease")
    crew.ask("select menzil.maintain()")
    crew.gate.touch()
    until(lambda: crew.completed("hold") == 1, "its end")
    assert len(crew.traced()) == 1
    assert worker.stop() == 0


def test_once_delivers_what_is_due_and_ends(crew: Crew) -> None:
    crew.send("quick", *range(50))
    crew.conn.execute(
        "select menzil.send_with_options('quick', '1', p_ordering_key => 'k') from generate_series(1, 20)"
    )
    crew.conn.execute("select menzil.send_with_options('quick', '2', p_scheduled_at => now() + interval '1 day')")
    worker = crew.drain()
    assert crew.completed("quick") == 70
    assert crew.ask("select count(*) from menzil.queue") == 1
    assert worker.process.stdout is not None
    assert worker.process.stdout.read() == ""
    assert "delivered=70 failed=0 dead=0 deferred=0 handed_back=0 lost=0" in worker.says("stopped")


def test_once_delivers_what_is_due_behind_many_sends_to_other_channels(crew: Crew) -> None:
    crew.ask("select menzil.channel_set('unread')")
    crew.conn.execute("do $$ begin for n in 1..6000 loop perform menzil.send('unread', '1'); end loop; end $$")
    crew.send("quick", "a")
    assert "delivered=1 " in crew.drain().says("stopped")
    assert crew.completed("quick") == 1


def test_once_also_delivers_what_a_dead_worker_left_behind(crew: Crew) -> None:
    crew.send("quick", *range(12))
    assert crew.ask("select count(*) from menzil.message_dequeue(1, 100, '{quick}')") == 12
    until(lambda: crew.ask("select menzil.recover_stale_messages()"), "the end of its leases")
    worker = crew.drain()
    assert crew.completed("quick") == 12
    assert crew.ask("select max(retry_count) from menzil.archive") == 1
    assert "delivered=12" in worker.says("stopped")


def test_a_channel_that_does_not_exist_yet_is_waited_for(crew: Crew) -> None:
    worker = crew.start("--channels", "quick,nothing")
    worker.says("channel_missing channels=nothing")
    ids = crew.send("quick", 1, 2)
    until(lambda: crew.completed("quick") == len(ids), "its messages")


def test_an_idle_worker_wakes_up_when_something_is_sent(crew: Crew) -> None:
    crew.send("quick", "first")
    crew.start("--no-janitors")
    until(lambda: crew.completed("quick") == 1, "the first")
    wanted = "select last_value > 0 from menzil.wanted"
    delays = []
    for count in range(2, 12):
        until(lambda: crew.ask(wanted), "an idle worker")
        crew.send("quick", "next")
        until(lambda least=count: crew.completed("quick") == least, "the next")  # type: ignore[misc]
        took = "select extract(epoch from leased_at - created_at) * 1000 from menzil.archive order by id desc limit 1"
        delays.append(float(crew.ask(took)))
    # Polls alone would take half of their longest pause, 250 ms.
    assert sorted(delays)[len(delays) // 2] < 100, delays


def test_memory_stays_flat(crew: Crew) -> None:
    fill = "select count(*) from menzil.send_batch('nothing', array_fill('{\"a\": 1}'::jsonb, array[5000]))"
    crew.send("nothing", "x")
    worker = crew.start("--no-janitors")

    def deliver(goal: int) -> float:
        while crew.ask("select count(*) from menzil.archive") < goal:
            crew.ask(fill)
            until(lambda: not crew.ask("select exists (select from menzil.queue)"), "an empty queue")
        status = Path(f"/proc/{worker.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024

    if not Path("/proc/self/status").exists():
        pytest.skip("there is no /proc here")
    warm = deliver(5000)
    assert deliver(20_000) - warm < 8


def add_job(crew: Crew, name: str, body: str, every: str) -> None:
    """A job of this test: a function in SQL, and its row."""
    crew.conn.execute(f"create function public.{name}() returns bigint language sql as $$ {body} $$")
    job = "insert into menzil.job (name, call, every) values (%s, %s, %s::interval)"
    crew.conn.execute(job, (name, f"public.{name}()", every))


def test_each_round_of_a_job_is_done_by_one_worker(crew: Crew) -> None:
    crew.conn.execute("create table public.round (at timestamptz default clock_timestamp())")
    # Long enough for the others to come by while a round is under way.
    add_job(crew, "shared", "insert into public.round select from pg_sleep(1.5); select 7::bigint", "1 h")
    crew.send("quick", "x")
    workers = {name: crew.start("--name", name) for name in ("anna", "bert", "carl")}
    for rounds in (1, 2, 3):
        until(lambda: crew.ask("select last_count from menzil.jobs where name = 'shared'") == 7, "a round")
        assert crew.ask("select count(*) from public.round") == rounds
        assert crew.ask("select last_worker from menzil.jobs where name = 'shared'") in workers
        crew.conn.execute("update menzil.job set next_at = clock_timestamp(), last_count = null where name = 'shared'")
    until(lambda: crew.ask("select last_count from menzil.jobs where name = 'shared'") == 7, "the last round")
    assert [worker.stop() for worker in workers.values()] == [0, 0, 0]
    assert crew.ask("select count(*) from public.round") == 4
    told = [line for worker in workers.values() for line in worker.lines if "job=shared count=7" in line]
    assert len(told) == 4


def test_a_job_that_fails_says_so_and_stops_nothing_else(crew: Crew) -> None:
    add_job(crew, "broken", "select 1 / (random() * 0)::bigint", "1 s")
    ids = crew.send("quick", *range(10))
    worker = crew.start()
    worker.says("job_failed job=broken")
    until(lambda: crew.completed("quick") == len(ids), "the messages")
    fine = "select count(*) from menzil.jobs where name <> 'broken' and (last_count is null or last_error is not null)"
    until(lambda: crew.ask(fine) == 0, "a round of every other job")
    assert crew.ask("select last_error from menzil.jobs where name = 'broken'") == "22012: division by zero"
    tried = crew.ask("select last_run_at from menzil.jobs where name = 'broken'")
    until(lambda: crew.ask("select last_run_at > %s from menzil.jobs where name = 'broken'", tried), "the next try")
    assert worker.stop() == 0


def test_workers_do_every_job(crew: Crew) -> None:
    crew.send("quick", "x")
    crew.conn.execute("select menzil.send_with_options('quick', '1', p_expires_at => now() + interval '1 ms')")
    crew.ask("select menzil.channel_pause('quick')::text")
    crew.start()
    until(lambda: crew.ask("select count(*) from menzil.archive where status = 'expired'") == 1, "the expiry")
    waiting = "select count(*) from menzil.jobs where last_count is null or last_error is not null"
    until(lambda: crew.ask(waiting) == 0, "a round of every job")
    assert crew.ask("select count(*) from menzil.jobs") > 10


def test_polling_alone_is_enough_behind_a_pooler_in_transaction_mode(crew: Crew, pooled: str) -> None:
    crew.send("quick", *range(50))
    crew.send("mixed", *["done", "fail", "defer"] * 10)
    worker = crew.start("--no-prepare", "--no-janitors", MENZIL_DSN=pooled)
    until(lambda: crew.completed("quick") == 50, "the backlog")
    until(lambda: crew.completed("mixed") == 30, "second tries")
    worker.says("notify_does_not_arrive")
    crew.send("quick", "next")
    until(lambda: crew.completed("quick") == 51, "one more")
    assert worker.stop() == 0
    assert "lost=0" in worker.says("stopped")


def test_a_role_without_rights_cannot_keep_a_worker_busy_with_notifications(crew: Crew) -> None:
    crew.conn.execute("drop role if exists stranger")
    crew.conn.execute("create role stranger login password 'horse'")
    try:
        crew.send("quick", "a")
        worker = crew.start()
        until(lambda: crew.completed("quick") == 1, "the first")
        with psycopg.connect(make_conninfo(crew.dsn, user="stranger", password="horse"), autocommit=True) as stranger:

            def flooded() -> bool:
                stranger.execute("select pg_notify('menzil_wake', n::text) from generate_series(1, 500) n")
                return any("notify_flood" in line for line in list(worker.lines))

            until(flooded, "the worker to stop listening")
            crew.send("quick", "b")  # found by polling
            until(lambda: crew.completed("quick") == 2, "the second")
            assert crew.ask("select count(*) from pg_stat_activity where query = 'listen menzil_wake'") == 0
        assert worker.stop() == 0
    finally:
        crew.conn.execute("drop role stranger")


def test_useless_notifications_wake_a_worker_less_often_than_they_come(crew: Crew) -> None:
    crew.conn.execute(f"alter database {crew.conn.info.dbname} set track_functions = 'pl'")
    crew.send("quick", "a")
    worker = crew.start("--no-janitors")
    until(lambda: crew.completed("quick") == 1, "the first")
    began = time.monotonic()
    with psycopg.connect(crew.dsn, autocommit=True) as stranger:
        for _ in range(400):
            stranger.execute("notify menzil_wake")
            stranger.execute("select pg_sleep(0.002)")
    assert worker.stop() == 0  # a session reports its statistics at its end at the latest
    took = time.monotonic() - began
    asked = crew.ask("select sum(calls) from pg_stat_user_functions where funcname = 'message_dequeue'")
    # 20 hints at once, then 40 in a second; each costs two looks. On a slow machine polling adds its own.
    assert asked < 100 + 120 * took


def test_messages_of_one_lease_that_end_in_several_ways_are_settled_in_transactions_of_their_own(crew: Crew) -> None:
    """Two settles in one transaction would lock leases in another order than a heartbeat does: a deadlock."""
    crew.send("mixed", *(["fail", "defer"] * 50))
    worker = crew.start("--no-janitors")
    until(lambda: crew.ask("select count(*) from menzil.attempt") >= 100, "every first attempt")
    assert worker.stop() == 0
    assert (
        crew.ask("select max(n) from (select count(distinct outcome) as n from menzil.attempt group by xmin::text) t")
        == 1
    )
    assert "lost=0" in worker.says("stopped")
