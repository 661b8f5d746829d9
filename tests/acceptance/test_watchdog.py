"""An async handler that blocks the loop is named."""

from __future__ import annotations

from tests.acceptance.crew import Crew, until


def test_a_handler_that_blocks_the_loop_is_named(crew: Crew) -> None:
    (id,) = crew.send("still", "a")
    worker = crew.start()
    line = worker.says("loop_blocked")
    assert f"channel=still id={id} seconds=" in line
    assert 'at="still, ' in line
    assert "apps.py:" in line
    assert "asyncio.to_thread" in line
    crew.gate.touch()
    worker.says("loop_runs_again after_seconds=")
    until(lambda: crew.completed("still") == 1)


def test_a_plain_function_that_takes_long_is_not_called_blocking(crew: Crew) -> None:
    crew.send("stuck", "a")
    worker = crew.start()
    until(lambda: crew.traced("begun", "stuck"))
    # The lease of two seconds is kept by heartbeats, so the loop has run for more than the watchdog's patience.
    before = crew.ask("select max(unlock_at) from menzil.lease")
    until(lambda: (crew.ask("select max(unlock_at) from menzil.lease") - before).total_seconds() > 2)
    crew.gate.touch()
    until(lambda: crew.completed("stuck") == 1)
    assert not [line for line in worker.lines if "loop_blocked channel=stuck" in line]
