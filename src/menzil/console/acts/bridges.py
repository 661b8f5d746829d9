"""Acts on a bridge: pause and resume."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from menzil.console.act import Act, Done, Field, Given, Plan, Undo
from menzil.console.typed import line
from menzil.model.errors import UnknownNameError
from menzil.ops import bridges
from menzil.ops.op import Op
from menzil.ops.records import Record
from menzil.watch.finding import Run

BRIDGE = Field("bridge", "Bridge", "hidden", longest=200)


class OnBridge(Act):
    """What acts on one bridge have in common."""

    fields: ClassVar[tuple[Field, ...]] = (BRIDGE,)
    nav = "/bridges"

    def found(self, run: Run, given: Given) -> Record:
        """The bridge, or a refusal."""
        bridge = run(bridges.bridge(given["bridge"]))
        if bridge is None:
            raise UnknownNameError(f"There is no bridge named {given['bridge']!r}.")
        return bridge


class Pause(OnBridge):
    """Take nothing for now."""

    name, title, verb = "bridge-pause", "Pause a bridge", "Pause"

    def plan(self, run: Run, given: Given) -> Plan:
        bridge = self.found(run, given)
        return Plan(
            f"Bridge {given['bridge']} takes no records until it is resumed.",
            line("bridge pause", given["bridge"]),
            more=["A process that runs it hears so with its next heartbeat."] if bridge["processes"] else [],
            leaves=["Its position stays, and what it took is delivered. The source must keep what comes meanwhile."],
            warnings=["It is paused already."] if bridge["paused"] else [],
        )

    def is_so(self, run: Run, given: Given) -> bool:
        return bool(self.found(run, given)["paused"])

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [bridges.bridge_pause(given["bridge"])]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del answers
        return Done(f"Bridge {given['bridge']} is paused.", Undo("bridge-resume", given, "Resume"))


class Resume(OnBridge):
    """Let a bridge go on."""

    name, title, verb = "bridge-resume", "Resume a bridge", "Resume"

    def plan(self, run: Run, given: Given) -> Plan:
        bridge = self.found(run, given)
        warnings = [] if bridge["paused"] else ["It is not paused."]
        if not bridge["processes"]:
            warnings.append("No process runs it: start one with `menzil bridge run`.")
        return Plan(
            f"Bridge {given['bridge']} takes records again, from its position on.",
            line("bridge resume", given["bridge"]),
            warnings=warnings,
        )

    def is_so(self, run: Run, given: Given) -> bool:
        return not self.found(run, given)["paused"]

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [bridges.bridge_resume(given["bridge"])]

    def done(self, answers: Sequence[Any], given: Given) -> Done:
        del answers
        return Done(f"Bridge {given['bridge']} takes records again.", Undo("bridge-pause", given, "Pause"))


ACTS = (Pause(), Resume())
