"""Who acts, for the event log: a name and a way, for the transaction that is open."""

from __future__ import annotations

from typing import Literal

from menzil.ops import op, values
from menzil.ops.op import Op

#: Ways that the event log knows; a session that says nothing acts through `sql`, a worker through `worker`.
Via = Literal["console", "cli", "worker", "pipeline", "sql"]

_ACT_AS = "select set_config('menzil.actor', %s::text, true), set_config('menzil.via', %s::text, true)"

_NOTE = "select menzil.note_act(%s::text, %s::text, %s::text)"


def act_as(actor: str, via: Via) -> Op[None]:
    """Name the actor of what this transaction does; nothing stays in the session."""
    return Op(_ACT_AS, (actor.replace("\0", " ")[:200], via), op.nothing)


def note_act(act: str, kind: str, entity: str) -> Op[None]:
    """menzil.note_act: the line of an act that leaves none of its own."""
    params = (values.text("act", act), values.text("kind", kind), values.text("entity", entity[:255]))
    return Op(_NOTE, params, op.nothing)
