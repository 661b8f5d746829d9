"""Workers that die: nothing is lost, nothing is done twice where that was promised, and nobody is taken along."""

from __future__ import annotations

import signal
from collections import Counter

import psycopg

from tests.acceptance.crew import Crew, until

THROW_OUT = "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'menzil worker%'"


def allow_connections(crew: Crew, allowed: bool) -> None:
    """Let nobody in who is not in already, or everybody again."""
    with psycopg.connect(crew.dsn, dbname="postgres", autocommit=True) as conn:
        conn.execute(f"alter database {crew.conn.info.dbname} allow_connections {allowed}")


def test_a_killed_worker_loses_no_message(crew: Crew) -> None:
    ids = crew.send("rationed", *range(30))
    crew.gate.write_text("6")
    first = crew.start("--lease", "1")
    until(lambda: len(crew.traced()) >= 10, "six done, four under way")
    first.kill()
    crew.gate.write_text("30")
    crew.start("--lease", "1")
    until(lambda: crew.completed("rationed") == len(ids), "all completed")
    handled = Counter(int(line[2]) for line in crew.traced())
    assert set(handled) == set(ids)
    assert crew.ask("select count(*) from menzil.queue") == 0


def test_the_answer_of_a_worker_that_slept_through_its_lease_is_refused_and_moves_no_counter(crew: Crew) -> None:
    crew.ask("select menzil.channel_set('frozen', 1)")  # one at a time: its slot is counted
    (id,) = crew.send("frozen", "x")
    sleeper = crew.start("--no-janitors")
    until(lambda: crew.traced(channel="frozen"), "the delivery")
    sleeper.send(signal.SIGSTOP)
    take = "select num_attempts from menzil.message_dequeue(600000, 1, '{frozen}')"
    assert until(lambda: crew.ask(take), "the lease to run out") == 2
    crew.ask("select menzil.maintain()")
    seen = (
        "select row(q.status, q.num_attempts, q.retry_count, q.last_error, c.in_flight, a.count)::text"
        " from menzil.queue q join menzil.channels c on c.name = q.channel, (select count(*) from menzil.archive) a"
        " where q.id = %s"
    )
    before = crew.ask(seen, id)
    assert before is not None
    crew.gate.touch()
    sleeper.send(signal.SIGCONT)
    assert f"id={id} attempt=1" in sleeper.says("lease_lost")
    crew.ask("select menzil.maintain()")
    assert crew.ask(seen, id) == before
    assert crew.ask("select menzil.message_complete(%s, 2)::text", id) is not None
    assert sleeper.stop() == 0
    assert "delivered=0 failed=0" in sleeper.says("stopped")


def test_a_delivery_that_cannot_be_heartbeated_is_stopped_by_its_own_worker(crew: Crew) -> None:
    (id,) = crew.send("hold", "x")
    worker = crew.start("--no-janitors", "--no-listen")
    until(lambda: crew.traced(channel="hold"), "the delivery")
    # The server refuses this worker from now on; its lease of 2 seconds has a third left when it gives up.
    allow_connections(crew, False)
    crew.conn.execute(THROW_OUT)
    assert f"id={id} attempt=1" in worker.says("no heartbeat came through")
    crew.gate.touch()
    allow_connections(crew, True)
    until(lambda: crew.completed("hold") == 1, "the next attempt")
    assert [line[3] for line in crew.traced("done")] == ["2"]


def test_a_message_that_kills_its_worker_ends_as_a_dead_letter_and_takes_nobody_along(crew: Crew) -> None:
    crew.ask("select menzil.set_setting('default_max_retries', '2')")
    good = crew.send("poison", *["good"] * 5)
    (poison,) = crew.send("poison", "poison")
    more = crew.send("poison", *["good"] * 5)
    parent = crew.start("--processes", "2", ready=False)
    dead = "select count(*) from menzil.dlq where original_message_id = %s and last_error like '%%lease expired%%'"
    until(lambda: crew.ask(dead, poison) == 1, "the dead letter")
    until(lambda: crew.completed("poison") == len(good + more), "the others")
    assert len([line for line in crew.traced() if int(line[2]) == poison]) == 3
    assert crew.ask("select max(retry_count) from menzil.archive where status = 'completed'") == 1
    (fresh,) = crew.send("poison", "fresh")
    until(lambda: any(int(line[2]) == fresh for line in crew.traced()), "a fresh message")
    assert parent.stop() == 0


def test_a_handler_with_a_transaction_has_its_effect_once_however_often_it_dies(crew: Crew) -> None:
    crew.conn.execute("create table effect (id bigint)")
    ids = crew.send("booking", *range(6)) + crew.send("booking_in_a_thread", *range(6))
    parent = crew.start("--processes", "2", "--channels", "booking,booking_in_a_thread", ready=False)
    until(lambda: crew.completed("booking") + crew.completed("booking_in_a_thread") == 12, "all booked", 60)
    assert crew.ask("select array_agg(id order by id) from effect") == sorted(ids)
    assert len(crew.traced()) > 12  # some were begun more than once
    assert parent.stop() == 0


def test_the_inbox_remembers_a_message_whose_worker_died_after_the_commit(crew: Crew) -> None:
    crew.conn.execute("create table effect (id bigint)")
    ids = crew.send("letters", "a", "b")
    for _ in range(10):
        process = crew.start("--once", "--no-janitors", "--channels", "letters", ready=False)
        process.ends()
        until(lambda: not crew.ask("select exists (select from menzil.queue where unlock_at > clock_timestamp())"))
        if crew.completed("letters") == 2:
            break
    assert crew.ask("select array_agg(id order by id) from effect") == ids
    assert len(crew.traced()) > len(ids)


def test_work_goes_on_when_the_server_throws_everybody_out(crew: Crew) -> None:
    ids = crew.send("rationed", *range(120))
    crew.gate.write_text("10")
    crew.start()
    for begun, more in ((14, "50"), (54, "1000")):
        until(lambda count=begun: len(crew.traced()) >= count, f"{begun} begun, four of them under way")  # type: ignore[misc]
        crew.gate.write_text(more)
        crew.conn.execute(THROW_OUT)  # while the work goes on
    until(lambda: crew.completed("rationed") == len(ids), "all completed", 60)
    assert crew.ask("select count(*) from menzil.queue") == 0
