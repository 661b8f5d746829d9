"""Acts on a channel: pause and resume."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from menzil.console.act import Act, Done, Field, Given, Plan, Undo
from menzil.console.texts import slug
from menzil.console.typed import line
from menzil.model.errors import UnknownNameError
from menzil.ops import channels, looking, why
from menzil.ops.op import Op
from menzil.ops.records import Record
from menzil.watch.finding import Run

CHANNEL = Field("channel", "Channel", "hidden", longest=200)


class OnChannel(Act):
    """What acts on one channel have in common."""

    fields: ClassVar[tuple[Field, ...]] = (CHANNEL,)
    nav = "/channels"

    def back(self, given: Given) -> str:
        name = given.get("channel", "")
        return f"/channels/{slug(name)}" if name else self.nav

    def found(self, run: Run, given: Given) -> Record:
        """The channel, or a refusal."""
        channel = run(looking.channel(given["channel"]))
        if channel is None:
            raise UnknownNameError(f"There is no channel named {given['channel']!r}.")
        return channel


class Pause(OnChannel):
    """Hold a channel."""

    name, title, verb = "channel-pause", "Pause a channel", "Pause"

    def plan(self, run: Run, given: Given) -> Plan:
        channel = self.found(run, given)
        (state,) = run(why.channel_state(given["channel"]))  # the view counts only where the channel has a limit
        return Plan(
            f"Channel {given['channel']} accepts messages and hands none out.",
            line("channel pause", given["channel"]),
            more=[f"In flight now: {state['in_flight']}. These may finish."],
            leaves=["What waits stays where it is, and new messages are accepted."],
            warnings=["It is paused already."] if channel["paused"] else [],
        )

    def is_so(self, run: Run, given: Given) -> bool:
        return bool(self.found(run, given)["paused"])

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [channels.channel_pause(given["channel"])]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del answers
        return Done(f"Channel {given['channel']} holds its messages.", Undo("channel-resume", given, "Resume"))


class Resume(OnChannel):
    """Let a channel go on."""

    name, title, verb = "channel-resume", "Resume a channel", "Resume"

    def plan(self, run: Run, given: Given) -> Plan:
        channel = self.found(run, given)
        return Plan(
            f"Channel {given['channel']} hands out what it held.",
            line("channel resume", given["channel"]),
            warnings=[] if channel["paused"] else ["It is not paused."],
        )

    def is_so(self, run: Run, given: Given) -> bool:
        return not self.found(run, given)["paused"]

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [channels.channel_resume(given["channel"])]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del answers
        return Done(f"Channel {given['channel']} hands out its messages.", Undo("channel-pause", given, "Pause"))


ACTS = (Pause(), Resume())
