"""Plans carried out by real workers and commands, which are killed: the pace holds, nothing is lost or doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.acceptance.crew import Crew, until

MESSAGES = 2_000

pytestmark = pytest.mark.slow


def ended(crew: Crew, count: int = MESSAGES, *, dead: bool = False) -> None:
    """Messages of the channel `nothing` that were sent and completed, or died."""
    crew.send("nothing", "first")
    crew.ask("select cardinality(menzil.send_batch('nothing', array_fill('1'::jsonb, array[%s])))", count - 1)
    settle = (
        "select count(*) from (select array_agg(id) ids, array_agg(num_attempts) attempts"
        " from menzil.message_dequeue(60000, 1000) having count(*) > 0) d cross join lateral "
    )
    settle += (
        "menzil.message_fail(d.ids, d.attempts, array_fill('[PERMANENT] no'::text, array[cardinality(d.ids)]))"
        if dead
        else "menzil.message_complete(d.ids, d.attempts)"
    )
    until(lambda: crew.ask(settle) == 0 and crew.ask("select count(*) from menzil.queue") == 0, "all ended")


def begin(crew: Crew, kind: str, rate: float | None = None) -> int:
    number: int = crew.ask('select menzil.plan_create(%s, \'{"channel": "nothing"}\', %s::float8)', kind, rate)
    crew.ask("select menzil.plan_run(%s)::text", number)
    return number


def plan(crew: Crew, column: str, number: int) -> Any:
    return crew.ask(f"select {column} from menzil.plans where id = %s", number)


def command(crew: Crew, *words: str) -> subprocess.Popen[bytes]:
    """A real `menzil` command."""
    return subprocess.Popen(
        [sys.executable, "-m", "menzil", *words],
        env={**os.environ, **crew.env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def most_in_a_second(moments: list[datetime]) -> int:
    """The most that fall into any second, wherever it begins."""
    moments.sort()
    most = first = 0
    for last, moment in enumerate(moments):
        while moments[first] <= moment - timedelta(seconds=1):
            first += 1
        most = max(most, last - first + 1)
    return most


def copies(crew: Crew, column: str = "replay_of") -> tuple[int, int]:
    """How many messages were made, and of how many originals."""
    row = crew.conn.execute(
        f"select count(*), count(distinct {column}) from menzil.message where {column} is not null"
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def test_replay_of_2000_at_100_a_second_has_never_more_than_110_due_in_any_second(crew: Crew) -> None:
    """Two workers and a command step it at the same time, and one of the workers is killed on the way."""
    ended(crew)
    number = begin(crew, "replay", 100)
    first = crew.start(app=None)
    until(lambda: plan(crew, "done", number) > 0, "the plan begins")
    first.kill()
    crew.start(app=None)
    command(crew, "plan", "run", str(number), "--here").wait(60)
    until(lambda: plan(crew, "done", number) == MESSAGES, "everything is made")
    rows = crew.conn.execute("select scheduled_at from menzil.message where replay_of is not null").fetchall()
    assert len(rows) == MESSAGES
    assert 90 <= most_in_a_second([at for (at,) in rows]) <= 110
    assert copies(crew) == (MESSAGES, MESSAGES)


def test_plan_that_is_stopped_at_half_and_taken_back_leaves_only_what_was_leased(crew: Crew) -> None:
    ended(crew)
    crew.start("--concurrency", "5")
    number = begin(crew, "replay", 150)
    replayed = "select count(*) from menzil.archive where replay_of is not null and status = 'completed'"
    until(lambda: crew.ask(replayed) >= MESSAGES // 2, "half of it is delivered")
    assert command(crew, "plan", "stop", str(number), "--take-back").wait(60) == 0
    until(lambda: crew.ask("select count(*) from menzil.queue") == 0, "what was leased ends")
    until(lambda: not crew.ask("select takes_back from menzil.plan where id = %s", number), "all is taken back")
    delivered, taken = crew.ask(replayed), plan(crew, "taken_back", number)
    assert plan(crew, "status", number) == "stopped"
    assert MESSAGES // 2 <= delivered < MESSAGES
    assert delivered + taken == plan(crew, "done", number) == copies(crew)[1]
    assert crew.ask("select count(*) from menzil.archive where replay_of is not null and status = 'cancelled'") == taken
    outcome: dict[str, Any] = dict(crew.conn.execute("select * from menzil.plan_outcome(%s)", [number]).fetchall())
    assert outcome == {"completed": delivered, "taken_back": taken}


@pytest.mark.parametrize("kind", ["redrive", "replay"])
def test_plan_whose_steppers_are_killed_again_and_again_loses_and_doubles_nothing(crew: Crew, kind: str) -> None:
    """Commands and workers that step are killed, and so are the sessions of those that are left."""
    count = 5 * MESSAGES
    ended(crew, count, dead=kind == "redrive")
    number = begin(crew, kind)
    dice = random.Random(7)
    throw_out = (
        "select count(pg_terminate_backend(pid)) from pg_stat_activity"
        " where datname = current_database() and query ~ 'plan_step|job_run' and pid <> pg_backend_pid()"
    )
    killed = 0
    ends = time.monotonic() + 120
    while plan(crew, "status", number) == "running":
        assert time.monotonic() < ends, "the plan does not end"
        stepping = command(crew, "plan", "run", str(number), "--here")
        before = plan(crew, "done", number)
        # At a moment of its work: it has made something, and goes on.
        until(lambda made=before, gone=stepping.poll: plan(crew, "done", number) > made or gone() is not None, "a step")  # type: ignore[misc]
        if dice.random() < 0.5:
            killed += crew.ask(throw_out)
        if stepping.poll() is None:
            stepping.send_signal(signal.SIGKILL)
            killed += 1
        stepping.wait(30)
    assert killed >= 3
    assert copies(crew, f"{kind}_of") == (count, count)
    assert (plan(crew, "done", number), plan(crew, "skipped", number)) == (count, 0)
    assert crew.ask("select count(*) from menzil.queue") == count


def test_worker_that_is_killed_while_it_steps_loses_and_doubles_nothing(crew: Crew) -> None:
    count = 5 * MESSAGES
    ended(crew, count, dead=True)
    number = begin(crew, "redrive")
    for _ in range(3):
        worker = crew.start(app=None)
        before = plan(crew, "done", number)
        until(lambda made=before: plan(crew, "done", number) > made or plan(crew, "status", number) == "done", "a step")  # type: ignore[misc]
        worker.kill()
    crew.start(app=None)
    until(lambda: plan(crew, "status", number) == "done", "the end of the plan")
    assert copies(crew, "redrive_of") == (count, count)
    assert crew.ask("select count(*) from menzil.dlq where status = 'failed'") == 0
