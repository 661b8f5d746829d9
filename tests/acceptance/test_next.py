"""One call that completes messages and leases the next: when workers make it, and what happens when it fails."""

from __future__ import annotations

from collections import Counter

import psycopg

from tests.acceptance.crew import Crew, until

CALLS = "select coalesce(sum(calls), 0) from pg_stat_user_functions where funcname = %s"
LEASES = "from pg_stat_activity where application_name = 'menzil worker (lease)' and datname = current_database()"
WAITING = f"select pid {LEASES} and query like '%%message_next%%' and wait_event_type = 'Lock'"


def count_calls(crew: Crew) -> None:
    crew.conn.execute(f"alter database {crew.conn.info.dbname} set track_functions = 'all'")


def test_messages_that_trickle_in_are_completed_by_the_call_that_looks_for_more(crew: Crew) -> None:
    count_calls(crew)
    crew.send("quick", 0)
    worker = crew.start("--no-janitors")
    for sent in range(1, 20):
        until(lambda least=sent: crew.completed("quick") == least, "the last one")  # type: ignore[misc]
        crew.send("quick", sent)
    until(lambda: crew.completed("quick") == 20, "all")
    assert worker.stop() == 0
    assert "delivered=20 failed=0 dead=0 deferred=0 handed_back=0 lost=0" in worker.says("stopped")
    until(lambda: crew.ask(CALLS, "message_next") >= 15, "calls that do both")


def test_messages_in_a_row_are_completed_by_the_call_that_leases_the_next(crew: Crew) -> None:
    count_calls(crew)
    ids = crew.send("one_by_one", *range(50))
    worker = crew.start("--no-janitors", "--batch", "1")
    until(lambda: crew.completed("one_by_one") == 50, "all")
    assert worker.stop() == 0
    assert [int(line[2]) for line in crew.traced()] == ids
    assert "delivered=50 failed=0 dead=0 deferred=0 handed_back=0 lost=0" in worker.says("stopped")
    until(lambda: crew.ask(CALLS, "message_next") >= 10, "calls that do both")


def test_completions_are_told_again_when_the_call_that_took_them_along_fails(crew: Crew) -> None:
    (id,) = crew.send("still", "x")
    worker = crew.start("--no-janitors")
    until(lambda: crew.traced(), "the delivery")
    with psycopg.connect(crew.dsn) as other:
        other.execute("select from menzil.lease where %s between lo_id and hi_id for update", (id,))
        crew.gate.touch()
        pid = until(lambda: crew.ask(WAITING), "a call that waits for the lease")
        crew.ask("select pg_terminate_backend(%s)", pid)
        worker.says("connection_lost link=lease")
        assert crew.completed("still") == 0
    until(lambda: crew.completed("still") == 1, "its end")
    assert worker.stop() == 0
    assert "delivered=1 failed=0 dead=0 deferred=0 handed_back=0 lost=0" in worker.says("stopped")
    assert len(crew.traced()) == 1


def test_a_worker_that_stops_during_the_call_settles_what_it_took_along(crew: Crew) -> None:
    ids = crew.send("still", "x", "y")
    worker = crew.start("--no-janitors")
    until(lambda: crew.traced(), "the first delivery")
    with psycopg.connect(crew.dsn) as other:
        other.execute("select from menzil.lease where %s between lo_id and hi_id for update", (ids[0],))
        crew.gate.touch()
        until(lambda: crew.ask(WAITING), "a call that waits for the lease")
        worker.send(15)
        worker.says("signal name=SIGTERM")
    assert worker.ends() == 0
    assert "lost=0" in worker.says("stopped")
    assert crew.completed("still") == len(crew.traced())
    assert crew.ask("select count(*) from menzil.queue where status = 'processing'") == 0


def test_nothing_is_lost_when_the_leasing_connection_breaks_again_and_again(crew: Crew) -> None:
    ids = crew.send("one_by_one", *range(150))
    crew.start("--batch", "2", "--lease", "1")
    for goal in range(10, 120, 10):
        until(lambda least=goal: crew.completed("one_by_one") >= least, "some more")  # type: ignore[misc]
        crew.ask(f"select count(pg_terminate_backend(pid)) {LEASES}")
    until(lambda: crew.completed("one_by_one") == len(ids), "all")
    assert set(Counter(int(line[2]) for line in crew.traced())) == set(ids)
    assert crew.ask("select count(*) from menzil.queue") == 0


def test_what_a_handler_sets_in_its_context_the_next_one_does_not_see(crew: Crew) -> None:
    ids = crew.send("contexts", *range(40))
    crew.drain("--concurrency", "2")
    assert sorted(int(line[2]) for line in crew.traced("unset")) == ids
    assert sorted(int(line[2]) for line in crew.traced("set")) == [id for id in ids if id % 2]
