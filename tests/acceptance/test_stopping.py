"""Workers that are asked to stop: what they hold is handed back at once and costs no retry."""

from __future__ import annotations

import os
import signal
from time import monotonic

import pytest

from tests.acceptance.crew import Crew, until

WAITING = (
    "select count(*) from menzil.queue"
    " where channel = %s and status = 'pending' and retry_count = 0 and num_attempts = 1 and last_error is null"
)


def test_a_worker_that_is_asked_to_stop_hands_back_what_does_not_finish(crew: Crew) -> None:
    crew.send("hold", *"abc")
    worker = crew.start("--grace", "0.2")
    until(lambda: len(crew.traced()) == 2, "two deliveries")
    assert worker.stop() == 0
    assert "waiting_for=2" in worker.says("stopping")
    assert crew.traced("done") == []
    assert crew.ask("select count(*) from menzil.queue where status = 'pending' and retry_count = 0") == 3
    # Nobody has to wait for a lease to run out.
    assert crew.ask("select count(*) from menzil.message_dequeue(1000, 10, '{hold}')") == 3


def test_a_worker_that_is_asked_to_stop_lets_deliveries_finish_within_the_grace_period(crew: Crew) -> None:
    crew.send("hold", "a")
    worker = crew.start("--grace", "30")
    until(lambda: crew.traced(), "the delivery")
    worker.send(signal.SIGTERM)
    worker.says("stopping")
    crew.gate.touch()
    assert worker.ends() == 0
    assert (crew.completed("hold"), len(crew.traced("done"))) == (1, 1)


def test_a_second_signal_forces(crew: Crew) -> None:
    crew.send("hold", "a")
    worker = crew.start("--grace", "600")
    until(lambda: crew.traced(), "the delivery")
    worker.send(signal.SIGINT)
    worker.says("stopping")
    worker.send(signal.SIGTERM)
    assert worker.ends() == 0
    assert crew.ask(WAITING, "hold") == 1


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_worker_whose_terminal_is_closed_finishes_and_hands_back(crew: Crew, processes: str) -> None:
    crew.send("hold", "a")
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # these tests may run under nohup
    try:
        worker = crew.start("--grace", "600", "--processes", processes)
    finally:
        signal.signal(signal.SIGHUP, before)
    until(lambda: crew.traced(), "the delivery")
    worker.send(signal.SIGHUP)
    worker.says("stopping")
    worker.send(signal.SIGHUP)  # the shell sends one too: it does not force
    until(lambda: sum("name=SIGHUP" in line for line in worker.lines) == 2)
    crew.gate.touch()
    assert worker.ends() == 0
    assert crew.completed("hold") == 1


def test_a_worker_under_nohup_goes_on_when_its_terminal_is_closed(crew: Crew) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does, and a process that is started keeps it
    try:
        worker = crew.start()
    finally:
        signal.signal(signal.SIGHUP, before)
    worker.says("started")
    worker.send(signal.SIGHUP)
    crew.send("quick", "a")
    until(lambda: crew.completed("quick") == 1)
    assert worker.stop() == 0


def test_a_handler_in_a_thread_that_never_ends_does_not_keep_the_worker(crew: Crew) -> None:
    crew.send("stuck", "a")
    worker = crew.start("--grace", "0")
    until(lambda: crew.traced(), "the delivery")
    began = monotonic()
    assert worker.stop() == 0
    assert monotonic() - began < 45
    assert crew.ask(WAITING, "stuck") == 1


def test_a_worker_says_that_it_is_there_and_that_it_left(crew: Crew) -> None:
    crew.send("hold", "a")
    worker = crew.start("--name", "anna", "--channels", "hold,quick")
    seen = "select row(channels, concurrency, stopped_at is null)::text from menzil.worker where name = 'anna'"
    assert crew.ask(seen) == '("{hold,quick}",102,t)'
    until(lambda: crew.traced(), "the delivery")
    crew.gate.touch()
    until(lambda: crew.completed("hold") == 1, "its end")
    assert worker.stop() == 0
    gone = (
        "select row(delivered, failed, in_flight, stopped_at is not null)::text from menzil.worker where name = 'anna'"
    )
    assert crew.ask(gone) == "(1,0,0,t)"


def test_a_child_that_dies_is_started_again_and_a_signal_reaches_all(crew: Crew) -> None:
    parent = crew.start("--processes", "2", "--name", "crew", "--channels", "quick", ready=False)
    alive = "select count(*) from menzil.worker where stopped_at is null and name = any (array['crew-1', 'crew-2'])"
    until(lambda: crew.ask(alive) == 2, "both")
    pid = crew.ask("select pid from menzil.worker where name = 'crew-2'")
    os.kill(pid, signal.SIGKILL)
    parent.says("child_died place=2")
    until(lambda: crew.ask("select pid <> %s from menzil.worker where name = 'crew-2'", pid), "its successor")
    ids = crew.send("quick", *range(20))
    until(lambda: crew.completed("quick") == len(ids), "the work")
    assert parent.stop() == 0
    assert crew.ask("select count(*) from menzil.worker where stopped_at is not null") == 2


def test_children_end_when_their_parent_is_killed(crew: Crew) -> None:
    parent = crew.start("--processes", "2", ready=False)
    until(lambda: crew.ask("select count(*) from menzil.worker where stopped_at is null") == 2, "both")
    parent.kill()
    until(lambda: crew.ask("select count(*) from menzil.worker where stopped_at is not null") == 2, "their end")
