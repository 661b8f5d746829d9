"""What top shows: each view is asked once a second for a picture, which is a few lines and a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from menzil.cli.show import cell, count, duration
from menzil.model.redact import Redactor
from menzil.ops import endpoints, history, watch
from menzil.watch import channels, messages, overview
from menzil.watch.finding import Run
from menzil.watch.frame import frame
from menzil.watch.redaction import redacted, redactor
from menzil.watch.states import number
from menzil.watch.workers import takes

Row = dict[str, Any]

#: Columns that an operator reads first stand first: a narrow terminal cuts the others off.
_CHANNEL_COLUMNS = [
    "channel", "state", "waiting", "oldest", "in flight", "dead", "failed", "in/min", "out/min", "workers",
]  # fmt: skip
_ENDPOINT_COLUMNS = ["endpoint_name", "circuit_state", "circuit_failure_count", "pending_messages", "in_flight"]


@dataclass(frozen=True, slots=True)
class Picture:
    """Lines above a table; `key` is the column that tells rows apart."""

    lines: list[str]
    columns: list[str]
    rows: list[Row]
    key: str


@dataclass(frozen=True, slots=True)
class View:
    """Something to look at; `opens` is what Enter on a row leads to."""

    title: str
    look: Callable[[Run], Picture]
    opens: Callable[[Row], View] | None = None
    sorts: bool = field(default=False)


def queue(sort: str = "oldest", contains: str = "") -> View:
    """The whole queue: a head line and its channels."""

    def look(run: Run) -> Picture:
        found = frame(run, sort=sort, contains=contains)
        filtered = f", names with {contains!r}" if contains else ""
        lines = [*head(found), f"channels by {sort.replace('_', ' ')}{filtered}"]
        if not found["channels"]:
            lines.append(_no_channel(contains))
        shown = [_channel(row) for row in found["channels"]]
        return Picture(lines, _CHANNEL_COLUMNS, shown, "channel")

    return View("queue", look, lambda row: channel(row["channel"]), sorts=True)


def _no_channel(contains: str) -> str:
    if contains:
        return f"No channel has {contains!r} in its name."
    return "There are no channels yet. Make one with `menzil channel set` or `menzil endpoint create`."


def head(found: Row) -> list[str]:
    """The numbers of a frame on one line."""
    rates, p95 = found["rates"], found["p95_ms"]
    parts = [
        f"waiting {found['waiting']:,}",
        f"oldest {duration(found['oldest_s'])}",
        f"in flight {found['in_flight']:,}",
        f"dead {overview.dead(found)}",
        f"p95 {'-' if p95 is None else milliseconds(p95)}",
        f"workers {found['workers_alive']}",
        f"sent {_rate(rates['sent'])}/min",
        f"completed {_rate(rates['completed'])}/min",
        f"failed tries {_rate(rates['failed_tries'])}/min",
    ]
    since = found["uncounted_since"]
    stopped = (
        [f"not counted since {cell(since)}: the job pulse, which runs inside workers, does not run"] if since else []
    )
    return ["   ".join(parts), *stopped]


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def milliseconds(value: float) -> str:
    """A latency in the unit that a person would choose."""
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.1f} s" if value < 60_000 else duration(value / 1000)


def _channel(row: Row) -> Row:
    limit = "" if row["max_concurrency"] is None else f"/{row['max_concurrency']}"
    share = row["failure_share"]
    return {
        "channel": row["channel"],
        "state": row["state"],
        "waiting": number(row["waiting"], row["at_least"]),
        "oldest": "-" if row["oldest_s"] is None else duration(row["oldest_s"]),
        "in flight": f"{row['in_flight']}{limit}",
        "in/min": _rate(row["in_per_minute"]),
        "out/min": _rate(row["out_per_minute"]),
        "failed": "-" if share is None else f"{100 * share:.1f} %",
        "dead": number(row["dead"]),
        "workers": "-" if row["workers"] is None else row["workers"],
    }


def _fact(word: str, value: Any) -> str:
    return f"oldest {duration(value)}" if word == "oldest_s" else f"{word.replace('_', ' ')} {cell(value)}"


def channel(name: str) -> View:
    """One channel: what it hands out next, and the keys that dead letters block."""

    def look(run: Run) -> Picture:
        found = channels.channel(run, name, redactor=_hides(run))
        shown = ("state", "waiting", "scheduled", "oldest_s", "in_flight", "max_concurrency", "rate_used", "rate_limit")
        facts = [_fact(word, found[word]) for word in shown if found[word] is not None]
        blocked = [
            f"key {cell(one['ordering_key'])} is blocked by dead letter {one['id']}: {cell(one['last_error'], 100)}"
            for one in found["blocked"] or ()
        ]
        empty = [] if found["next"] else ["No message of it is due."]
        if found["next"] is None:
            empty = ["This role may not read messages."]
        columns = ["id", "priority", "ordering_key", "attempt", "created_at", "expires_at"]
        return Picture(
            [f"channel {cell(name)}", "   ".join(facts), *blocked, *empty], columns, found["next"] or [], "id"
        )

    return View(f"channel {name}", look, lambda row: message(row["id"]))


def message(message_id: int) -> View:
    """One message: why it waits, and its life."""

    def look(run: Run) -> Picture:
        hide = _hides(run)
        reasons = messages.waits(run, message_id, redactor=hide)["why"]
        told = messages.life(run, message_id, redactor=hide)["life"]
        lines = [f"message {message_id}"]
        for reason in reasons:
            lines.append(f"{cell(reason['reason']).replace('_', ' ')}: {cell(reason['sentence'])}")
            lines += [f"  → {cell(reason['repair'])}"] if reason["repair"] else []
        rows = [
            {**row, "n": place, "what": row["what"].replace("_", " ").replace(".", " ")}
            for place, row in enumerate(told)
        ]
        return Picture(lines, ["at", "what", "sentence", "worker", "attempt", "message_id"], rows, "n")

    return View(f"message {message_id}", look)


def endpoint_list() -> View:
    """Endpoints and how they are."""

    def look(run: Run) -> Picture:
        hide = _hides(run)
        rows = [redacted(row, hide) for row in run(endpoints.get_endpoint_health())]
        there = rows[0] if rows else {}
        columns = [*_ENDPOINT_COLUMNS, *(name for name in there if name not in _ENDPOINT_COLUMNS)]
        empty = "There are no endpoints. Make one with `menzil endpoint create`."
        return Picture([count(len(rows), "endpoint") if rows else empty], columns, rows, "endpoint_name")

    return View("endpoints", look, lambda row: channel(row["endpoint_name"]))


def causes() -> View:
    """Dead letters by what went wrong."""

    def look(run: Run) -> Picture:
        hide = _hides(run)
        rows = [redacted(row, hide) for row in run(history.dlq_causes(None, 50))]
        for place, row in enumerate(rows):
            row["n"] = place
        columns = ["failed_count", "endpoint_name", "error_class", "cause", "oldest_failed_at", "newest_failed_at"]
        lines = ["dead letters by cause" if rows else "There are no dead letters."]
        return Picture(lines, columns, rows, "n")

    return View("causes", look, lambda row: channel(row["endpoint_name"]))


def workers() -> View:
    """Who is at work."""

    def look(run: Run) -> Picture:
        rows = [{**asdict(one), "channels": ", ".join(takes(one.channels))} for one in run(watch.get_worker_status())]
        columns = ["worker", "status", "host", "pid", "version", "channels", "in_flight", "concurrency", "delivered"]
        lines = [count(len(rows), "worker") if rows else "No worker is known. Start one with `menzil worker`."]
        return Picture(lines, [*columns, "failed", "last_heartbeat_at"], rows, "worker")

    return View("workers", look)


def _hides(run: Run) -> Redactor:
    # A screen is looked at by more people than the one at the keyboard.
    return redactor(run)
