"""Acts on many messages: make a plan, which is counted and moves nothing; then run, pause, stop it or take it back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from shlex import quote
from typing import Any, ClassVar

from menzil.console.act import Act, Done, Field, Given, Plan, Undo
from menzil.console.pages.plans import stale
from menzil.console.typed import positive, whole
from menzil.console.words import count, many, span
from menzil.model.errors import InvalidValueError, UnknownNameError, UsageError
from menzil.model.times import when
from menzil.ops import history, looking, looking_dlq, plans
from menzil.ops.op import Op
from menzil.watch import plans as watching
from menzil.watch.finding import Run
from menzil.watch.redriving import MOST_CAUSES

SINCE = Field("since", "Since", required=False, help="ISO 8601 in UTC, or a distance such as -2h.", longest=60)
UNTIL = Field("until", "Until", required=False, help="Not part of the range.", longest=60)
IDS = Field(
    "ids", "Ids of messages", required=False, help="With commas; alone, without the fields above.", longest=200_000
)
RATE = Field(
    "rate", "Messages per second", "number", required=False, help="Empty: as fast as there is room.", longest=12
)
NOTE = Field("note", "Note", required=False, help="Why; it stays with the plan.", longest=1000)
CHANNEL = Field("channel", "Channel or endpoint", required=False, longest=200)
ALL = Field("all", "Of every channel", "check", required=False)


class Make(Act):
    """What acts that make a plan have in common."""

    kind: ClassVar[str]
    verb = "Make the draft"
    nav = "/plans"

    def filter(self, run: Run, given: Given) -> dict[str, Any]:
        """The filter; an empty one is refused."""
        channel = given.get("channel") or given.get("endpoint")
        found: dict[str, Any] = {"channel": channel} if channel else {}
        found |= {name: given[name] for name in ("cause_hash", "status") if given.get(name)}
        for name in ("since", "until"):
            if given.get(name):
                at = when(given[name])
                found[name] = (run(looking.now()) + at if isinstance(at, timedelta) else at).isoformat()
        if given.get("ids"):
            found["ids"] = self.chosen(run, given["ids"])
        if given.get("all"):
            found["all"] = True
        if not found:
            raise UsageError("The filter is empty.", hint="name a channel, a cause or ids; or say that you mean all")
        return found

    def chosen(self, run: Run, text: str) -> list[int]:
        """The ids that a person gave."""
        del run
        return [whole("An id", part.strip(), 1) for part in text.split(",") if part.strip()]

    def complete(self, query: Given) -> bool:
        names = ("channel", "endpoint", "cause_hash", "ids", "all")
        return any(query.get(name) for name in names) and "edit" not in query

    def about(self, run: Run, found: dict[str, Any]) -> list[str]:
        """What is known before it is counted."""
        del run, found
        return []

    def plan(self, run: Run, given: Given) -> Plan:
        found = self.filter(run, given)
        if "channel" in found and run(looking.channel(found["channel"])) is None:
            raise UnknownNameError(f"There is no channel named {found['channel']!r}.")
        return Plan(
            f"A plan is drafted: {self.kind} {_what(found)}.",
            watching.creation(self.kind, found, positive("Messages per second", given.get("rate", "")))["cli"]
            + (f" --note {quote(given['note'])}" if given.get("note") else ""),
            to=[found["channel"]] if "channel" in found else [],
            more=[*self.about(run, found), "It is counted, and the next page shows the count and the pace."],
            leaves=["Nothing is moved before you run it."],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        rate = positive("Messages per second", given.get("rate", ""))
        note = given.get("note") or None
        return [plans.plan_create(self.kind, self.filter(run, given), rate, note)]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del given
        number = answers[0]
        see = [(f"Look at plan {number}", f"/plans/{number}")]
        after = Undo("plan-run", {"plan": str(number)}, "Run")
        return Done(f"Plan {number} is a draft and was counted.", see=see, next=after)


def _what(found: dict[str, Any]) -> str:
    if "ids" in found:
        return f"{len(found['ids']):,} by id"
    return ", ".join("all of every channel" if name == "all" else f"{name} {text}" for name, text in found.items())


class MakeRedrive(Make):
    """Dead letters."""

    name, title, kind = "plan-redrive", "Plan a redrive", "redrive"
    fields = (
        Field("endpoint", "Channel or endpoint", required=False, longest=200),
        Field("cause_hash", "Cause", required=False, help="The 12 digits of a cause.", longest=12),
        SINCE, UNTIL, ALL, IDS, RATE, NOTE,
    )  # fmt: skip

    def chosen(self, run: Run, text: str) -> list[int]:
        letters = [run(looking_dlq.letter_of(number)) for number in super().chosen(run, text)[:1000]]
        found = [letter["id"] for letter in letters if letter is not None and letter["status"] == "failed"]
        if not found:
            raise InvalidValueError("None of these messages has a failed dead letter.")
        return found

    def about(self, run: Run, found: dict[str, Any]) -> list[str]:
        if "ids" in found:
            return [many(len(found["ids"]), "dead letter") + "."]
        rows = run(history.dlq_causes(found.get("channel"), MOST_CAUSES))
        more = "at least " if len(rows) >= MOST_CAUSES else ""
        fit = [row for row in rows if found.get("cause_hash") in (None, row["cause_hash"])]
        number = sum(row["failed_count"] for row in fit)
        names = sorted({str(row["endpoint_name"]) for row in fit})
        return [f"Failed ones now: {more}{count(number)}, of {', '.join(names[:5]) or 'no channel'}."]


class MakeReplay(Make):
    """Ended messages."""

    name, title, kind = "plan-replay", "Plan a replay", "replay"
    fields = (
        CHANNEL, SINCE, UNTIL,
        Field(
            "status", "That ended as", "choice", required=False,
            choices=(("", "anything"), *((word, word) for word in ("completed", "failed", "expired", "cancelled"))),
        ),
        IDS, RATE, NOTE,
    )  # fmt: skip


class MakeCancel(Make):
    """Waiting messages."""

    name, title, kind, danger = "plan-cancel", "Plan a cancel", "cancel", True
    fields = (CHANNEL, SINCE, UNTIL, ALL, IDS, NOTE)


class OnPlan(Act):
    """What acts on a plan have in common."""

    fields = (Field("plan", "Plan", "hidden", longest=19),)
    nav = "/plans"

    def back(self, given: Given) -> str:
        number = given.get("plan", "")
        return f"/plans/{number}" if number.isascii() and number.isdecimal() else self.nav

    def number(self, given: Given) -> int:
        """The id."""
        return whole("The id of a plan", given["plan"], 1)

    def found(self, run: Run, given: Given) -> dict[str, Any]:
        """The plan, or a refusal."""
        return watching.one(run, self.number(given))


class RunPlan(OnPlan):
    """Let it run."""

    name, title, verb = "plan-run", "Run a plan", "Run it"

    def plan(self, run: Run, given: Given) -> Plan:
        found = self.found(run, given)
        if found["status"] not in ("draft", "paused"):
            words = {"running": "runs already", "stopped": "was stopped, and does not run again"}
            raise UsageError(f"Plan {found['id']} {words.get(found['status'], 'has ended, and does not run again')}.")
        if stale(found):
            raise UsageError(
                f"The count of plan {found['id']} is older than 10 minutes.",
                hint="make the plan again, and look at the new count",
            )
        pace = f"{found['rate']:g} per second: {span(found['seconds_left'])}." if found["rate"] else ""
        back = "It can be stopped, and what was not yet leased taken back."
        return Plan(
            found["sentence"],
            f"menzil plan run {found['id']}",
            count=found["counted"],
            counted_exactly=found["counted_exactly"],
            to=[one["channel"] for one in found["targets"][:10]],
            more=[
                pace or "As fast as there is room.",
                "A worker steps it, and schedules a minute ahead at most.",
            ],
            leaves=[back if found["kind"] != "cancel" else "It can be stopped; what it cancelled stays cancelled."],
            warnings=[*_held(found), *_rooms(found), *_unattended(run)],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [plans.plan_run(self.number(given))]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del answers
        return Done(f"Plan {given['plan']} runs.", Undo("plan-take-back", given, "Stop and take back"))


def _unattended(run: Run) -> list[str]:
    sentence = watching.unattended(run)
    return [] if sentence is None else [sentence]


def _held(found: dict[str, Any]) -> list[str]:
    return sorted({one["waits_for"] for one in found["targets"] if one["waits_for"]})


def _rooms(found: dict[str, Any]) -> list[str]:
    small = [one for one in found["targets"] if one["room"] is not None and one["room"] < one["counted"]]
    return [f"{one['channel']} has room for {count(one['room'])} of {count(one['counted'])}." for one in small[:5]]


class Pause(OnPlan):
    """Hold it."""

    name, title, verb = "plan-pause", "Pause a plan", "Pause it"

    def plan(self, run: Run, given: Given) -> Plan:
        found = self.found(run, given)
        if found["status"] != "running":
            word = "a draft" if found["status"] == "draft" else found["status"]
            raise UsageError(f"Plan {found['id']} does not run: it is {word}.")
        return Plan(
            f"Plan {found['id']} makes no more messages until it goes on.",
            f"menzil plan pause {found['id']}",
            more=[f"{count(found['done'])} of {count(found['counted'])} are done."],
            leaves=["What it made already goes on."],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [plans.plan_pause(self.number(given))]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del answers
        return Done(f"Plan {given['plan']} is paused.", Undo("plan-run", given, "Go on"))


class Stop(OnPlan):
    """End it."""

    name, title, verb, danger = "plan-stop", "Stop a plan", "Stop it", True
    take_back: ClassVar[bool] = False

    def plan(self, run: Run, given: Given) -> Plan:
        found = self.found(run, given)
        if self.take_back and found["kind"] == "cancel":
            raise UsageError("A cancel cannot be taken back: what it ended has ended.")
        ended = found["status"] in ("stopped", "done")
        if ended and not self.take_back:
            raise UsageError(f"Plan {found['id']} has ended already: it is {found['status']}.")
        done = f"{count(found['done'])} of {count(found['counted'])} are done."
        letters = ", and their dead letters are failed again" if found["kind"] == "redrive" else ""
        back = f"The messages it made that were not yet leased are cancelled{letters}."
        ends = [f"Plan {found['id']} {'has ended' if ended else 'ends'}."]
        return Plan(
            " ".join([*ends, "What it made is taken back."] if self.take_back else ends),
            f"menzil plan stop {found['id']}" + (" --take-back" if self.take_back else ""),
            more=[done, back] if self.take_back else [done],
            leaves=["What was leased or has ended stays as it is."] if self.take_back else ["What it made goes on."],
            warnings=[] if ended else ["A plan that was stopped does not run again."],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [plans.plan_stop(self.number(given), take_back=self.take_back)]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        after = None if self.take_back else Undo("plan-take-back", given, "Take back what it made")
        taken = f" {many(answers[0], 'message')} taken back. If it made more, a worker goes on with those."
        taken = taken if self.take_back else ""
        return Done(f"Plan {given['plan']} is stopped.{taken}", next=after)


class TakeBack(Stop):
    """End it, and cancel what it made."""

    name, title, verb, take_back = "plan-take-back", "Stop a plan and take back", "Stop and take back", True


ACTS = (MakeRedrive(), MakeReplay(), MakeCancel(), RunPlan(), Pause(), Stop(), TakeBack())
