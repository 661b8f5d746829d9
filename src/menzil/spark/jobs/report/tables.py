"""The tables of the page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from menzil.spark.jobs.report.charts import small, svg
from menzil.spark.jobs.report.figures import Figures, Row, Slo


def due(row: Row) -> int:
    """Messages that should have been delivered: nobody took them back."""
    return int(row["sent"] - row["cancelled"])


def share(part: int, whole: int) -> float | None:
    """A part of a whole, or None when there is no whole."""
    return part / whole if whole else None


def percent(value: float | None) -> str:
    """A share as people say it. What is not all is never shown as 100 %."""
    if value is None:
        return "–"
    shown = f"{100 * value:.2f}"
    if value < 1 and shown == "100.00":
        shown = "99.99"
    return f"{shown.rstrip('0').rstrip('.')} %"


def verdict(attained: float | None, slo: Slo) -> str:
    """Whether the goal was met, and by how much it was missed."""
    if attained is None:
        return "nothing to deliver"
    if attained >= slo.share:
        return "met"
    return f"missed by {100 * (slo.share - attained):.2g} points"


def _meter(value: float | None, goal: float) -> str:
    if value is None:
        return ""
    return f'<span class="meter{"" if value >= goal else " low"}"><i style="width:{100 * value:.1f}%"></i></span>'


def endpoints(figures: Figures) -> str:
    """One line per endpoint, with its shape over time."""
    first, last = figures.times[0]["bucket"], figures.times[-1]["bucket"]
    lines = []
    for row in figures.endpoints:
        delivered, within = share(row["completed"], due(row)), share(row["within"], due(row))
        latency, wait = row["delivered_s"] or [None] * 3, row["first_s"] or [None] * 3
        shape = small.sparkline(figures.series.get(row["channel"], []), first, last, figures.width)
        lines.append(
            f'<tr><td class="left name">{escape(row["channel"])}</td><td class="left">{shape}</td>'
            f"<td>{row['sent']:,}</td>"
            f"<td>{percent(delivered)}</td><td>{svg.seconds(wait[0])}</td><td>{svg.seconds(latency[0])}</td>"
            f"<td>{svg.seconds(latency[2])}</td><td>{percent(share(row['retried'], row['sent']))}</td>"
            f"<td>{row['failed']:,}</td><td>{percent(within)}{_meter(within, figures.slo.share)}</td></tr>"
        )
    heads = ("sent", "delivered", "first try p50", "delivered p50", "p99", "retried", "dead", "goal")
    return (
        '<div class="wide"><table><thead><tr><th class="left">endpoint</th><th class="left">over time</th>'
        + "".join(f"<th>{head}</th>" for head in heads)
        + f"</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def errors(rows: Sequence[Row]) -> str:
    """One line per cause, with a sample as it was written."""
    lines = []
    for row in rows:
        final = row["class"] != "RETRYABLE"
        where = escape(row["channel"]) + (f" and {row['endpoints'] - 1:,} more" if row["endpoints"] > 1 else "")
        lines.append(
            f'<tr><td>{row["messages"]:,}</td><td class="cause"><span class="tag{" final" if final else ""}">'
            f"{escape(row['class'].lower())}</span><code>{escape(row['cause'] or 'no error was given')}</code>"
            f"<small>message {row['sample_id']}: {escape(row['sample'] or '')}</small></td>"
            f'<td class="left name">{where}</td><td>{_when(row["first_at"])}</td><td>{_when(row["last_at"])}</td></tr>'
        )
    return (
        '<div class="wide"><table><thead><tr><th>messages</th><th class="left">cause, and one of them</th>'
        '<th class="left">endpoint</th><th>first</th><th>last</th></tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def incidents(rows: Sequence[Row]) -> str:
    """The newest incidents."""
    lines = [
        f'<tr><td class="left name">{escape(row["channel"])}</td><td>{_when(row["opened_at"])}</td>'
        f"<td>{_when(row['closed_at']) if row['closed_at'] else 'still open'}</td>"
        f"<td>{svg.seconds(row['seconds'])}</td><td>{max(row['openings'] - 1, 0)}</td></tr>"
        for row in rows
    ]
    return (
        '<div class="wide"><table><thead><tr><th class="left">endpoint</th><th>opened</th><th>closed</th>'
        "<th>lasted</th>"
        f"<th>failed probes</th></tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _when(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%d %b %Y %H:%M")
