"""Runs a plan from the empty server to the verdict."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.torture import checker, copies, effects, tables
from tests.torture.faults import Faults, unavailable
from tests.torture.history import Diary, Entry, read
from tests.torture.invariants.facts import Violation
from tests.torture.place import Place
from tests.torture.plan import FAULTS, Plan
from tests.torture.server import Server
from tests.torture.stage import Stage

#: Seconds until a fault that found nobody tries again.
AGAIN = 0.5
#: Seconds from the start of the server to the first send, about.
SET_UP = 4.0
#: Told in the report: whether the run saw what it should.
ASKED = {
    "months": "select count(distinct menzil._month_of(m.created_at)) from menzil.message m",
    "message_next": "select sum(calls)::bigint from pg_stat_user_functions where funcname = 'message_next'",
    "the long way": "select sum(calls)::bigint from pg_stat_user_functions where funcname = '_next_the_long_way'",
}
Say = Callable[[str], None]


@dataclass
class Outcome:
    """What came of a run."""

    plan: Plan
    violations: list[Violation]
    stories: list[str]
    counts: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    drain: float = 0.0
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        return not self.violations


def run(plan: Plan, *, keep: Path | None = None, disk: bool = False, say: Say = lambda text: None) -> Outcome:
    """Run it. With `disk`, the server gets a disk of its own that can be full; mounts are the caller's to contain."""
    began = time.monotonic()
    with ExitStack() as stack:
        path = Path(tempfile.mkdtemp(prefix="mzt-"))
        stack.callback(shutil.rmtree, path, ignore_errors=True)
        path.chmod(0o755)
        for name in ("history", "said", "dumps"):
            (path / name).mkdir()
        place = Place(path)
        # Everybody is there after some seconds; then the month ends in the middle of the faults.
        server = Server(path, disk, turn_in=SET_UP + plan.seconds / 2 if plan.turns else None)
        stack.callback(server.close)
        if keep is not None:
            stack.callback(_keep, place, server, keep)
        missing = unavailable(server.disk)
        if plan.kinds is None:
            plan = replace(plan, without=tuple(missing))
        place.keep(plan)
        diary = Diary(place.diaries, "runner")
        stage = Stage(plan, place, server, diary)
        stack.callback(stage.close)
        stage.set_up()
        if plan.mutant:
            from tests.torture.mutants import MUTANTS

            if (apply := MUTANTS[plan.mutant].apply) is not None:
                apply(server.dsn)
        stage.enter_players()
        stage.wait_for_players()
        place.say("begun")
        faults = _torment(stage, say)
        drain = _drain(stage, say)
        _finish(stage)
        stage.brokers.note(diary)
        for code, text in server.errors():
            if code in ("40P01", "XX000", "XX001", "XX002"):
                diary.note("error", where="server log", text=text[:500], sqlstate=code)
        found_tables = tables.read(server.dsn)
        for file in sorted(place.dumps.iterdir()):
            diary.note("restored", file=file.name, **copies.drained(server.dsn, file))
        history = read(place.diaries)
        say(f"checking {len(history)} entries against {len(found_tables.ended)} ended messages")
        found = checker.violations(history, found_tables, plan)
        found += effects.violations(server.ask(effects.READ), found_tables)
        stories = [checker.story(violation, history, found_tables) for violation in found[:20]]
        counts = _count(history) | {name: server.ask(text) for name, text in ASKED.items()}
        return Outcome(
            plan, found, stories, counts, {k: faults.counts[k] for k in FAULTS if faults.counts[k]},
            {k: v for k, v in missing.items() if plan.kinds is None or k in plan.kinds}, server.error_counts(), drain,
            time.monotonic() - began,
        )  # fmt: skip


def _torment(stage: Stage, say: Say) -> Faults:
    """Let the senders send and the faults strike, until both are done."""
    faults, schedule = Faults(stage), list(stage.plan.schedule)
    start = told = time.monotonic()
    limit = start + 60 + 6 * stage.plan.seconds
    while schedule or faults.pending or not all(child.done for child in stage.of("sender")):
        now = time.monotonic()
        assert now < limit, "the senders do not finish"
        stage.tend()
        for fault in faults.end(now):  # those that met nobody: somebody is always connected
            schedule.insert(0, replace(fault, at=now - start, what="cut"))
        if schedule and schedule[0].at <= now - start:
            if not faults.strike(schedule[0], now):
                # Its target is not there, and may never come again: other dice the next time.
                schedule.append(replace(schedule[0], at=now - start + AGAIN, dice=f"{schedule[0].dice} again"))
            schedule.pop(0)
            schedule.sort(key=lambda fault: fault.at)
        if now - told > 5:
            told = now
            sending = sum(not child.done for child in stage.of("sender"))
            say(f"{now - start:5.0f} s  {sum(faults.counts.values())} faults, {sending} senders at work")
        time.sleep(0.01)
    return faults


def _drain(stage: Stage, say: Say) -> float:
    """Without faults, all that was sent must come to its end."""
    began, told = time.monotonic(), 0.0
    stage.place.say("draining")
    live = "select count(*) from menzil.queue"
    while left := stage.server.ask(live):
        stage.tend()
        seconds = time.monotonic() - began
        if seconds > stage.plan.drain_seconds:
            break
        if seconds - told > 5:
            told = seconds
            say(f"{seconds:5.0f} s  draining, {left} left")
        time.sleep(0.1)
    seconds = time.monotonic() - began
    stage.diary.note("drained", seconds=seconds, left=left)
    return seconds


def _finish(stage: Stage) -> None:
    """End the players; the reader last, so that it sees the end of everything."""
    stage.dismiss("worker")
    for child in stage.of("consumer"):
        child.done = True
    ends = time.monotonic() + 30
    stage.place.say("over")
    while any(child.alive for role in ("consumer", "reader") for child in stage.of(role)):
        assert time.monotonic() < ends, "the consumers or the reader do not end"
        time.sleep(0.02)


def _count(history: list[Entry]) -> dict[str, int]:
    """How often each kind of entry was made; of sends also how many messages they were."""
    counts = Counter(entry.kind for entry in history)
    counts["messages acknowledged"] = sum(len(entry["ids"]) for entry in history if entry.kind == "send.ok")
    return dict(sorted(counts.items()))


def _keep(place: Place, server: Server, target: Path) -> None:
    """Leave histories, what everybody said, and the server's log behind."""
    target.mkdir(parents=True, exist_ok=True)
    for name in ("history", "said"):
        shutil.copytree(place.path / name, target / name, dirs_exist_ok=True)
    for log in server.home.rglob("*.log*"):
        shutil.copy(log, target)
