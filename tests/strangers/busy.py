"""A busy queue: senders and consumers of every kind, at work until they are told to stop."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg

CHANNELS = 8
LEASE = "select id, num_attempts, channel, ordering_key from menzil.message_dequeue(60000, 200)"
COMPLETE = "select id from menzil.message_complete(%s::bigint[], %s::bigint[]) where outcome = 'settled'"
FAIL = "select menzil.message_fail(%s::bigint[], %s::bigint[], %s::text[], %s::interval[])"
NARROW = "c7"  # five in flight at most, and a size limit


def prepare(dsn: str) -> None:
    """Channels whose messages are tried again and again: nothing becomes a dead letter."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select menzil.set_setting('default_max_retries', '1000')")
        for n in range(CHANNELS):
            conn.execute("select menzil.channel_set(%s)", [f"c{n}"])
        conn.execute("select menzil.channel_set(%s, 5, 1000000)", [NARROW])


@dataclass
class Busy:
    """What a crowd has done so far: messages whose send, end or cancel was acknowledged."""

    dsn: str
    stop: threading.Event = field(default_factory=threading.Event)
    acknowledged: set[int] = field(default_factory=set)
    completed: set[int] = field(default_factory=set)
    cancelled: set[int] = field(default_factory=set)
    errors: list[BaseException] = field(default_factory=list)

    def until(self, completed: int) -> None:
        """Wait until so many messages were completed, or a sender or consumer failed."""
        deadline = time.monotonic() + 60
        while len(self.completed) < completed and not self.errors:
            assert time.monotonic() < deadline, f"only {len(self.completed)} messages were completed"
            time.sleep(0.02)

    def send(self, seed: int) -> None:
        chance = random.Random(seed)
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            while not self.stop.is_set():
                sent: list[int] = []
                cancelled: list[int] = []
                with conn.transaction():
                    for _ in range(chance.choice((1, 1, 1, 4))):
                        sent += self._send_some(conn, chance)
                    if chance.random() < 0.05:
                        one = chance.choice(sent)
                        if _one(conn, "select menzil.message_cancel(%s)", [one]):
                            cancelled.append(one)
                    if chance.random() < 0.02:
                        time.sleep(0.2)  # its lines are committed late
                self.acknowledged.update(sent)
                self.cancelled.update(cancelled)
                time.sleep(0.002)

    def _send_some(self, conn: psycopg.Connection, chance: random.Random) -> list[int]:
        channel = f"c{chance.randrange(CHANNELS)}"
        what = chance.random()
        if what < 0.5:
            return [_one(conn, "select menzil.send(%s, '{}')", [channel])]
        if what < 0.7:
            return _one(conn, "select menzil.send_batch(%s, array_fill('{}'::jsonb, array[7]))", [channel])
        if what < 0.85:
            key = f"k{chance.randrange(5)}"
            return [_one(conn, "select menzil.send_with_options(%s, '{}', p_ordering_key := %s)", [channel, key])]
        query = "select menzil.send_with_options(%s, '{}', %s, p_scheduled_at := now() + %s * interval '1 ms')"
        return [_one(conn, query, [channel, chance.randrange(3), chance.randrange(500)])]

    def consume(self, seed: int) -> None:
        chance = random.Random(seed)
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            while not self.stop.is_set():
                query = "select id, num_attempts from menzil.message_dequeue(1500, %s)"
                rows = conn.execute(query, [chance.choice((1, 5, 30))]).fetchall()
                if not rows:
                    time.sleep(0.003)
                    continue
                tokens = [[row[0] for row in rows], [row[1] for row in rows]]
                what = chance.random()
                if what < 0.9:
                    self.completed.update(row[0] for row in conn.execute(COMPLETE, tokens).fetchall())
                elif what < 0.98:
                    conn.execute(FAIL, [*tokens, ["no"] * len(rows), ["100 ms"] * len(rows)])
                # Otherwise the lease is lost.

    @contextmanager
    def at_work(self, senders: int = 2, consumers: int = 3) -> Iterator[None]:
        """Let them work; afterwards none of them may have failed."""
        jobs = [(self.send, n) for n in range(senders)] + [(self.consume, 100 + n) for n in range(consumers)]

        def run(job, seed: int) -> None:
            try:
                job(seed)
            except BaseException as error:
                self.errors.append(error)
                self.stop.set()

        threads = [threading.Thread(target=run, args=job, daemon=True) for job in jobs]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stop.set()
            for thread in threads:
                thread.join(30)


def _one(conn: psycopg.Connection, query: str, values: list[object]):
    row = conn.execute(query, values).fetchone()
    assert row is not None
    return row[0]


LIVE = """select id from menzil.message
          except select unnest(coalesce(d.ids, array(select generate_series(d.lo_id, d.hi_id)))) from menzil.done d"""


def live(conn: psycopg.Connection) -> set[int]:
    """The messages that must still come, from bodies and ends alone."""
    return {row[0] for row in conn.execute(LIVE).fetchall()}


def drain(conn: psycopg.Connection, wanted: set[int], seconds: float = 60) -> set[int]:
    """Lease and complete until everything that is wanted has come, and a little longer for what is not.

    A lease that ran out while no consumer was there is found by a deep look, due within five seconds at the latest.
    """
    got: list[int] = []
    keys: dict[tuple[str, str], list[int]] = {}
    deadline = time.monotonic() + seconds
    conn.execute("set synchronous_commit = off")
    while time.monotonic() < deadline:
        rows = conn.execute(LEASE).fetchall()
        if rows:
            conn.execute(COMPLETE, [[row[0] for row in rows], [row[1] for row in rows]])
            got += [row[0] for row in rows]
            for row in rows:
                if row[3] is not None:
                    keys.setdefault((row[2], row[3]), []).append(row[0])
        elif len(got) >= len(wanted):
            break
        else:
            time.sleep(0.01)
    assert len(got) == len(set(got)), "a message came twice"
    # The first of a key may have been its head before a message with a lower id was committed.
    assert [key for key, ids in keys.items() if ids[1:] != sorted(ids[1:])] == [], "the order of a key was broken"
    return set(got)
