"""Worker processes that run a load for some seconds. Started once: a measurement never waits for Python to start.

A load is a module-level function `(dsn, **options) -> step`; a step does one piece of work and returns its units.
"""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from bench import machine
from bench.loads.connections import cpu_seconds
from bench.pace import Pace, Track

Step = Callable[[], int]
Load = Callable[..., Step]

WARM_UP = 8  # steps before the clock starts: statements get prepared and their plans generic
DRY_AFTER = 20  # steps in a row that found nothing to do


class CrewError(Exception):
    """A worker failed; the message is its traceback."""


@dataclass(frozen=True)
class Job:
    """What one worker is asked to do."""

    load: Load
    dsn: str
    seconds: float
    warm_up: int
    options: dict[str, Any] = field(default_factory=dict)


class Crew:
    """A fixed number of processes, idle until they are given a job."""

    def __init__(self, size: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._workers = []
        self.foreign: list[float] = []  # what others used during each run, the server's own helpers among them
        for _ in range(size):
            ours, theirs = spawn.Pipe()
            process = spawn.Process(target=serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._workers.append((process, ours))

    def run(
        self, load: Load, dsn: str, seconds: float, *, workers: int = 1, warm_up: int = WARM_UP, **options: Any
    ) -> Pace:
        """Let so many workers run this load at the same time. Each is told its number as the option `worker`."""
        pipes = [pipe for _, pipe in self._workers[:workers]]
        for number, pipe in enumerate(pipes):
            pipe.send(Job(load, dsn, seconds, warm_up, {"worker": number, **options}))
        for pipe in pipes:
            _answer(pipe)  # ready
        before = machine.times()
        for pipe in pipes:
            pipe.send(None)  # go
        tracks: list[Track] = [_answer(pipe) for pipe in pipes]
        self.foreign.append(machine.others(before, sum(track.cpu for track in tracks)))
        return Pace(tracks)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _, pipe in self._workers:
            pipe.close()
        for process, _ in self._workers:
            process.join(timeout=5)
            if process.is_alive():
                process.terminate()


def _answer(pipe: Connection[Any, Any]) -> Any:
    try:
        answer = pipe.recv()
    except EOFError:
        raise CrewError("A worker process died.") from None
    if isinstance(answer, str):
        raise CrewError(answer)
    return answer


def serve(pipe: Connection[Any, Any]) -> None:
    """The life of a worker: one job after the other, until the other end of the pipe is gone."""
    while True:
        try:
            job = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            step = job.load(job.dsn, **job.options)
            for _ in range(job.warm_up):
                step()
            pipe.send(True)
            pipe.recv()
            pipe.send(_run(step, job.seconds))
        except (EOFError, KeyboardInterrupt):
            return
        except Exception:
            pipe.send(traceback.format_exc())


def _run(step: Step, seconds: float) -> Track:
    track = Track()
    dry = 0
    cpu = cpu_seconds()
    began = time.perf_counter()
    now = 0.0
    while now < seconds and dry < DRY_AFTER:
        units = step()
        now = time.perf_counter() - began
        dry = 0 if units else dry + 1
        track.ends.append(now)
        track.units.append(units)
    track.cpu = cpu_seconds() - cpu
    track.ran_dry = dry >= DRY_AFTER
    track.seconds = now if not track.ran_dry else _last_work(track)
    return track


def _last_work(track: Track) -> float:
    """When the last units moved: searching an empty queue is not part of the rate."""
    worked = [end for end, units in zip(track.ends, track.units, strict=True) if units]
    return worked[-1] if worked else 0.0
