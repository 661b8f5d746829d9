"""Send a message, or publish an event, by hand; the plan shows what it becomes in SQL, Python, a shell and curl."""

from __future__ import annotations

import json
from collections.abc import Sequence
from shlex import quote
from typing import Any, ClassVar

from menzil.console.act import Act, Done, Field, Given, Plan, Undo
from menzil.console.documents import dumps
from menzil.console.typed import digits, document, line, mapping, positive, whole
from menzil.console.words import many
from menzil.model import exact
from menzil.model.errors import UnknownNameError
from menzil.ops import looking, pubsub, sending
from menzil.ops.op import Op
from menzil.watch import events as watching
from menzil.watch.destination import destination
from menzil.watch.finding import Run

OPTIONS = (
    Field("payload", "Body", "area", default="{}", help="JSON, kept to the digit.", longest=500_000),
    Field("priority", "Priority", required=False, help="0 to 10; higher goes first.", longest=3),
    Field("ordering_key", "Ordering key", required=False, help="Messages of one key go one by one.", longest=1_000),
    Field(
        "idempotency_key",
        "Idempotency key",
        required=False,
        help="A second one with it is the first one.",
        longest=1_000,
    ),
    Field("delay", "Seconds to wait", "number", required=False, longest=12),
    Field("expires_in", "Seconds until it expires", "number", required=False, longest=12),
    Field("correlation_id", "Correlation id", required=False, help="A UUID.", longest=40),
    Field("headers", "Headers", "area", required=False, help="A JSON object of texts.", longest=20_000),
    Field("metadata", "Metadata", "area", required=False, help="A JSON object.", longest=50_000),
)
#: Options as the command line names them.
_FLAGS = {
    "priority": "--priority", "ordering_key": "--ordering-key", "idempotency_key": "--idempotency-key",
    "correlation_id": "--correlation-id",
}  # fmt: skip


def options(given: Given) -> dict[str, Any]:
    """The options that were given, as the client takes them."""
    found: dict[str, Any] = {}
    if given["priority"]:
        found["priority"] = whole("The priority", given["priority"])
    for name in ("ordering_key", "idempotency_key", "correlation_id"):
        if given[name]:
            found[name] = given[name]
    for name in ("delay", "expires_in"):
        seconds = positive(name, given[name])
        if seconds is not None:
            found[name] = seconds
    for name in ("headers", "metadata"):
        if given[name].strip():
            found[name] = mapping(name.capitalize(), given[name])
    return found


def _flags(found: dict[str, Any]) -> str:
    words = [f"{flag} {quote(str(found[name]))}" for name, flag in _FLAGS.items() if name in found]
    words += [f"--delay {digits(found['delay'])}s"] if "delay" in found else []
    words += [f"--expires {digits(found['expires_in'])}s"] if "expires_in" in found else []
    words += [f"--header {quote(f'{name}={value}')}" for name, value in found.get("headers", {}).items()]
    words += [f"--metadata {quote(dumps(found['metadata']))}"] if "metadata" in found else []
    return "".join(f" {word}" for word in words)


def _python(call: str, name: str, body: Any, found: dict[str, Any]) -> str:
    words = "".join(f", {word}={value!r}" for word, value in found.items())
    value = json.loads(dumps(body))
    rounded = "" if _same(value, body) else "  # Python rounds numbers of this body"
    return f"Menzil(dsn).{call}({name!r}, {value!r}{words}){rounded}"


def _same(value: Any, body: Any) -> bool:
    """Whether no number lost digits in Python: then its line sends another body than the form."""
    try:
        return bool(exact.loads(exact.dumps(value)) == body)
    except ValueError:  # too large for Python
        return False


class ByHand(Act):
    """What sending and publishing have in common."""

    word: ClassVar[str]
    nav = "/send"
    by_program = True

    def complete(self, query: Given) -> bool:
        # An option alone is no body: a person sees the form unless the link wrote a body.
        return bool(query.get(self.fields[0].name) and query.get("payload")) and "edit" not in query

    def parts(self, given: Given) -> tuple[str, Any, dict[str, Any]]:
        """Name, body and options."""
        return given[self.fields[0].name], document("The body", given["payload"]), options(given)

    def command(self, given: Given) -> str:
        """The command line."""
        name, body, found = self.parts(given)
        return line(self.word, name, dumps(body), options=_flags(found))


class Send(ByHand):
    """One message."""

    name, title, verb, word = "send", "Send a message", "Send it", "send"
    fields = (Field("channel", "Channel or endpoint", longest=200), *OPTIONS)

    def plan(self, run: Run, given: Given) -> Plan:
        name, body, found = self.parts(given)
        channel, endpoint = run(looking.channel(name)), run(looking.endpoint(name))
        if channel is None:
            raise UnknownNameError(f"There is no channel named {name!r}.", hint=line("channel set", name))
        told = [("Python", _python("send", name, body, found))]
        if endpoint is not None:
            place = destination(endpoint["protocol"], endpoint["config"] or {}) or endpoint["protocol"]
            if endpoint["protocol"] == "http":
                request = f"curl -X POST {quote(place)} -H 'content-type: application/json' -d {quote(dumps(body))}"
                told.append(("What the receiver gets, without headers and signature", request))
            else:
                told.append((f"What {place} gets, without headers", dumps(body)))
        return Plan(
            f"One message of {len(dumps(body).encode()):,} bytes goes to {name}.",
            self.command(given),
            to=[name],
            also=told,
            warnings=["It is paused and will hold the message."] if channel["paused"] else [],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        name, body, found = self.parts(given)
        return [sending.send(name, body, dumps=dumps, **found)]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        number = answers[0]
        undo = Undo("message-cancel", {"id": str(number)}, "Cancel it")
        return Done(
            f"Message {number} is sent to {given['channel']}.",
            undo,
            [(f"Message {number}", f"/messages/{number}")],
            noted=("message", str(number)),
            answer={"id": number},
        )


class Publish(ByHand):
    """One event."""

    name, title, verb, word = "publish", "Publish an event", "Publish it", "publish"
    fields = (Field("event_type", "Event type", longest=200), *OPTIONS)

    def plan(self, run: Run, given: Given) -> Plan:
        name, body, found = self.parts(given)
        run(pubsub.validate_event(name, body, dumps=dumps))
        told = watching.tested(run, name, body)["subscriptions"]
        to = [one["endpoint_name"] for one in told if one["matches"]]
        return Plan(
            f"Event {name} makes {many(len(to), 'message')}.",
            self.command(given),
            count=len(to),
            to=to,
            also=[("Python", _python("publish", name, body, found))],
            leaves=[f"{one['endpoint_name']} does not get it: {one['why']}." for one in told if not one["matches"]][
                :10
            ],
            warnings=[] if to else ["No subscription matches: no message would be made."],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        name, body, found = self.parts(given)
        return [pubsub.publish(name, body, dumps=dumps, **found)]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        return Done(
            f"{given['event_type']} is published as {many(answers[0], 'message')}.",
            see=[("Messages", "/messages")],
            noted=("event_type", given["event_type"]),
            answer={"messages": answers[0]},
        )


ACTS = (Send(), Publish())
