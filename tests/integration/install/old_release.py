"""The SQL of release 0.1.0, out of the history of this repository, and a database full of everything it can hold."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

RELEASE = "50ca4df"
#: The last commit whose clients demand one schema number: menzil.schema_window came with the next.
BEFORE_THE_WINDOW = "6a9c0bc"
HOUR_MS = 3_600_000


def unpack(into: Path) -> Path:
    """Write the SQL tree of 0.1.0 below this directory and return its root."""
    return unpack_package(into, RELEASE) / "menzil/sql"


def unpack_package(into: Path, release: str) -> Path:
    """Write the package of this commit below this directory and return what PYTHONPATH needs."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("no git on this machine, and old releases are in the history of the repository")
    here = Path(__file__).parent
    done = subprocess.run([git, "-C", str(here), "rev-parse", "--show-toplevel"], capture_output=True, text=True)
    known = done.returncode == 0 and subprocess.run(
        [git, "-C", str(here), "cat-file", "-e", f"{release}^{{commit}}"], capture_output=True
    )
    if not known or known.returncode != 0:
        pytest.skip(f"this checkout has no history back to {release}; fetch it with `git fetch --unshallow`")
    top = done.stdout.strip()
    tar = subprocess.run([git, "-C", top, "archive", release, "src"], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        archive.extractall(into, filter="data")
    return into / "src"


class Hand:
    """Public functions that 0.1.0 and later releases have in common."""

    def __init__(self, conn: psycopg.Connection) -> None:
        self.conn = conn

    def all(self, query: str, *params: Any) -> list[Any]:
        with self.conn.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(query, params or None).fetchall()

    def one(self, query: str, *params: Any) -> Any:
        ((value,),) = self.all(query, *params)
        return value

    def do(self, query: str, *params: Any) -> None:
        self.conn.execute(query, params or None)

    def send(self, channel: str, payload: Any, **options: Any) -> int:
        named = "".join(f", p_{name} => %s" for name in options)
        values = [Jsonb(value) if isinstance(value, dict) else value for value in options.values()]
        return self.one(f"select menzil.send_with_options(%s, %s{named})", channel, Jsonb(payload), *values)

    def batch(self, channel: str, count: int) -> list[int]:
        return self.one("select menzil.send_batch(%s, %s)", channel, [Jsonb({"n": n}) for n in range(count)])

    def lease(self, channel: str, limit: int = 1, lock_ms: int = HOUR_MS, worker: str = "one") -> list[Any]:
        return self.all(
            "select id, num_attempts, payload, content, state, retry_count, headers, metadata, ordering_key, priority"
            " from menzil.message_dequeue(%s, %s, array[%s], %s)",
            lock_ms,
            limit,
            channel,
            worker,
        )

    def complete(self, *leases: Any) -> list[str]:
        query = "select outcome from menzil.message_complete(%s::bigint[], %s::bigint[])"
        tokens = [one.id for one in leases], [one.num_attempts for one in leases]
        return [row.outcome for row in self.all(query, *tokens)]

    def fail(self, lease: Any, error: str, retry_after: str | None = None) -> str:
        query = "select menzil.message_fail(%s, %s, %s, %s::interval)"
        return self.one(query, lease.id, lease.num_attempts, error, retry_after)

    def defer(self, lease: Any, wait: str, state: bytes | None = None) -> None:
        query = "select menzil.message_defer(%s, %s, clock_timestamp() + %s::interval, %s)"
        self.do(query, lease.id, lease.num_attempts, wait, state)


@dataclass
class Filled:
    """What a test must know of a filled database."""

    held: list[Any] = field(default_factory=list)  # leases that a worker still has
    plain: list[str] = field(default_factory=list)  # channels whose order is the same in both releases
    hurried: int = 0
    unarchived: int = 0
    bodiless: int = 0  # a dead letter whose month was dropped
    by_retry: list[int] = field(default_factory=list)  # the order in which channel retried gives its messages now


def older(hand: Hand, message: int, days: int) -> None:
    """Pretend that a waiting message was sent so many days ago. Its place in the lane moves with it."""
    for table in ("message", "ready"):
        moved = "due_at = due_at - %s * interval '1 day'"
        if table == "message":
            moved += f", created_at = created_at - {days} * interval '1 day'"
        hand.do(f"update menzil.{table} set {moved} where id = %s", days, message)


def fill(conn: psycopg.Connection) -> Filled:
    """Fill a database of 0.1.0 through its public functions."""
    hand, filled = Hand(conn), Filled()
    for part in (_waiting, _ended, _keys, _came_back, _dead, _idempotent, _limits, _circuits, _schedules, _headless):
        part(hand, filled)
    return filled


def _waiting(hand: Hand, filled: Filled) -> None:
    for name in ("plain", "mixed", "future", "ttl"):
        hand.do("select menzil.channel_set(%s)", name)
    filled.plain += ["plain", "mixed", "ttl"]
    hand.batch("plain", 300)
    for n in range(40):  # ids with gaps, and several lanes
        hand.send("mixed", {"n": n}, priority=n % 4, headers={"h": str(n)}, metadata={"m": n})
        hand.send("plain", [n], correlation_id="00000000-0000-0000-0000-000000000001")
    hand.do("select menzil.message_create('mixed', p_content => '\\x00ff'::bytea)")
    hand.send("mixed", "early", scheduled_at="2020-02-02 02:02:02+00")
    for n in range(5):
        hand.send("future", {"n": n}, scheduled_at="2999-01-01 00:00:00+00")
    filled.hurried = hand.send("future", "hurried", scheduled_at="2999-01-01 00:00:00+00")
    assert hand.one("select menzil.message_retry_now(%s)", filled.hurried)
    hand.send("ttl", "long", expires_at="2999-01-01 00:00:00+00")
    older(hand, hand.send("plain", "of last month"), 40)
    older(hand, hand.send("plain", "of a month without a partition"), 500)
    filled.held += hand.lease("plain", 3) + hand.lease("plain", 2, worker="two")


def _ended(hand: Hand, filled: Filled) -> None:
    hand.do("select menzil.channel_set('ended')")
    for n in range(120):
        message = hand.send("ended", {"n": n}, priority=n % 3)
        if n % 40 == 0:
            older(hand, message, n)
    hand.complete(*hand.lease("ended", 50))
    rest = hand.lease("ended", 50, worker="two")
    hand.complete(*rest[:20])
    hand.do(
        "select menzil.message_complete(%s, %s, %s)",
        [one.id for one in rest[20:]],
        [one.num_attempts for one in rest[20:]],
        [Jsonb({"status": 200, "n": n}) if n % 3 else None for n in range(len(rest) - 20)],
    )
    hand.complete(*hand.lease("ended", 50))
    hand.send("ended", "deferred, without a word")
    hand.defer(hand.lease("ended")[0], "0")
    hand.complete(*hand.lease("ended"))
    cancelled = hand.send("ended", "cancelled")
    assert hand.one("select menzil.message_cancel(%s)", cancelled)
    hand.send("ended", "expired", expires_at="2999-01-01 00:00:00+00")
    hand.do("update menzil.message set expires_at = clock_timestamp() where payload = '\"expired\"'")
    assert hand.one("select menzil.mark_expired_messages()") == 1
    hand.one("select menzil.replay_message(min(id)) from menzil.archive")


def _keys(hand: Hand, filled: Filled) -> None:
    for name in ("keys", "busy keys"):
        hand.do("select menzil.channel_set(%s)", name)
        for n in range(4):
            for key in ("a", "b", "c"):
                hand.send(name, {"n": n, "key": key}, ordering_key=key, priority=n % 2)
    filled.plain.append("keys")
    first = {one.ordering_key: one for one in hand.lease("busy keys", 3)}
    filled.held.append(first["a"])
    hand.fail(first["b"], "[RETRYABLE] later", "1 hour")
    hand.complete(first["c"])  # its next head is not raised yet


def _came_back(hand: Hand, filled: Filled) -> None:
    for name in ("deferred", "retried"):
        hand.do("select menzil.channel_set(%s)", name)
    filled.plain.append("deferred")
    hand.batch("deferred", 4)
    one, two, three = hand.lease("deferred", 3)
    hand.defer(one, "0", b"half way")
    hand.defer(two, "-1 minute", b"quarter")
    hand.defer(three, "1 day", b"tomorrow")
    messages = hand.batch("retried", 6)
    first, second, third, fourth, fifth = hand.lease("retried", 5)
    for lease in (first, second, fifth):
        hand.fail(lease, "[RETRYABLE] once", "0")
    hand.fail(third, "[RETRYABLE] much later", "1 hour")
    filled.held.append(fourth)
    again = {lease.id: lease for lease in hand.lease("retried", 10, lock_ms=1)}
    hand.fail(again[first.id], "[RETRYABLE] twice", "0")
    hand.complete(again[fifth.id])
    hand.do("select pg_sleep_until(max(unlock_at)) from menzil.lease where unlock_at < now() + interval '1 s'")
    assert hand.one("select menzil.recover_stale_messages()") == 2
    filled.by_retry = [first.id, second.id, messages[5]]


def _dead(hand: Hand, filled: Filled) -> None:
    hand.do("select menzil.channel_set('block', p_on_dead => 'block')")
    hand.do("select menzil.channel_set('letters')")
    for n in range(3):
        hand.send("block", {"n": n}, ordering_key="k")
    assert hand.fail(hand.lease("block")[0], "[PERMANENT] no") == "dead"
    hand.batch("letters", 3)
    for lease in hand.lease("letters", 3):
        hand.defer(lease, "0", b"kept state")
    for lease in hand.lease("letters", 3):
        assert hand.fail(lease, f"[PERMANENT] never {lease.id}") == "dead"
    hand.do("select menzil.redrive_message(min(id)) from menzil.dlq where endpoint_name = 'letters'")
    filled.plain.append("letters")
    # A dead letter that has outlived its month.
    hand.do("select menzil.channel_set('old letters')")
    filled.bodiless = hand.send("old letters", {"kept": "here"}, headers={"x": "y"})
    older(hand, filled.bodiless, 800)
    assert hand.fail(hand.lease("old letters")[0], "[PERMANENT] long ago") == "dead"
    assert hand.one("select menzil.cleanup_old_archive_partitions()") >= 1
    assert hand.all("select from menzil.archive where id = %s", filled.bodiless) == []


def _idempotent(hand: Hand, filled: Filled) -> None:
    hand.do("select menzil.channel_set('once')")
    for key in ("completed", "failed", "cancelled", "unarchived"):
        message = hand.send("once", {"key": key}, idempotency_key=key)
        if key == "cancelled":
            hand.do("select menzil.message_cancel(%s)", message)
        elif key == "failed":
            hand.fail(hand.lease("once")[0], "[PERMANENT] no")
        elif key == "unarchived":
            filled.unarchived = message
            hand.do("select menzil.set_setting('archive_completed', 'false')")
            hand.complete(*hand.lease("once"))
            hand.do("select menzil.set_setting('archive_completed', 'true')")
        else:
            hand.complete(*hand.lease("once"))
    hand.send("once", {"key": "live"}, idempotency_key="live")


def _limits(hand: Hand, filled: Filled) -> None:
    hand.do("select menzil.channel_set('limited', p_max_concurrency => 2)")
    hand.do("select menzil.channel_set('sized', p_max_size => 5)")
    hand.do("select menzil.channel_set('paused')")
    for name in ("limited", "sized", "paused"):
        hand.batch(name, 5)
    filled.held += hand.lease("limited", 5)
    hand.complete(*hand.lease("sized", 2))
    hand.do("select menzil.channel_pause('paused')")


def _circuits(hand: Hand, filled: Filled) -> None:
    hand.do("select menzil.set_setting('circuit_breaker_threshold', '2')")
    hand.do("select menzil.set_setting('circuit_breaker_cooldown', '3600')")
    for name in ("broken", "tried"):
        hand.do("select menzil.create_endpoint(%s, 'http', %s)", name, Jsonb({"url": f"https://example.com/{name}"}))
        hand.batch(name, 5)
        for lease in hand.lease(name, 2):
            hand.fail(lease, "[RETRYABLE] 503", "1 hour")
        assert hand.lease(name) == []  # the circuit is open
    # The probe of one of them is settled, and no dequeue has heard of it.
    for table, column in (("gate", "probe_at"), ("lane", "next_at")):
        hand.do(f"""update menzil.{table} set {column} = clock_timestamp()
                     where channel_id = (select id from menzil.channel where name = 'tried')""")
    assert hand.complete(*hand.lease("tried")) == ["settled"]


def _schedules(hand: Hand, filled: Filled) -> None:
    hand.do("select menzil.channel_set('ticks')")
    hand.do("select menzil.schedule_create('tick', '* * * * *', 'UTC', 'ticks', '{\"tick\": 1}')")
    hand.do("update menzil.schedule set next_at = date_trunc('minute', clock_timestamp())")
    assert hand.one("select menzil.schedule_fire_due()") == 1
    (first,) = hand.all("select id, ended_xid::text as xid from menzil.archive order by ended_xid, id limit 1")
    hand.do("select menzil.feed_advance('reader', 'archive', %s, %s)", first.xid, first.id)


def _headless(hand: Hand, filled: Filled) -> None:
    # Last, because any dequeue would find out that the key needs a head.
    hand.do("select menzil.channel_set('headless')")
    for n in range(3):
        hand.send("headless", {"n": n}, ordering_key="k")
    filled.plain.append("headless")
