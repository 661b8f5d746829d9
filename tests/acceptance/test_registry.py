"""The registry of workers as a person sees it who gave two workers one name."""

from __future__ import annotations

from tests.acceptance.crew import Crew, until


def alive(crew: Crew) -> int:
    count: float = crew.ask("select metric_value from menzil.metrics() where metric_name = 'workers_alive'")
    return int(count)


def test_two_workers_of_one_name_do_not_hide_each_other(crew: Crew) -> None:
    crew.send("quick", "a")
    first, second = (crew.start("--name", "shop") for _ in range(2))
    pids = crew.conn.execute("select pid from menzil.get_worker_status() where worker = 'shop' order by pid").fetchall()
    assert [pid for (pid,) in pids] == sorted([first.pid, second.pid])
    assert alive(crew) == 2
    first.stop()
    assert alive(crew) == 1
    until(lambda: crew.completed("quick") == 1)
    second.stop()
    assert alive(crew) == 0
