"""When circuits were open, from the lines of the event log."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from menzil.report.figures import Row

#: The events that turn a circuit.
OPENED, CLOSED = "circuit.opened", ("circuit.closed", "circuit.reset")


class Turn(NamedTuple):
    """A circuit that opened or closed."""

    id: int
    channel: str
    event_type: str
    created_at: datetime


def incidents(turns: Iterable[Turn]) -> list[Row]:
    """From each opening of a circuit to its closing, newest first; a failed probe in between is the same incident."""
    found: list[Row] = []
    running: dict[str, Row] = {}
    for turn in sorted(turns, key=lambda turn: (turn.created_at, turn.id)):
        incident = running.get(turn.channel)
        if turn.event_type == OPENED:
            if incident is None:
                row = {"channel": turn.channel, "opened_at": turn.created_at, "closed_at": None, "openings": 1}
                incident = running[turn.channel] = {**row, "seconds": None}
                found.append(incident)
            else:
                incident["openings"] += 1
        elif incident is not None:
            incident["closed_at"] = turn.created_at
            incident["seconds"] = (turn.created_at - incident["opened_at"]).total_seconds()
            del running[turn.channel]
    return sorted(found, key=lambda row: row["opened_at"], reverse=True)
