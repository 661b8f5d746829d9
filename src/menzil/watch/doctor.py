"""The doctor's round: what the queue says about itself, and what the server does to its tables."""

from __future__ import annotations

from menzil.ops import watch
from menzil.watch import archive, server
from menzil.watch.examine import examine
from menzil.watch.finding import Finding, Level, Look, Run

_LEVELS: dict[str, Level] = {"ok": "ok", "warning": "warning", "error": "critical"}


# The command for a person at a terminal. The other checks keep the hint of the database.
_COMMANDS = {
    "copy": "menzil adopt, if it is to be live",
    "oldest_message": "menzil worker",
    "leases": "menzil worker",
    "schedules": "menzil schedule list, and menzil worker if none runs",
    "circuits": "menzil endpoint health, and menzil endpoint reset NAME when it is well again",
    "dead_letters": "menzil dlq causes, then menzil dlq redrive --endpoint NAME --yes",
    "ordering_keys": "menzil dlq list, then menzil dlq redrive ID or menzil message cancel ID",
    "archive_default": "menzil archive maintain",
    "archive_partitions": "menzil archive maintain",
}


def health(run: Run) -> list[Finding]:
    """The queue's own checks: backlog, workers, jobs, circuits, dead letters, snapshots and more."""
    found = []
    for row in run(watch.health_check()):
        # Of a channel at its limits the database itself names the command: a worker more would change nothing.
        told = row.hint if "menzil channel set " in (row.hint or "") else _COMMANDS.get(row.name, row.hint)
        repair = None if row.status == "ok" else told
        found.append(Finding(row.name.replace("_", " "), _LEVELS[row.status], row.detail, repair))
    return found


#: In the order in which they are told.
LOOKS: dict[str, Look] = {
    "health": health,
    "months": archive.attached,
    "dead rows": server.dead_rows,
    "indexes": server.indexes,
    "encoding": server.encoding,
    "parameters": server.parameters,
    "redaction": server.redaction,
}


def examine_queue(run: Run) -> list[Finding]:
    """Look at everything and change nothing."""
    return examine(run, LOOKS)
