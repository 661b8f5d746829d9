"""The act on settings: change one, with its range and its old value."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import Any

from menzil.console.act import Act, Change, Done, Field, Given, Plan, Undo
from menzil.model.errors import UnknownNameError
from menzil.ops import upkeep
from menzil.ops.op import Op
from menzil.watch import settings as watching
from menzil.watch.finding import Run

#: Stands for the empty text: a field that is needed is not left empty, and a link leaves empty words out.
EMPTY = '""'


def meant(given: Given) -> str:
    """The value that a person means."""
    return "" if given["value"].strip() == EMPTY else given["value"]


class Set(Act):
    """Change a setting for every client and worker."""

    name, title, verb, role = "setting-set", "Change a setting", "Set it", "admin"
    lists_changes = True
    fields = (
        Field("setting", "Setting", "hidden", longest=100),
        Field("value", "Value", help='The word default sets it back; "" is the empty text.', longest=5_000),
    )
    nav = "/settings"

    def found(self, run: Run, given: Given) -> dict[str, Any]:
        """The setting, or a refusal."""
        found = watching.one(run, given["setting"])
        if found is None:
            raise UnknownNameError(f"There is no setting named {given['setting']!r}.")
        return found

    def prefill(self, run: Run, given: Given) -> Given:
        return {"value": str(self.found(run, given)["value"]) or EMPTY}

    def plan(self, run: Run, given: Given) -> Plan:
        found = self.found(run, given)
        value = meant(given)
        new = found["default_value"] if value.strip().lower() == "default" else value
        return Plan(
            f"{found['name']} counts for every client and worker from the next transaction on.",
            f"menzil settings set {quote(found['name'])} {quote(value)}",
            changes=[Change(found["name"], str(found["value"]), str(new))],
            more=[str(found["description"]), f"It may be: {found['range']}." if found["range"] else ""],
            warnings=["It has this value already."] if new == found["value"] else [],
        )

    def ops(self, run: Run, given: Given) -> Sequence[Op[Any]]:
        del run
        return [upkeep.set_setting(given["setting"], meant(given))]

    def execute(self, run: Run, given: Given) -> Done:
        old = str(self.found(run, given)["value"])
        for op in self.ops(run, given):
            run(op)
        now = self.found(run, given)["value"]
        said = old if len(old) <= 40 else "the old value"
        undo = Undo(self.name, {"setting": given["setting"], "value": old or EMPTY}, f"Back to {said or EMPTY}")
        return Done(f"{given['setting']} is now {now or 'empty'}.", undo if now != old else None)


ACTS = (Set(),)
