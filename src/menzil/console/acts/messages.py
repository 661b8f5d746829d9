"""Acts on one message: cancel, make due now, redrive, replay, erase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from menzil.console.act import Act, Done, Field, Given, Plan, Undo
from menzil.console.typed import psql, whole
from menzil.model.errors import UsageError
from menzil.model.status import Status
from menzil.ops import history, looking_dlq, messages
from menzil.ops.op import Op
from menzil.ops.records import Record
from menzil.watch.finding import Run

ID = Field("id", "Message", "hidden", longest=19)


class OnMessage(Act):
    """What acts on one message have in common."""

    fields = (ID,)
    nav = "/messages"

    def back(self, given: Given) -> str:
        number = given.get("id", "")
        return f"/messages/{number}" if number.isascii() and number.isdecimal() else self.nav

    def number(self, given: Given) -> int:
        """The id."""
        return whole("The id of a message", given["id"], 1)

    def found(self, run: Run, given: Given) -> Status:
        """How the message stands, or a refusal."""
        return run(messages.status(self.number(given)))


class Cancel(OnMessage):
    """End a message that waits."""

    name, title, verb, danger = "message-cancel", "Cancel a message", "Cancel it", True

    def plan(self, run: Run, given: Given) -> Plan:
        status, number = self.found(run, given), self.number(given)
        letter = run(looking_dlq.letter_of(number)) if status.status == "failed" else None
        if letter is not None and letter["blocks_key"]:
            return Plan(
                f"The dead letter of message {number} blocks its ordering key no longer.",
                f"menzil message cancel {number}",
                to=[status.channel],
                more=["Messages behind it that have the same ordering key go on."],
                leaves=["The message stays in the archive."],
            )
        return Plan(
            f"Message {number} of {status.channel} is never delivered.",
            f"menzil message cancel {number}",
            to=[status.channel],
            more=["Messages behind it that have the same ordering key go on."],
            leaves=["It stays in the archive as cancelled, and can be replayed from there."],
            warnings=[] if status.status == "pending" else [f"It is {status.status}: this comes too late."],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [messages.cancel(self.number(given))]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        if not answers[0]:
            raise UsageError(f"Message {given['id']} waits no longer, so it was not cancelled.")
        again = Undo("message-replay", given, "Send it once more")
        return Done(f"Message {given['id']} is cancelled.", next=again, noted=("message", given["id"]))


class RetryNow(OnMessage):
    """Let a message wait no longer for its time."""

    name, title, verb = "message-retry-now", "Make a message due now", "Make it due now"

    def plan(self, run: Run, given: Given) -> Plan:
        status, number = self.found(run, given), self.number(given)
        due = status.next_retry_at or status.scheduled_at
        return Plan(
            f"Message {number} of {status.channel} is due at once.",
            f"menzil message retry-now {number}",
            to=[status.channel],
            more=[f"It was due at {due:%Y-%m-%d %H:%M:%S} UTC."] if due else [],
            leaves=["It still waits for its turn, for its ordering key and for the limits of its channel."],
            warnings=[] if status.status == "pending" else [f"It is {status.status}: this changes nothing."],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [messages.retry_now(self.number(given))]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        said = "is due now" if answers[0] else "was due already, or is in flight"
        return Done(f"Message {given['id']} {said}.")


class Redrive(OnMessage):
    """Send one dead letter once more."""

    name, title, verb = "message-redrive", "Redrive a dead letter", "Redrive it"

    def letter(self, run: Run, given: Given) -> Record:
        """The dead letter of the message, or a refusal."""
        found = run(looking_dlq.letter_of(self.number(given)))
        if found is None:
            raise UsageError(f"Message {given['id']} has no dead letter.", hint="only a failed one can be redriven")
        if found["status"] != "failed":
            raise UsageError(f"Message {given['id']} was redriven already, as message {found['redriven_id']}.")
        return found

    def plan(self, run: Run, given: Given) -> Plan:
        letter = self.letter(run, given)
        key = letter["ordering_key"]
        blocks = (
            ["It blocks its ordering key: it goes first, and those behind it follow."] if letter["blocks_key"] else []
        )
        after = ["It goes behind what waits under its ordering key."] if key and not letter["blocks_key"] else []
        return Plan(
            f"The body of message {given['id']} goes to {letter['endpoint_name']} as a new message.",
            f"menzil dlq redrive {letter['id']}",
            to=[letter["endpoint_name"]],
            more=[*blocks, *after],
            leaves=["The dead letter stays in the list, as redriven."],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        return [history.redrive_message(self.letter(run, given)["id"])]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        new = answers[0]
        undo = Undo("message-take-back", given, "Take it back")
        see = [(f"Message {new}", f"/messages/{new}")]
        return Done(f"The dead letter of message {given['id']} was redriven as message {new}.", undo, see)


class TakeBack(OnMessage):
    """Cancel the message of a redrive; its dead letter is failed again."""

    name, title, verb = "message-take-back", "Take a redrive back", "Take it back"

    def letter(self, run: Run, given: Given) -> Record:
        """The dead letter, or a refusal."""
        found = run(looking_dlq.letter_of(self.number(given)))
        if found is None or found["status"] != "redriven":
            raise UsageError(f"Message {given['id']} has no dead letter that was redriven.")
        return found

    def plan(self, run: Run, given: Given) -> Plan:
        letter = self.letter(run, given)
        status = run(messages.status(letter["redriven_id"]))
        late = [] if status.status == "pending" else [f"That message is {status.status}: this comes too late."]
        return Plan(
            f"Message {letter['redriven_id']} is cancelled, and the dead letter of message {given['id']} failed again.",
            f"menzil dlq take-back {letter['id']}",
            to=[letter["endpoint_name"]],
            warnings=late,
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        return [history.redrive_take_back(self.letter(run, given)["id"])]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        if not answers[0]:
            raise UsageError(f"The new message of {given['id']} waits no longer, so it was not taken back.")
        again = Undo("message-redrive", given, "Redrive it once more")
        return Done(f"The dead letter of message {given['id']} is failed again.", next=again)


class Replay(OnMessage):
    """Send a message that has ended once more."""

    name, title, verb = "message-replay", "Replay a message", "Replay it"

    def plan(self, run: Run, given: Given) -> Plan:
        status, number = self.found(run, given), self.number(given)
        return Plan(
            f"The body of message {number} goes to {status.channel} as a new message.",
            f"menzil replay {number}",
            to=[status.channel],
            more=["It goes behind what waits under its ordering key."],
            leaves=[f"Message {number} stays as it is; a dead letter stays a dead letter."],
            warnings=["It was completed: the receiver gets it a second time."] if status.status == "completed" else [],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [history.replay_message(self.number(given))]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        new = answers[0]
        undo = Undo("message-cancel", {"id": str(new)}, "Cancel the new one")
        return Done(
            f"Message {given['id']} was replayed as message {new}.", undo, [(f"Message {new}", f"/messages/{new}")]
        )


class Erase(OnMessage):
    """Erase what a message says."""

    name, title, verb, danger, role = "message-erase", "Erase what a message says", "Erase it", True, "admin"

    def plan(self, run: Run, given: Given) -> Plan:
        self.found(run, given)
        return Plan(
            f"Body, headers, metadata, errors and responses of message {given['id']} are gone for good.",
            psql(messages.erase(self.number(given))),
            leaves=["The facts of its life stay: when, where, how often.", "Copies in the lake are not touched."],
            warnings=["There is no undo."],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [messages.erase(self.number(given))]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        said = "is erased" if answers[0] else "had nothing left to erase"
        return Done(f"What message {given['id']} said {said}.")


ACTS = (Cancel(), RetryNow(), Redrive(), TakeBack(), Replay(), Erase())
