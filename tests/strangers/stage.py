"""A queue at work, strangers that hold transactions beside it, and who waited for them."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

from tests.strangers.crowd import HOOKS, PLAIN, SESSIONS, Crowd
from tests.strangers.diary import Gap, Key
from tests.strangers.guest import Guest, looping
from tests.strangers.process import HANDLED
from tests.strangers.verdict import AFTERWARDS, HOLD, PATIENCE, Held, judged
from tests.strangers.words import Stranger

PASSWORD = "between strangers"
ROLES = {
    "admin": ("menzil_admin", ""),
    "application": ("menzil_application", ""),
    "careful_application": ("menzil_application", "repeatable read"),
    "worker": ("menzil_worker", ""),
    "monitor": ("menzil_monitor", ""),
    "careful_monitor": ("menzil_monitor", "repeatable read"),
    "pipeline": ("menzil_pipeline", ""),
    "outsider": ("", ""),
}

# Who waits for whom, and for which lock.
_WAITING = """
  select a.application_name, left(a.query, 100), b.application_name, left(b.query, 200),
         coalesce((select string_agg(distinct concat_ws(' ', l.relation::regclass::text, l.locktype, l.mode), ', ')
                     from pg_locks l where l.pid = a.pid and (not l.granted or l.locktype = 'tuple')), '?'),
         extract(epoch from clock_timestamp() - a.query_start)::float
    from pg_stat_activity a cross join lateral unnest(pg_blocking_pids(a.pid)) p(pid)
    left join pg_stat_activity b on b.pid = p.pid
   where a.datname = current_database()
"""
# Channels of which a lane or the gate is locked now.
_HELD = """
  with lane as materialized (
         select distinct on (l.channel_id, l.rank) l.ctid as at, l.channel_id from menzil.lane l
          order by l.channel_id, l.rank, l.v desc),
       free as materialized (
         select l.ctid as at from menzil.lane l
          where l.ctid = any (array(select n.at from lane n)) for update skip locked),
       gate as materialized (select g.channel_id from menzil.gate g for update skip locked)
  select c.name from menzil.channel c
   where c.id in (select n.channel_id from lane n where n.at not in (select f.at from free f))
      or c.id not in (select g.channel_id from gate g)
"""
# Work for every job and for the chores of a dequeue, all the time. Rows that a stranger holds are left alone.
_KEEP_BUSY = """
  with j as (select j.name from menzil.job j for update skip locked),
       s as (select s.id from menzil.schedule s for update skip locked),
       due as (update menzil.job set next_at = clock_timestamp() where name in (select j.name from j))
  update menzil.schedule set next_at = clock_timestamp() where id in (select s.id from s) and name = 'often'
"""


class Stage:
    """Furnishes a database, lets the crowd work in it, and holds strangers beside it."""

    def __init__(self, dsn: str, empty: str) -> None:
        self.dsn = dsn
        self.empty = empty  # a database of the same server in which no message passes
        self.admin = psycopg.connect(dsn, autocommit=True)
        self.dsns = {name: make_conninfo(dsn, user=f"mz_{name}", password=PASSWORD) for name in ROLES} | {"owner": dsn}
        self._furnish()
        self.crowd = Crowd(self.dsns)
        self._names = itertools.count(1)
        self._waits: dict[tuple[str, ...], float] = {}
        self._closing = threading.Event()
        self._observer = threading.Thread(target=self._observe, daemon=True)

    def one(self, text: str, *params: Any) -> Any:
        row = self.admin.execute(text, params or None).fetchone()
        assert row is not None
        return row[0]

    @contextmanager
    def open(self) -> Iterator[Stage]:
        self.crowd.start()
        self._observer.start()
        try:
            missing = self.goes_on(time.monotonic(), 60)
            assert not missing, f"the crowd does not come: {missing}, {self.crowd.diary.errors()}"
            yield self
        finally:
            self.crowd.stop()
            self._closing.set()
            self._observer.join(10)
            self.admin.close()

    def hold(self, strangers: Sequence[Stranger], seconds: float = HOLD) -> list[str]:
        """Hold these strangers at the same time. Returns every stall that the table does not allow."""
        return judged(partial(self._hold, strangers), partial(self._elsewhere, strangers), seconds)

    def _elsewhere(self, strangers: Sequence[Stranger], seconds: float) -> dict[Key, float]:
        """How long each role goes without a success while these strangers are busy in another database.

        Commands that run over and over take the processor as well. This tells it apart from what they lock.
        """
        with ExitStack() as stack:
            for stranger in strangers:
                if stranger.loop:
                    stack.enter_context(looping(stranger, self.empty))
            begin = time.monotonic()
            time.sleep(seconds)
            end = time.monotonic()
        return {Key(*key): self.crowd.diary.gap(Key(*key), begin, end).seconds for key in self.crowd.expected()}

    def _hold(self, strangers: Sequence[Stranger], seconds: float, limits: dict[Key, float]) -> Held:
        guests = [Guest(stranger, self, next(self._names)) for stranger in strangers]
        allowed = {key for guest in guests for key in guest.allowed()}
        not_ready = self.goes_on(time.monotonic(), 60)
        assert not not_ready, f"before it began: {not_ready}, {self.crowd.diary.errors()}"
        self._waits.clear()
        self.crowd.diary.errors()
        with ExitStack() as stack:
            begin = time.monotonic()
            for guest in guests:
                stack.enter_context(guest.open())
            while time.monotonic() < begin + seconds:
                for guest in guests:
                    guest.again()
                time.sleep(0.05)
            end = time.monotonic()
            if any(guest.stranger.holds_lanes for guest in guests):
                allowed |= self._of_held_channels()
        gaps = [self.crowd.diary.gap(Key(*key), begin, end) for key in self.crowd.expected()]
        stalls = [gap for gap in gaps if gap.seconds > limits.get(gap.key, PATIENCE) and gap.key not in allowed]
        blames, evidence = self._blames(strangers, stalls), self.evidence()
        faults = self.crowd.diary.errors()
        late = self.goes_on(time.monotonic(), AFTERWARDS)
        for guest in guests:
            guest.leave()
        return Held(stalls, faults + [f"after it had ended: {gap}" for gap in late], blames, evidence)

    def survive(self, stranger: Stranger, seconds: float = 1.5) -> list[str]:
        """Hold a stranger for which everything may wait. Returns what failed, and what does not go on afterwards."""
        guest = Guest(stranger, self, next(self._names))
        self.crowd.diary.errors()
        with guest.open():
            time.sleep(seconds)
        late = self.goes_on(time.monotonic(), AFTERWARDS)
        guest.leave()
        return [*map(str, late), *self.crowd.diary.errors()]

    def _blames(self, strangers: Sequence[Stranger], found: Sequence[Gap]) -> bool:
        """Whether a session of a role that stalled was seen waiting for one of these strangers."""
        names = {stranger.name[:60] for stranger in strangers}
        stalled = {session for gap in found for session in SESSIONS.get(gap.key.role, ())}
        return any(
            who in stalled and whom in names and seconds > PATIENCE / 2
            for (who, _, whom, _, _), seconds in self._seen()
        )

    def _of_held_channels(self) -> set[Key]:
        """Consumers of lanes and gates that could not be locked for as long as five looks take: a stranger has them."""
        held = set.intersection(*(self._look_at_locks() for _ in range(5)))
        return {Key(role, name) for name in held for role in ("lease", "deliver", "cancel", "work")}

    def _look_at_locks(self) -> set[str]:
        time.sleep(0.05)
        return {name for (name,) in self.admin.execute(_HELD).fetchall()}

    def goes_on(self, since: float, seconds: float) -> list[Gap]:
        """Wait until every role has succeeded everywhere since then. Returns what has not."""
        while True:
            missing = [key for key in map(Key._make, self.crowd.expected()) if not self.crowd.diary.seen(key, since)]
            if not missing or time.monotonic() > since + seconds:
                return [Gap(time.monotonic() - since, key) for key in missing]
            time.sleep(0.01)

    def _seen(self) -> list[tuple[tuple[str, ...], float]]:
        return list(self._waits.items())  # at once: the observer adds to it meanwhile

    def evidence(self) -> list[str]:
        """Waits for locks that were seen, the longest first."""
        longest = sorted(self._seen(), key=lambda wait: -wait[1])
        return [
            f"{who} waited {seconds:.1f} s for {whom} ({lock}); it ran [{query}], the other [{other}]"
            for (who, query, whom, other, lock), seconds in longest[:12]
        ]

    def _observe(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True, application_name="observer") as conn:
            busy = 0.0
            while not self._closing.is_set():
                for *who, seconds in conn.execute(_WAITING).fetchall():
                    key = tuple(str(word) for word in who)
                    self._waits[key] = max(self._waits.get(key, 0), seconds)
                if time.monotonic() > busy + 1:
                    conn.execute(_KEEP_BUSY)
                    busy = time.monotonic()
                time.sleep(0.1)

    def _furnish(self) -> None:
        for name, (group, isolation) in ROLES.items():
            if not self.one("select exists (select 1 from pg_roles where rolname = %s)", f"mz_{name}"):
                self.admin.execute(f"create role mz_{name} login password '{PASSWORD}'")
            if group:
                self.admin.execute(f"grant {group} to mz_{name}")
            if isolation:
                self.admin.execute(f"alter role mz_{name} set default_transaction_isolation = '{isolation}'")
        for name, limits in (PLAIN | dict.fromkeys(("stock", "idle", *HANDLED), "null")).items():
            self.admin.execute(f"select menzil.channel_set('{name}', {limits})")
        for name, config in HOOKS.items():
            self.make_hook(name, **config)
        for query in (
            "select menzil.schedule_create('often', '* * * * *', 'UTC', 'plain', '{}')",
            "select menzil.create_event_type('thing.done')",
            "select menzil.subscribe('thing.done', 'plain')",
            "select menzil.send_batch('stock', array_fill('{}'::jsonb, array[500]))",
            "create table public.mine (n integer)",
            "grant all on public.mine to public",
        ):
            self.admin.execute(query)

    def make_hook(self, name: str, **config: Any) -> None:
        url = {"url": "https://example.com/"}
        self.admin.execute("select menzil.create_endpoint(%s, 'http', %s)", [name, Jsonb(url | config)])
