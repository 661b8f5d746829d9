"""The tables of the page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from menzil.report.charts import small, svg
from menzil.report.figures import Figures, Row, Slo, due, share
from menzil.report.words import left, percent, redrive_command, when


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


def _table(heads: Sequence[tuple[str, bool]], lines: Sequence[str]) -> str:
    told = "".join(f'<th class="{"left" if to_left else ""}">{escape(head)}</th>' for head, to_left in heads)
    return f'<div class="wide"><table><thead><tr>{told}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _cell(label: str, value: str) -> str:
    """A number; a phone shows its label beside it."""
    return f'<td data-label="{escape(label, quote=True)}"><span>{value}</span></td>'


def endpoints(figures: Figures) -> str:
    """One line per endpoint, with its shape over time."""
    first, last = figures.times[0]["bucket"], figures.times[-1]["bucket"]
    lines = []
    for row in figures.endpoints:
        delivered, within = share(row["completed"], due(row)), share(row["within"], due(row))
        latency, wait = row["delivered_s"] or [None] * 3, row["first_s"] or [None] * 3
        shape = small.sparkline(figures.series.get(row["channel"], []), first, last, figures.width)
        cells = [_cell("sent", f"{row['sent']:,}"), _cell("delivered", percent(delivered))]
        if figures.before is not None:
            cells.append(_cell("before", _before(figures, row)))
        cells += [
            _cell("first try p50", svg.seconds(wait[0])),
            _cell("delivered p50", svg.seconds(latency[0])),
            _cell("p99", svg.seconds(latency[2])),
            _cell("retried", percent(share(row["retried"], row["sent"]))),
            _cell("dead", f"{row['failed']:,}"),
            _cell("goal", percent(within) + _meter(within, figures.slo.share)),
        ]
        name = escape(row["channel"])
        lines.append(f'<tr><td class="left name">{name}</td><td class="left">{shape}</td>{"".join(cells)}</tr>')
    heads = ["sent", "delivered", *(["before"] if figures.before is not None else [])]
    heads += ["first try p50", "delivered p50", "p99", "retried", "dead", "goal"]
    return _table([("endpoint", True), ("over time", True), *((head, False) for head in heads)], lines)


def _before(figures: Figures, row: Row) -> str:
    then = figures.endpoints_before.get(row["channel"])
    return "–" if then is None else percent(share(then["completed"], due(then)))


def errors(figures: Figures) -> str:
    """One line per cause, with a sample as it was written and the command that sends them once more."""
    lines = []
    for row in figures.errors:
        final = row["class"] != "RETRYABLE"
        where = escape(row["channel"]) + (f" and {row['endpoints'] - 1:,} more" if row["endpoints"] > 1 else "")
        command = f'<code class="cmd">{escape(redrive_command(row))}</code>' if left(figures, row) else ""
        lines.append(
            f"<tr>{_cell('messages', format(row['messages'], ','))}"
            f'<td class="cause"><span class="tag{" final" if final else ""}">'
            f"{escape(row['class'].lower())}</span><code>{escape(row['cause'] or 'no error was given')}</code>"
            f"<small>message {row['sample_id']}: {escape(row['sample'] or '')}</small>{command}</td>"
            f'<td class="left name">{where}</td>{_cell("first", when(row["first_at"]))}'
            f"{_cell('last', when(row['last_at']))}</tr>"
        )
    heads = [("messages", False), ("cause, one of them, and what sends them once more", True), ("endpoint", True)]
    return _table([*heads, ("first", False), ("last", False)], lines)


def incidents(rows: Sequence[Row]) -> str:
    """The newest incidents."""
    lines = [
        f'<tr><td class="left name">{escape(row["channel"])}</td>{_cell("opened", when(row["opened_at"]))}'
        f"{_cell('closed', when(row['closed_at']) if row['closed_at'] else 'still open')}"
        f"{_cell('lasted', svg.seconds(row['seconds']))}{_cell('failed probes', str(max(row['openings'] - 1, 0)))}</tr>"
        for row in rows
    ]
    heads = ("opened", "closed", "lasted", "failed probes")
    return _table([("endpoint", True), *((head, False) for head in heads)], lines)
