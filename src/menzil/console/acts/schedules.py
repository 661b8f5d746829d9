"""Acts on schedules: make, pause, resume, run now, drop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from shlex import quote
from typing import Any, ClassVar

from menzil.console.act import Act, Done, Field, Given, Plan, Undo
from menzil.console.documents import dumps
from menzil.console.typed import document, line, mapping, positive, whole
from menzil.model.errors import NameTakenError, UnknownNameError
from menzil.ops import looking, schedules, sending
from menzil.ops.op import Op
from menzil.ops.records import Record
from menzil.watch.cron import words
from menzil.watch.finding import Run
from menzil.watch.redaction import redacted, redactor
from menzil.watch.schedules import slots

_KEPT = ("ordering_key", "headers", "metadata")


class OnSchedule(Act):
    """What acts on one schedule have in common."""

    fields: ClassVar[tuple[Field, ...]] = (Field("schedule", "Schedule", "hidden", longest=200),)
    nav = "/schedules"

    def found(self, run: Run, given: Given) -> Record:
        """The schedule, or a refusal."""
        rows = run(looking.schedules(1, _before(given["schedule"])))
        if not rows or rows[0]["name"] != given["schedule"]:
            raise UnknownNameError(f"There is no schedule named {given['schedule']!r}.")
        return rows[0]

    def command(self, word: str, given: Given) -> str:
        """The command line of a plain act."""
        return line(f"schedule {word}", given["schedule"])


def _before(name: str) -> str:
    """A text that sorts before this name and after all that are shorter by one letter."""
    return name[:-1]


def seconds(value: float | None) -> str:
    """A number of seconds as a person types it; every digit is kept."""
    return "" if value is None else f"{value:f}".rstrip("0").rstrip(".")


def flags(found: Mapping[str, Any], expires: str) -> str:
    """Options of a message as the command line takes them."""
    told = f" --ordering-key {quote(found['ordering_key'])}" if found["ordering_key"] is not None else ""
    told += f" --expires {expires}s" if expires else ""
    told += "".join(f" --header {quote(f'{one}={text}')}" for one, text in (found["headers"] or {}).items())
    return told + (f" --metadata {quote(dumps(found['metadata']))}" if found["metadata"] is not None else "")


def _next(run: Run, cron: str, time_zone: str) -> str:
    found = slots(run, cron, time_zone, run(looking.now()))
    return "Next slots: " + ", ".join(one["there"] or f"{one['at']:%a %d %b %H:%M} UTC" for one in found) + "."


class Create(OnSchedule):
    """Make one."""

    name, title, verb = "schedule-create", "Make a schedule", "Make it"
    fields = (
        Field("schedule", "Name", longest=200),
        Field("cron", "When", default="0 3 * * *", help="Five fields: minute, hour, day, month, weekday.", longest=200),
        Field("time_zone", "Time zone", default="UTC", longest=100),
        Field("channel", "Channel or endpoint", longest=200),
        Field("payload", "Body", "area", default="{}", help="JSON.", longest=100_000),
        Field("priority", "Priority", default="0", help="0 to 10; higher goes first.", longest=3),
        Field("ordering_key", "Ordering key", required=False, longest=1_000),
        Field(
            "expires_after", "Seconds until a message expires", "number", required=False,
            help="A message that is later than this is not sent.", longest=20,
        ),
        Field("headers", "Headers", "area", required=False, help="A JSON object of texts.", longest=20_000),
        Field("metadata", "Metadata", "area", required=False, help="A JSON object.", longest=50_000),
        Field("paused", "Paused at first", "check", required=False),
    )  # fmt: skip

    def options(self, given: Given) -> dict[str, Any]:
        """What a schedule may have and need not."""
        found: dict[str, Any] = {"ordering_key": given["ordering_key"] or None}
        seconds = positive("Seconds until a message expires", given["expires_after"])
        found["expires_after"] = None if seconds is None else timedelta(seconds=seconds)
        for name in ("headers", "metadata"):
            found[name] = mapping(name.capitalize(), given[name]) if given[name].strip() else None
        return found

    def plan(self, run: Run, given: Given) -> Plan:
        rows = run(looking.schedules(1, _before(given["schedule"])))
        if rows and rows[0]["name"] == given["schedule"]:
            raise NameTakenError(f"There is a schedule named {given['schedule']!r} already.")
        body = dumps(document("The body", given["payload"]))
        ahead = _next(run, given["cron"], given["time_zone"])
        missing = run(looking.channel(given["channel"])) is None
        parts = (given["schedule"], given["cron"], given["channel"], body)
        told = f" --time-zone {quote(given['time_zone'])} --priority {quote(given['priority'])}"
        told += flags(self.options(given), given["expires_after"])
        command = line("schedule create", *parts, options=told)
        if given["paused"]:
            command += f" && {self.command('pause', given)}"
        return Plan(
            f"A message goes to {given['channel']} {words(given['cron'])}, {given['time_zone']}"
            + (", once it is resumed." if given["paused"] else "."),
            command,
            to=[given["channel"]],
            more=[ahead],
            warnings=[f"There is no channel named {given['channel']!r} yet."] if missing else [],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        body = document("The body", given["payload"])
        op = schedules.schedule_create(
            given["schedule"],
            given["cron"],
            given["channel"],
            body,
            dumps=dumps,
            time_zone=given["time_zone"],
            priority=whole("The priority", given["priority"]),
            **self.options(given),
        )
        return [op, schedules.schedule_pause(given["schedule"])] if given["paused"] else [op]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del answers
        undo = Undo("schedule-drop", {"schedule": given["schedule"]}, "Drop it")
        return Done(f"Schedule {given['schedule']} is there.", undo)


class Pause(OnSchedule):
    """Skip slots."""

    name, title, verb = "schedule-pause", "Pause a schedule", "Pause it"

    def plan(self, run: Run, given: Given) -> Plan:
        found = self.found(run, given)
        return Plan(
            f"Schedule {given['schedule']} sends nothing until it is resumed.",
            self.command("pause", given),
            more=[
                "Slots that pass meanwhile are skipped, not made up for.",
                _next(run, found["cron"], found["time_zone"]),
            ],
            leaves=["Messages that it sent go on."],
            warnings=["It is paused already."] if found["paused"] else [],
        )

    def is_so(self, run: Run, given: Given) -> bool:
        return bool(self.found(run, given)["paused"])

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [schedules.schedule_pause(given["schedule"])]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del answers
        return Done(f"Schedule {given['schedule']} is paused.", Undo("schedule-resume", given, "Resume"))


class Resume(OnSchedule):
    """Go on with the next slot."""

    name, title, verb = "schedule-resume", "Resume a schedule", "Resume it"

    def plan(self, run: Run, given: Given) -> Plan:
        found = self.found(run, given)
        return Plan(
            f"Schedule {given['schedule']} goes on with its next slot.",
            self.command("resume", given),
            more=[_next(run, found["cron"], found["time_zone"])],
            warnings=[] if found["paused"] else ["It is not paused."],
        )

    def is_so(self, run: Run, given: Given) -> bool:
        return not self.found(run, given)["paused"]

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [schedules.schedule_resume(given["schedule"])]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del answers
        return Done(f"Schedule {given['schedule']} goes on.", Undo("schedule-pause", given, "Pause"))


class RunNow(OnSchedule):
    """Send its message once, now."""

    name, title, verb = "schedule-run", "Run a schedule now", "Send it now"

    def plan(self, run: Run, given: Given) -> Plan:
        found = self._without_secrets(run, given)
        body = dumps(found["payload"])
        told = f" --priority {found['priority']}{flags(found, seconds(found['expires_after']))}"
        command = line("send", found["endpoint_name"], body, options=told)
        return Plan(
            f"One message goes to {found['endpoint_name']}, as schedule {given['schedule']} sends it.",
            command,
            to=[found["endpoint_name"]],
            leaves=["Its slots stay as they are: the next one comes as well."],
            more=[] if found == self.found(run, given) else ["Values that the setting redact names are hidden below."],
        )

    def shown(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        return self._ops(self._without_secrets(run, given))

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        return self._ops(self.found(run, given))

    def _without_secrets(self, run: Run, given: Given) -> Record:
        """The schedule as a page may show it. What it sends was written by its owner, not by the person at the page."""
        return redacted(self.found(run, given), redactor(run))

    def _ops(self, found: Record) -> Sequence[Op[Any]]:
        options: dict[str, Any] = {"priority": found["priority"]}
        options |= {name: found[name] for name in _KEPT if found[name] is not None}
        if found["expires_after"] is not None:
            options["expires_in"] = timedelta(seconds=found["expires_after"])
        return [sending.send(found["endpoint_name"], found["payload"], dumps=dumps, **options)]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        number = answers[0]
        undo = Undo("message-cancel", {"id": str(number)}, "Cancel it")
        see, noted = [(f"Message {number}", f"/messages/{number}")], ("schedule", given["schedule"])
        return Done(f"{given['schedule']} sent message {number}.", undo, see, noted=noted)


class Drop(OnSchedule):
    """Remove one."""

    name, title, verb, danger = "schedule-drop", "Drop a schedule", "Drop it", True

    def plan(self, run: Run, given: Given) -> Plan:
        self.found(run, given)
        return Plan(
            f"Schedule {given['schedule']} is removed.",
            self.command("drop", given),
            leaves=["Messages that it sent go on."],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [schedules.schedule_drop(given["schedule"])]

    def execute(self, run: Run, given: Given) -> Done:
        old = self.found(run, given)
        for op in self.ops(run, given):
            run(op)
        body = dumps(old["payload"])
        same = {
            "schedule": old["name"], "cron": old["cron"], "time_zone": old["time_zone"],
            "channel": old["endpoint_name"], "payload": body, "priority": str(old["priority"]),
            "ordering_key": old["ordering_key"] or "", "expires_after": seconds(old["expires_after"]),
            "paused": "on" if old["paused"] else "",
        }  # fmt: skip
        same |= {name: dumps(old[name]) for name in ("headers", "metadata") if old[name] is not None}
        # A link holds a few thousand characters.
        undo = Undo("schedule-create", same, "Make it again") if len(str(same)) < 4_000 else None
        return Done(f"Schedule {given['schedule']} is gone.", undo)


ACTS = (Create(), Pause(), Resume(), RunNow(), Drop())
