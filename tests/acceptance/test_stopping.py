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
    crew.send("wait", *"abc")
    worker = crew.start("--grace", "0.2")
    until(lambda: len(crew.traced()) == 2, "two deliveries")
    assert worker.stop() == 0
    assert "waiting_for=2" in worker.says("stopping")
    assert crew.traced("done") == []
    assert crew.ask("select count(*) from menzil.queue where status = 'pending' and retry_count = 0") == 3
    # Nobody has to wait for a lease to run out.
    assert crew.ask("select count(*) from menzil.message_dequeue(1000, 10, '{wait}')") == 3


def test_a_worker_that_is_asked_to_stop_lets_deliveries_finish_within_the_grace_period(crew: Crew) -> None:
    crew.send("wait", "a")
    worker = crew.start("--grace", "30")
    until(lambda: crew.traced(), "the delivery")
    worker.send(signal.SIGTERM)
    worker.says("stopping")
    crew.gate.touch()
    assert worker.ends() == 0
    assert (crew.completed("wait"), len(crew.traced("done"))) == (1, 1)


def test_a_second_signal_forces(crew: Crew) -> None:
    crew.send("wait", "a")
    worker = crew.start("--grace", "600")
    until(lambda: crew.traced(), "the delivery")
    worker.send(signal.SIGINT)
    worker.says("stopping")
    worker.send(signal.SIGTERM)
    assert worker.ends() == 0
    assert crew.ask(WAITING, "wait") == 1


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_worker_whose_terminal_is_closed_finishes_and_hands_back(crew: Crew, processes: str) -> None:
    crew.send("wait", "a")
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
    assert crew.completed("wait") == 1


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
    crew.send("endless", "a")
    worker = crew.start("--grace", "0")
    until(lambda: crew.traced(), "the delivery")
    began = monotonic()
    assert worker.stop() == 0
    assert monotonic() - began < 45
    assert crew.ask(WAITING, "endless") == 1


@pytest.mark.parametrize("channel", ["deaf", "lent"])
def test_a_handler_that_cannot_be_stopped_does_not_keep_the_worker(crew: Crew, channel: str) -> None:
    crew.send(channel, "a")
    worker = crew.start("--grace", "600")
    until(lambda: crew.traced(), "the delivery")
    worker.send(signal.SIGTERM)
    worker.says("stopping")
    worker.send(signal.SIGTERM)
    assert worker.ends() == 0
    assert crew.ask(WAITING, channel) == 1
    assert any("does_not_stop" in line for line in worker.lines) == (channel == "deaf")
    assert "destroyed" not in "".join(worker.lines)


def test_what_a_handler_left_to_a_thread_is_done_before_the_process_ends(crew: Crew) -> None:
    crew.send("left", "a")
    worker = crew.start("--once", ready=False)
    until(lambda: crew.completed("left") == 1, "the end of the message")
    worker.says("stopped")
    crew.gate.touch()
    assert worker.ends() == 0
    assert len(crew.traced("done")) == 1


def test_a_worker_says_that_it_is_there_and_that_it_left(crew: Crew) -> None:
    crew.send("wait", "a")
    worker = crew.start("--name", "anna", "--channels", "wait,quick")
    seen = "select row(channels, concurrency, stopped_at is null)::text from menzil.worker where name = 'anna'"
    assert crew.ask(seen) == '("{quick,wait}",102,t)'
    until(lambda: crew.traced(), "the delivery")
    crew.gate.touch()
    until(lambda: crew.completed("wait") == 1, "its end")
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
