"""A consumer in plain SQL: leases, beats, settles in every way and order, comes late, shows old tokens, walks away."""

from __future__ import annotations

import time
from contextlib import suppress
from random import Random
from threading import Barrier, Thread
from typing import Any, NamedTuple

import psycopg

from tests.torture.place import Me
from tests.torture.plan import BOTH, DEEP, RAW
from tests.torture.reach import Conn, Over, connect, note, sqlstate

_LEASED = "num_attempts, channel, ordering_key, payload ->> 'ref', batch"
DEQUEUE = f"select id, {_LEASED} from menzil.message_dequeue(%s, %s, %s, %s, p_apart => %s)"
NEXT = f"select id, {_LEASED}, outcome from menzil.message_next(%s::bigint[], %s::bigint[], %s, %s, %s, %s)"
BATCH = {
    "complete": """select id, outcome from menzil.message_complete(%(ids)s::bigint[], %(tokens)s::bigint[], null,
 %(batches)s::bigint[])""",
    "defer": """select id, outcome from menzil.message_defer(%(ids)s::bigint[], %(tokens)s::bigint[],
 array(select clock_timestamp() + %(ms)s * interval '1 ms' from unnest(%(ids)s::bigint[])))""",
    "fail": """select id, outcome from menzil.message_fail(%(ids)s::bigint[], %(tokens)s::bigint[],
 array(select %(error)s::text from unnest(%(ids)s::bigint[])))""",
    "beat": "select id, outcome from menzil.message_heartbeat(%(ids)s::bigint[], %(tokens)s::bigint[], %(lease)s)",
}
SINGLE = {
    "complete": "select menzil.message_complete((%(ids)s::bigint[])[1], (%(tokens)s::bigint[])[1])",
    "defer": "select menzil.message_defer((%(ids)s::bigint[])[1], (%(tokens)s::bigint[])[1])",
    "fail": "select menzil.message_fail((%(ids)s::bigint[])[1], (%(tokens)s::bigint[])[1], %(error)s)",
    "beat": "select menzil.message_heartbeat((%(ids)s::bigint[])[1], (%(tokens)s::bigint[])[1], %(lease)s)",
}
REFUSED = {"stale": "MZ001", "unknown": "MZ002"}


class Lease(NamedTuple):
    """What a dequeue gave."""

    id: int
    token: int
    batch: int | None = None
    channel: str = ""


class Consumer:
    """Leases and settles until the run is over. The dice belong to its name, so each life of a consumer differs."""

    def __init__(self, me: Me) -> None:
        self.me = me
        self.plan = me.place.plan()
        self.channels = [name for name, channel in self.plan.channels.items() if channel.serves in (RAW, BOTH)]
        self.conn: Conn | None = None
        self.twin: Consumer | None = None
        self.start: Barrier | None = None  # of this consumer and its twin
        self.dice = Random()

    def run(self) -> None:
        round_ = 0
        self.conn = connect(self.me)
        self.me.diary.note("here")
        while not self.me.place.over:
            round_ += 1
            self.dice = Random(f"{self.plan.seed}/{self.me.name}/{round_}")
            self.conn = self.conn if self.conn and not self.conn.closed else connect(self.me)
            lease_ms = self.dice.randint(1000, 2500)
            if DEEP in self.channels and self.dice.random() < 0.4:
                leases, chance = self.lease(lease_ms, self.dice.choice([1, 5]), [DEEP]), 0.95
            else:
                leases, chance = self.lease(lease_ms, self.dice.choice([1, 5, 20, 60])), 0.25
            if not leases:
                time.sleep(0.02)
            chance = self.plan.options.get("next", chance)
            while leases and not self.me.place.over:
                leases, chance = self.act(leases, lease_ms, chance), max(0.8, chance)

    def lease(self, lease_ms: int, limit: int, only: list[str] | None = None) -> list[Lease]:
        names = only or self.channels_now
        if not only and self.dice.random() < 0.3:
            names = self.dice.sample(names, min(2, len(names)))
        apart = self.dice.random() < self.plan.options.get("apart", 0.1)
        return self._leased(self._ask("dequeue", DEQUEUE, (lease_ms, limit, names, self.me.name, apart)), lease_ms)

    def _leased(self, rows: list[Any] | None, lease_ms: int) -> list[Lease]:
        for number, token, channel, key, ref, _ in rows or ():
            self.me.diary.note(
                "lease", id=number, attempt=token, token=token, channel=channel, key=key, ref=ref, lease_ms=lease_ms
            )
        return [Lease(row[0], row[1], row[5], row[2]) for row in rows or ()]

    @property
    def channels_now(self) -> list[str]:
        """Those it takes large batches from: not the deep one, which others would empty at once, before the end."""
        few = [name for name in self.channels if name != DEEP]
        return self.channels if self.me.place.draining or not few else few

    def act(self, leases: list[Lease], lease_ms: int, chance: float) -> list[Lease]:
        """Do something with them. Returns what was leased meanwhile, which is next."""
        if self.dice.random() < chance:
            return self.complete_and_lease(leases, lease_ms)
        self.end(leases, lease_ms)
        return []

    def complete_and_lease(self, leases: list[Lease], lease_ms: int) -> list[Lease]:
        """Settle and lease in one call, of one channel or of all that it serves."""
        all_of_them = None if len(self.channels) == len(self.plan.channels) else self.channels_now
        channels = [leases[-1].channel] if self.dice.random() < 0.8 else all_of_them
        for lease in leases:
            self._note("settle.try", lease, "complete", stale=False)
        tokens = [lease.id for lease in leases], [lease.token for lease in leases]
        limit = self.dice.choice([1, 1, 5, len(leases)])
        rows = self._ask("next", NEXT, (*tokens, lease_ms, limit, channels, self.me.name))
        refused = {row[0]: row[6] for row in rows or () if row[6] is not None}
        for lease in leases:
            if rows is None:
                self._note("settle.unknown", lease, "complete", stale=False)
            elif lease.id in refused:
                self._note("settle.refused", lease, "complete", stale=False, sqlstate=REFUSED[refused[lease.id]])
            else:
                self._note("settle.ok", lease, "complete", stale=False, outcome="settled")
        return self._leased([row[:6] for row in rows or () if row[6] is None], lease_ms)

    def end(self, leases: list[Lease], lease_ms: int) -> None:
        chance = 1.0 if self.me.place.draining else self.dice.random()
        if chance < 0.7 and (favoured := self.plan.options.get("favoured")):
            chance = self.dice.uniform(*self.dice.choice(favoured))  # what a mutant needs to be seen
        self.dice.shuffle(leases)
        if self.dice.random() < self.plan.options.get("twins", 0.02):
            self.settle_with_twin(leases)
        elif chance < 0.03:
            pass  # walks away
        elif chance < 0.05:
            self.come_late(leases, lease_ms)
        elif chance < 0.15:
            self.settle("fail", leases)
        elif chance < 0.22:
            self.settle("defer", leases)
        elif chance < 0.30:
            third = len(leases) // 3
            self.settle("fail", leases[:third])
            self.settle("defer", leases[third : 2 * third])
            self.settle("complete", leases[2 * third :])
        elif chance < 0.36:
            self.settle("beat", leases, lease_ms=lease_ms)
            self.settle("complete", leases)
        elif chance < 0.42:
            for lease in leases[:5]:
                self.settle(self.dice.choice(["complete", "fail", "defer"]), [lease], single=True)
            self.settle("complete", leases[5:])
        elif chance < 0.48:
            self.settle("complete", leases, single=len(leases) == 1)
            self.settle(self.dice.choice(["complete", "fail", "defer", "beat"]), leases, stale=True)
        elif chance < 0.54:
            old = [Lease(lease.id, lease.token - 1) for lease in leases if lease.token > 1]
            verbs = self.plan.options.get("verbs", ["complete", "fail", "defer", "beat"])
            self.settle(self.dice.choice(verbs), old, stale=True)
            self.settle("complete", leases)
        else:
            self.settle("complete", leases)

    def settle_with_twin(self, leases: list[Lease]) -> None:
        """Settle over two connections at once, in two orders: one of them settles each lease, and neither fails."""
        self.twin = twin = self.twin or Consumer(self.me)
        twin.dice = Random(f"{self.plan.seed}/{self.me.name}/twin/{leases[0].id}")
        twin.conn = twin.conn if twin.conn and not twin.conn.closed else connect(self.me)
        self.start = twin.start = Barrier(2)
        thread = Thread(target=twin.settle, args=("complete", twin.dice.sample(leases, len(leases))))
        thread.start()
        self.settle("complete", leases)
        thread.join()
        self.start = None

    def come_late(self, leases: list[Lease], lease_ms: int) -> None:
        """Sleep over the end of the leases. Those that somebody else has by then must be refused; of others we know
        nothing: a lease that ran out and that nobody has taken back yet may still be settled."""
        time.sleep(lease_ms / 1000 + self.dice.random())
        rows = self._ask(
            "status",
            "select (menzil.message_status(i)).* from unnest(%s::bigint[]) i",
            ([lease.id for lease in leases],),
        )
        if rows is None:
            return
        now = {row[0]: (row[1], row[3]) for row in rows}
        lost = [x for x in leases if x.id in now and (now[x.id][0] != "processing" or now[x.id][1] > x.token)]
        self.settle(self.dice.choice(["complete", "fail", "defer", "beat"]), lost, stale=True)
        self.settle(self.dice.choice(["complete", "beat"]), [lease for lease in leases if lease not in lost])

    def settle(
        self, verb: str, leases: list[Lease], *, single: bool = False, stale: bool = False, lease_ms: int = 1000
    ) -> None:
        if not leases:
            return
        said = "beat" if verb == "beat" else "settle"
        if said == "settle":
            for lease in leases:
                self._note("settle.try", lease, verb, stale=stale)
        values = {
            "ids": [lease.id for lease in leases],
            "tokens": [lease.token for lease in leases],
            "batches": [lease.batch for lease in leases] if self.dice.random() < 0.5 else None,
            "ms": self.dice.choice([0, 0, 50, 400]),
            "error": self.dice.choice(["no", "no", "no", "[RETRYABLE] no", "[PERMANENT] never"]),
            "lease": lease_ms,
        }
        outcomes: dict[int, str] | str
        if self.start:
            self.start.wait()
        try:
            if single:
                self._execute(SINGLE[verb], values)
                outcomes = {leases[0].id: "settled"}
            else:
                outcomes = {row[0]: row[1] for row in self._execute(BATCH[verb], values)}
        except psycopg.Error as error:
            note(self.me.diary, verb, error)
            code = sqlstate(error)
            outcomes = "stale" if code == "MZ001" else "unknown" if code == "MZ002" else "?"
        for lease in leases:
            what = outcomes if isinstance(outcomes, str) else outcomes.get(lease.id, "missing")
            if what == "?":
                self._note(f"{said}.unknown", lease, verb, stale=stale)
            elif what in REFUSED:
                self._note(f"{said}.refused", lease, verb, stale=stale, sqlstate=REFUSED[what])
            else:
                self._note(f"{said}.ok", lease, verb, stale=stale, outcome=what)

    def _note(self, kind: str, lease: Lease, verb: str, **facts: Any) -> None:
        self.me.diary.note(kind, id=lease.id, attempt=lease.token, token=lease.token, verb=verb, **facts)

    def _ask(self, where: str, text: str, values: Any) -> list[Any] | None:
        try:
            return self._execute(text, values)
        except psycopg.Error as error:
            note(self.me.diary, where, error)
            return None

    def _execute(self, text: str, values: Any) -> list[Any]:
        assert self.conn is not None
        try:
            return self.conn.execute(text.encode(), values).fetchall()
        except psycopg.errors.ActiveSqlTransaction:
            # A session with another isolation level by default: a lease needs a transaction in READ COMMITTED.
            with self.conn.transaction():
                self.conn.execute("set transaction isolation level read committed")
                return self.conn.execute(text.encode(), values).fetchall()


if __name__ == "__main__":
    with suppress(Over):
        Consumer(Me.here()).run()
