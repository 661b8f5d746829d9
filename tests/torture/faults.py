"""What can go wrong, done to the processes of a run. Each fault is bounded, written down, and taken back."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

import psycopg

from tests.torture import clock, copies, months, strangers
from tests.torture.control import tell
from tests.torture.plan import ENDPOINT, FAULTS, MOODS, Fault

if TYPE_CHECKING:
    from tests.torture.children import Child
    from tests.torture.stage import Stage

VICTIMS = """select pid from pg_stat_activity where datname = 'torture' and pid <> pg_backend_pid() and
 backend_type = 'client backend' order by (state = 'active') desc, backend_start limit 30"""
NOBODY = "nobody"
LATER = "later"
TWO_HOURS = 7200
Undo = Callable[[], Any]


def unavailable(disk: bool) -> dict[str, str]:
    """Which faults cannot be made on this machine, and why."""
    missing = {}
    if not disk:
        missing["disk"] = "the server has no small disk of its own (that takes the right to mount one)"
    if clock.COMPILER is None:
        missing["clock"] = "there is no C compiler to make the library that shifts a clock"
    if not copies.available():
        missing["dump"] = f"{copies.BIN} has no pg_dump"
    return missing


class Faults:
    """Strikes, and remembers what has to be taken back."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.counts: Counter[str] = Counter()
        self.pending: list[tuple[float, Fault, Undo | None]] = []

    def strike(self, fault: Fault, now: float) -> bool:
        """Let it happen; False when its target is not there."""
        assert fault.what in FAULTS
        dice = Random(fault.dice)
        try:
            target, seconds, undo = getattr(self, f"_{fault.what}")(fault, dice)
        except (OSError, LookupError, psycopg.Error):
            return False
        self.stage.diary.note("fault", n=fault.n, what=fault.what, target=target, seconds=seconds)
        self.pending.append((now + seconds, fault, undo))
        return True

    def end(self, now: float) -> list[Fault]:
        """Take back what is over. Returns those that waited for somebody in vain."""
        vain = []
        for entry in [entry for entry in self.pending if entry[0] <= now]:
            self.pending.remove(entry)
            _, fault, undo = entry
            result = undo() if undo else None
            if result == LATER:
                self.pending.append((now + 0.5, fault, undo))
                continue
            self.stage.diary.note("fault.over", n=fault.n, what=fault.what, result=result)
            if result == NOBODY:
                vain.append(fault)
            else:
                self.counts[fault.what] += 1
        return vain

    # Each returns its target, how long it lasts, and how it is taken back.

    def _kill(self, role: str, dice: Random) -> tuple[str, float, None]:
        child = dice.choice(self.stage.of(role))
        child.kill()
        return child.name, 0.0, None

    def _kill_worker(self, _: Fault, dice: Random) -> tuple[str, float, None]:
        return self._kill("worker", dice)

    def _kill_consumer(self, _: Fault, dice: Random) -> tuple[str, float, None]:
        return self._kill("consumer", dice)

    def _kill_reader(self, _: Fault, dice: Random) -> tuple[str, float, None]:
        return self._kill("reader", dice)

    def _stop(self, role: str, dice: Random) -> tuple[str, float, Undo]:
        child = dice.choice(self.stage.of(role))
        child.signal(signal.SIGSTOP)
        return child.name, 2.3 + dice.random() * 1.5, lambda: child.signal(signal.SIGCONT)

    def _stop_worker(self, _: Fault, dice: Random) -> tuple[str, float, Undo]:
        return self._stop("worker", dice)

    def _stop_consumer(self, _: Fault, dice: Random) -> tuple[str, float, Undo]:
        return self._stop("consumer", dice)

    def _clock(self, _: Fault, dice: Random) -> tuple[str, float, None]:
        """Another life for a worker, with a clock that is two hours off; its monotonic clock is right."""
        child = dice.choice(self.stage.of("worker"))
        child.kill()
        shift = dice.choice([TWO_HOURS, -TWO_HOURS])
        if self.stage.server.library is None:
            raise LookupError("no library")
        child.env = {**child.env, **clock.shifted(self.stage.server.library, shift)}
        return f"{child.name} {shift:+} s", 0.0, None

    def _backends(self, dice: Random, most: int) -> list[int]:
        with self.stage.server.connect(5) as conn:
            pids = [row[0] for row in conn.execute(VICTIMS).fetchall()]
        if not pids:
            raise LookupError("nobody is connected")
        return dice.sample(pids, min(most, len(pids)))

    def _kill_backend(self, _: Fault, dice: Random) -> tuple[str, float, None]:
        pid = self._backends(dice, 1)[0]
        os.kill(pid, signal.SIGKILL)
        return f"backend {pid}", 0.0, None

    def _kill_postmaster(self, _: Fault, dice: Random) -> tuple[str, float, None]:
        pid = self.stage.server.embedded.pid
        os.kill(pid, signal.SIGKILL)
        return f"postmaster {pid}", 0.0, None

    def _signal_backends(self, function: str, dice: Random, most: int) -> tuple[str, float, None]:
        pids = self._backends(dice, dice.randint(1, most))
        with self.stage.server.connect(5) as conn:
            conn.execute(f"select {function}(pid) from unnest(%s::integer[]) pid".encode(), (pids,))
        return f"backends {pids}", 0.0, None

    def _terminate(self, _: Fault, dice: Random) -> tuple[str, float, None]:
        return self._signal_backends("pg_terminate_backend", dice, 8)

    def _cancel(self, _: Fault, dice: Random) -> tuple[str, float, None]:
        return self._signal_backends("pg_cancel_backend", dice, 15)

    def _tell(self, fault: Fault, **order: Any) -> Any:
        answer = tell(self.stage.proxy_control, n=fault.n, **order)
        if not answer and order["do"] in ("cut", "stall", "delay"):
            raise LookupError("nobody is connected")
        return answer

    def _role(self, dice: Random) -> str | None:
        # Whoever does not take part cannot be struck; every third sender and consumer is known as pooled.
        pooled = max(self.stage.plan.senders, self.stage.plan.consumers) > 2
        here = [role for role in self.stage.roles if (pooled if role == "pooled" else self.stage.of(role))]
        return dice.choice([None, *here])

    def _cut(self, fault: Fault, dice: Random) -> tuple[str, float, None]:
        role = self._role(dice)
        cut = self._tell(fault, do="cut", role=role, share=dice.choice([0.3, 0.6, 1.0]))
        return f"{cut} connections of {role}", 0.0, None

    def _stall(self, fault: Fault, dice: Random) -> tuple[str, float, Undo]:
        role, way = self._role(dice), dice.choice(["up", "down"])
        stalled = self._tell(fault, do="stall", role=role, way=way, share=dice.choice([0.3, 1.0]))
        return f"{stalled} connections of {role}, {way}", dice.choice([0.5, 1.5, 3.0]), lambda: self._free(fault, role)

    def _delay(self, fault: Fault, dice: Random) -> tuple[str, float, Undo]:
        role = self._role(dice)
        late = self._tell(fault, do="delay", role=role, seconds=dice.choice([0.01, 0.05, 0.2]))
        return f"{late} connections of {role}", dice.choice([1.0, 2.0]), lambda: self._free(fault, role)

    def _free(self, fault: Fault, role: str | None) -> Any:
        return self._tell(fault, do="free", role=role)

    def _arm(self, fault: Fault, dice: Random, what: str) -> tuple[str, float, Undo]:
        # Only senders ask for their commits; what others do is committed by the statement itself.
        roles = ["sender", "sender", "consumer", "worker", None] if what == "cut_commit" else ["sender", None]
        role, times = dice.choice(roles), dice.randint(1, 4)
        self._tell(fault, do=what, role=role, times=times)

        def disarm() -> Any:
            struck = self._tell(fault, do="disarm", times=times)
            return f"{struck} of {times} struck" if struck else NOBODY

        return f"{times} commits of {role}", 2.0, disarm

    def _cut_commit(self, fault: Fault, dice: Random) -> tuple[str, float, Undo]:
        return self._arm(fault, dice, "cut_commit")

    def _lose_commit(self, fault: Fault, dice: Random) -> tuple[str, float, Undo]:
        return self._arm(fault, dice, "lose_commit")

    def _receiver(self, fault: Fault, dice: Random) -> tuple[str, float, Undo]:
        endpoint = dice.choice(
            [name for name, channel in self.stage.plan.channels.items() if channel.serves == ENDPOINT]
        )
        mood = dice.choice(MOODS)
        tell(self.stage.sink_control, do="mood", endpoint=endpoint, mood=mood)
        seconds = dice.choice([0.5, 1.0, 2.0])
        return f"{endpoint} {mood}", seconds, lambda: tell(
            self.stage.sink_control, do="mood", endpoint=endpoint, mood=None
        )  # fmt: skip

    def _broker(self, dice: Random) -> Child:
        brokers = self.stage.of("broker")
        if not brokers:
            raise LookupError("there is no broker")
        return dice.choice(brokers)

    def _kill_broker(self, _: Fault, dice: Random) -> tuple[str, float, None]:
        child = self._broker(dice)
        child.kill()
        return child.name, 0.0, None

    def _freeze_broker(self, _: Fault, dice: Random) -> tuple[str, float, Undo]:
        child = self._broker(dice)
        child.signal(signal.SIGSTOP)
        return child.name, dice.choice([0.5, 1.5, 3.0]), lambda: child.signal(signal.SIGCONT)

    def _swallow_broker(self, _: Fault, dice: Random) -> tuple[str, float, Undo]:
        name = self._broker(dice).name
        tell(self.stage.relay_control, do="swallow", broker=name)
        seconds = dice.choice([0.3, 1.5, 3.0])
        return name, seconds, lambda: tell(self.stage.relay_control, do="hear", broker=name)

    def _reset_broker(self, _: Fault, dice: Random) -> tuple[str, float, None]:
        """Connections end now, or in the middle of the next answer."""
        name, do = self._broker(dice).name, dice.choice(["reset", "half"])
        return f"{tell(self.stage.relay_control, do=do, broker=name)} connections to {name}, {do}", 0.0, None

    def _stranger(self, _: Fault, dice: Random) -> tuple[str, float, Undo]:
        return strangers.enter(self.stage.server.connect(5), self.stage.plan, dice)

    def _locks(self, _: Fault, dice: Random) -> tuple[str, float, Undo]:
        return strangers.lock(self.stage.server.connect(5), dice)

    def _isolation(self, fault: Fault, dice: Random) -> tuple[str, float, Undo]:
        """Sessions that begin now have another isolation level by default, and keep it as long as they last."""
        level, role = dice.choice(["repeatable read", "serializable"]), self._role(dice)
        self._alter(f"set default_transaction_isolation = '{level}'")
        again = self._tell(fault, do="cut", role=role, share=dice.choice([0.3, 0.6]))
        return f"{again} connections of {role}, {level}", dice.choice([1.0, 3.0]), lambda: self._alter(
            "reset default_transaction_isolation"
        )  # fmt: skip

    def _alter(self, what: str) -> None:
        with self.stage.server.connect() as conn:
            conn.execute(f"alter database torture {what}".encode())

    def _month(self, _: Fault, dice: Random) -> tuple[str, float, None]:
        """As on the first of a month: functions speak of the month before, or no month is made ahead."""
        what = dice.choice(["functions", "partitions", "both"])
        with self.stage.server.connect(5) as conn:
            conn.execute("set lock_timeout = '1s'")
            if what != "partitions":
                conn.execute(months.SET_BACK)
            if what != "functions":
                conn.execute(months.DROP_AHEAD)
            conn.execute(months.jobs_due(months.SOON).encode())
        return what, 0.0, None

    def _dump(self, fault: Fault, dice: Random) -> tuple[str, float, Undo]:
        """Restored and drained when the run is over."""
        file = self.stage.place.dumps / str(fault.n)
        dump = copies.begin(self.stage.server.dsn, file)

        def see() -> str | None:
            if dump.poll() is None:
                return LATER
            if dump.returncode != 0:  # another fault killed it, or the server
                file.unlink(missing_ok=True)
                return NOBODY
            return None

        return "pg_dump", 1.0, see

    def _disk(self, _: Fault, dice: Random) -> tuple[str, float, Undo]:
        self.stage.server.fill()

        def make_room() -> None:
            with suppress(OSError):
                self.stage.server.make_room()

        return "disk full", 0.4 + dice.random(), make_room
