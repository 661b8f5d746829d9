"""Acts on a channel that are harder to take back: limits, release, purge."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from shlex import quote
from typing import Any

from menzil.console.act import Change, Done, Field, Given, Plan, Undo
from menzil.console.acts.channels import CHANNEL, OnChannel
from menzil.console.typed import NONE, line, perhaps, positive, whole
from menzil.console.words import CAP, capped, many, span
from menzil.ops import channels, looking, why
from menzil.ops.op import Op
from menzil.ops.records import Record
from menzil.watch.finding import Run

_LIMITS = {
    "max_concurrency": "In flight at most", "max_size": "Messages at most", "release_count": "Messages per window",
    "interval": "Seconds of a window", "on_dead": "After a dead letter",
}  # fmt: skip


class Limits(OnChannel):
    """Change what a channel allows; nothing that is under way is broken off."""

    name, title, verb = "channel-limits", "Change the limits of a channel", "Set the limits"
    lists_changes = True
    fields = (
        CHANNEL,
        Field("max_concurrency", "In flight at most", help="A number, or none.", default=NONE, longest=12),
        Field("max_size", "Messages it holds at most", help="A number, or none.", default=NONE, longest=12),
        Field("release_count", "Messages per window", help="With the window: a rate limit.", default="1", longest=12),
        Field("interval", "Seconds of a window", help="0 for no rate limit.", default="0", longest=12),
        Field(
            "on_dead", "After a dead letter", "choice", default="continue",
            choices=(("continue", "its ordering key goes on"), ("block", "its ordering key waits for a decision")),
        ),
    )  # fmt: skip

    def prefill(self, run: Run, given: Given) -> Given:
        return _as_typed(self.found(run, given))

    def plan(self, run: Run, given: Given) -> Plan:
        old, asked = _as_typed(self.found(run, given)), _asked(given)
        changes = [Change(label, old[name], given[name]) for name, label in _LIMITS.items() if old[name] != given[name]]
        (state,) = run(why.channel_state(given["channel"]))
        words = ["--max-concurrency", given["max_concurrency"], "--max-size", given["max_size"]]
        words += ["--release-interval", f"{given['interval']}s", "--release-count", given["release_count"]]
        told = f" {' '.join(map(quote, words))} --on-dead {given['on_dead']}"
        return Plan(
            f"Channel {given['channel']} gets other limits." if changes else "Nothing would change.",
            line("channel set", given["channel"], options=told),
            changes=changes,
            more=predicted(state, asked),
            leaves=["Nothing that is in flight is broken off, and nothing that waits is lost."],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [channels.channel_set(given["channel"], **_asked(given))]

    def execute(self, run: Run, given: Given) -> Done:
        old = {"channel": given["channel"], **_as_typed(self.found(run, given))}
        for op in self.ops(run, given):
            run(op)
        return Done(f"Channel {given['channel']} has its new limits.", Undo(self.name, old, "Back to the old limits"))


def _as_typed(channel: Record) -> dict[str, str]:
    return {
        "max_concurrency": str(channel["max_concurrency"] or NONE),
        "max_size": str(channel["max_size"] or NONE),
        "release_count": str(channel["release_count"] or 1),
        "interval": _seconds(channel["release_interval_ms"] or 0),
        "on_dead": channel["on_dead"],
    }


def _seconds(ms: int) -> str:
    whole_seconds, rest = divmod(ms, 1000)
    return f"{whole_seconds}.{rest:03}".rstrip("0") if rest else str(whole_seconds)


def _asked(given: Given) -> dict[str, Any]:
    seconds = given["interval"]
    return {
        "max_concurrency": perhaps("In flight at most", given["max_concurrency"], 1),
        "max_size": perhaps("Messages it holds at most", given["max_size"], 1),
        "release_count": whole("Messages per window", given["release_count"], 1),
        "release_interval": 0 if seconds == "0" else positive("Seconds of a window", seconds) or 0,
        "on_dead": given["on_dead"],
    }


def predicted(state: Record, asked: dict[str, Any]) -> list[str]:
    """What the new limits would mean at this moment."""
    found, slots, busy = [], asked["max_concurrency"], state["in_flight"]
    waiting = state["waiting"]
    if slots is not None and busy > slots:
        found.append(
            f"{busy} are in flight: {busy - slots} will finish, and nothing starts until fewer than {slots} are."
        )
    elif slots is not None:
        found.append(f"{busy} are in flight: {many(slots - busy, 'more message')} may start at once.")
    if asked["release_interval"]:
        found.append(f"At most {asked['release_count']} in {span(asked['release_interval'])}.")
        windows = ceil(waiting / asked["release_count"]) - 1  # the first ones may go at once
        if windows > 0:
            found.append(f"The {capped(waiting)} that wait take at least {span(windows * asked['release_interval'])}.")
    held = waiting + state["scheduled"] + busy  # all that counts against its size
    more = " or more" if state["at_least"] or max(waiting, state["scheduled"]) > CAP else ""
    if asked["max_size"] is not None and held >= asked["max_size"]:
        found.append(f"It holds {held:,}{more}: sends are refused until fewer than {asked['max_size']:,} are left.")
    elif asked["max_size"] is not None and more:
        found.append(f"It holds {held:,}{more}: sends are refused while it holds {asked['max_size']:,}.")
    return found


class Release(OnChannel):
    """Take no more messages, drain, disappear."""

    name, title, verb, danger = "channel-release", "Release a channel", "Release it", True

    def plan(self, run: Run, given: Given) -> Plan:
        self.found(run, given)
        (state,) = run(why.channel_state(given["channel"]))
        return Plan(
            f"Channel {given['channel']} takes no new messages, hands out what it has, and then disappears.",
            line("channel release", given["channel"]),
            more=[f"{capped(state['waiting'])} wait and {state['in_flight']} are in flight; these are delivered."],
            leaves=["Its history stays.", "Dead letters stay, but can be redriven only while the channel is there."],
            warnings=["There is no undo but to make a channel of the same name once it is gone."],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [channels.channel_release(given["channel"])]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del answers
        return Done(f"Channel {given['channel']} drains and then disappears.")


class Purge(OnChannel):
    """Cancel all that waits."""

    name, title, verb, danger = "channel-purge", "Purge a channel", "Cancel all that waits", True

    def plan(self, run: Run, given: Given) -> Plan:
        self.found(run, given)
        held = run(looking.load(given["channel"]))
        count = int(held["pending"])
        return Plan(
            f"Everything that waits in {given['channel']} is cancelled.",
            line("channel purge", given["channel"], options=" --yes"),
            count=count,
            at_least=count + held["processing"] >= looking.CAP,
            leaves=[
                f"{held['processing']} in flight go on.",
                "What is cancelled stays in the archive and can be replayed.",
            ],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [channels.channel_purge(given["channel"])]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        return Done(f"{many(answers[0], 'message')} of {given['channel']} cancelled.")


ACTS = (Limits(), Release(), Purge())
