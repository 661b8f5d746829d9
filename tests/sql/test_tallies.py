"""Tallies that workers hand over with their heartbeats: taken once, refused when they are not what they should be."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.queue import Queue

TWELVE = [97, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2]


def beat(queue: Queue, tally: Any) -> bool:
    return queue.one("select menzil.worker_heartbeat('w', p_instance => 'i', p_tally => %s)", Jsonb(tally))


@pytest.fixture
def worker(queue: Queue) -> Queue:
    """A worker that said hello."""
    queue.one("select menzil.worker_hello('w', 'here', 1, '1.0', p_instance => 'i')")
    return queue


def test_a_tally_is_taken_once(worker: Queue) -> None:
    for _ in range(2):
        assert beat(worker, {"number": 1, "try_ms": {"work": TWELVE}})
    assert worker.all("select try_ms from menzil.pulse_tally") == [(TWELVE,)]
    assert beat(worker, {"number": 2, "try_ms": {"work": TWELVE, "nobody": TWELVE}})
    assert len(worker.all("select try_ms from menzil.pulse_tally")) == 2


@pytest.mark.parametrize(
    "tally",
    [
        {},
        {"number": 1},
        {"try_ms": {"work": TWELVE}},
        {"number": "x", "try_ms": {"work": TWELVE}},
        {"number": 1, "try_ms": [TWELVE]},
        {"number": 1, "try_ms": {"work": TWELVE[:11]}},
        {"number": 1, "try_ms": {"work": [*TWELVE, 0]}},
        {"number": 1, "try_ms": {"work": 12}},
        {"number": 1, "try_ms": {"work": [*TWELVE[:11], "x"]}},
        {"number": 1, "try_ms": {"work": [*TWELVE[:11], -1]}},
        {"number": 1, "try_ms": {"work": [*TWELVE[:11], 10**12]}},
        {"number": 1, "try_ms": {"work": [TWELVE] * 12}},
        {"number": 1, "try_ms": {"work": TWELVE, "mail": None}},
    ],
    ids=json.dumps,
)
def test_what_is_no_tally_is_refused(worker: Queue, tally: Any) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        beat(worker, tally)
    assert worker.all("select 1 from menzil.pulse_tally") == []
