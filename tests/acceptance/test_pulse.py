"""The pulse beside workers that work, fail, die and come back: it says what the archive says."""

from __future__ import annotations

import threading
from random import Random

import psycopg
import pytest

from tests.acceptance.crew import Crew, until
from tests.sql.pulsing import check, count, told, true
from tests.sql.queue import Queue


def consume(dsn: str, channel: str, done: threading.Event, seed: int) -> None:
    """A consumer in SQL, which also fails, defers and rolls back."""
    random = Random(seed)
    with psycopg.connect(dsn, autocommit=True) as conn:
        queue = Queue(conn)
        while not done.is_set():
            taken = queue.dequeue(random.choice([1, 7, 40]), [channel])
            done.wait(0.0 if taken else 0.05)
            for message in taken:
                what = random.random()
                with conn.transaction(force_rollback=what > 0.95):
                    if what < 0.7 or what > 0.95:
                        queue.complete(message)
                    elif what < 0.8:
                        queue.fail(message, "again", retry_after="0")
                    elif what < 0.9:
                        queue.fail(message, "[PERMANENT] no")
                    else:
                        queue.defer(message)


def produce(dsn: str, channels: list[str], rounds: int, seed: int) -> None:
    """A program that sends, in transactions that take their time and sometimes roll back."""
    random = Random(seed)
    with psycopg.connect(dsn, autocommit=True) as conn:
        queue = Queue(conn)
        for _ in range(rounds):
            with conn.transaction(force_rollback=random.random() < 0.2):
                for _ in range(random.randrange(1, 4)):
                    queue.send_batch(random.choice(channels), random.choice([1, 3, 50]))
                    conn.execute("select pg_sleep(%s)", [random.random() / 100])


@pytest.mark.slow
def test_the_pulse_of_workers_and_other_consumers_is_that_of_the_archive(crew: Crew) -> None:
    for channel in ("nothing", "mixed"):
        crew.send(channel, "fail", "defer", "x")
    crew.ask("select menzil.channel_set('sql')")
    first = crew.start("--lease", "1")
    done = threading.Event()
    consumers = [threading.Thread(target=consume, args=(crew.dsn, "sql", done, seed)) for seed in range(2)]
    senders = [
        threading.Thread(target=produce, args=(crew.dsn, ["nothing", "mixed", "sql"], 40, seed)) for seed in range(3)
    ]
    for thread in (*consumers, *senders):
        thread.start()
    # A job beside that of the workers, with small rounds, which dies again and again.
    with psycopg.connect(crew.dsn) as dying:
        while any(thread.is_alive() for thread in senders):
            dying.execute("select menzil._pulse(50)")
            dying.rollback() if Random().random() < 0.5 else dying.commit()
            if first.process.poll() is None and crew.completed("nothing") > 50:
                first.kill()
                crew.start("--lease", "1")
    until(lambda: not crew.ask("select exists (select from menzil.queue where channel <> 'sql')"), "the rest")
    done.set()
    for thread in consumers:
        thread.join()
    queue = Queue(crew.conn)
    for process in crew.processes:
        process.kill()
    # The server may notice late that a worker which was counting is gone.
    until(lambda: count(queue) or told(queue) == true(queue), "everything is counted")
    check(queue)
    assert queue.one("select count(*) from menzil.archive") > 200


def test_a_worker_hands_over_how_long_its_tries_took(crew: Crew) -> None:
    crew.send("mixed", *(["fail"] * 3 + ["defer"] * 2 + ["x"] * 5))
    worker = crew.start()
    until(lambda: crew.completed("mixed") == 10, "all completed")
    assert worker.stop() == 0
    queue = Queue(crew.conn)
    count(queue)
    check(queue)
    tried = "select coalesce(sum((select sum(n) from unnest(try_ms) n)), 0) from menzil.pulse where channel = 'mixed'"
    assert queue.one(tried) == 15
    assert queue.one("select count(*) from menzil.attempts") == 15
