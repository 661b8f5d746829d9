"""The page: one HTML file without scripts. Every value that comes from outside is escaped."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape

from menzil.spark.jobs.report import tables
from menzil.spark.jobs.report.charts import small, svg, times
from menzil.spark.jobs.report.figures import Figures
from menzil.spark.jobs.report.frames import MOST_TRIES
from menzil.spark.jobs.report.style import STYLE

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(figures: Figures) -> str:
    """The whole document."""
    parts = [_header(figures)]
    if figures.total["sent"]:
        parts += [
            _cards(figures),
            _volume(figures),
            _latency(figures),
            _rhythm(figures),
            _endpoints(figures),
            _leaders(figures),
        ]
        parts += [_errors(figures), _circuits(figures)]
    else:
        parts.append('<section><p class="none">There is no ended message in this window.</p></section>')
    parts.append(_footer(figures))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Delivery report</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><main>{''.join(parts)}</main></body></html>\n"
    )


def section(title: str, why: str, body: str) -> str:
    """A titled card."""
    return f'<section><h2>{escape(title)}</h2><p class="why">{escape(why)}</p>{body}</section>'


def _when(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%d %b %Y %H:%M")


def _header(figures: Figures) -> str:
    total = figures.total
    window = f"<b>{_when(total['first_at'])}</b> to <b>{_when(total['last_at'])}</b> UTC" if total["sent"] else "empty"
    return (
        f"<header><h1>Delivery report</h1><p>{window}<br>from {escape(figures.source)}, "
        f"made {_when(figures.made_at)} UTC</p></header>"
    )


def _cards(figures: Figures) -> str:
    total, slo = figures.total, figures.slo
    due = tables.due(total)
    attained = tables.share(total["within"], due)
    delivered = tables.share(total["completed"], due)
    first, all_the_way = total["first_s"] or [None] * 3, total["delivered_s"] or [None] * 3
    cards = [
        ("Messages", svg.short(total["sent"]), f"to {figures.endpoint_count:,} endpoints", ""),
        ("Delivered", tables.percent(delivered), f"{total['completed']:,} of {due:,}",
         "good" if (delivered or 0) >= 0.99 else ""),
        ("Time to delivery", svg.seconds(all_the_way[0]), f"99 % within {svg.seconds(all_the_way[2])}", ""),
        ("Time to first try", svg.seconds(first[0]), f"99 % within {svg.seconds(first[2])}", ""),
        ("Needed a retry", tables.percent(tables.share(total["retried"], total["sent"])),
         f"{total['tries']:,} tries in all", ""),
        ("Dead letters", svg.short(total["failed"]), f"and {total['expired']:,} expired",
         "bad" if total["failed"] else "good"),
        (f"Goal: {tables.percent(slo.share)} in {svg.unit(slo.seconds)}", tables.percent(attained),
         tables.verdict(attained, slo),
         "good" if (attained or 0) >= slo.share else "bad"),
    ]  # fmt: skip
    return '<div class="cards">' + "".join(
        f'<div class="card {kind}"><span>{escape(name)}</span><strong>{escape(value)}</strong>'
        f"<em>{escape(more)}</em></div>"
        for name, value, more, kind in cards
    ) + "</div>"  # fmt: skip


def _key(*entries: tuple[str, float, str]) -> str:
    """What the colours mean."""
    marks = (f'<i style="background:var({name});opacity:{opacity:g}"></i>{words}' for name, opacity, words in entries)
    return f'<p class="key">{"".join(marks)}</p>'


def _volume(figures: Figures) -> str:
    key = _key(("--good", 1, "delivered"), ("--bad", 1, "dead or expired"), ("--mute", 1, "cancelled"))
    why = f"Messages by the time they were sent, {svg.unit(figures.width)} a bar."
    return section("Volume", why, times.volume(figures.times, figures.width) + key)


def _latency(figures: Figures) -> str:
    key = _key(("--blue", 1, "half of them"), ("--band", 0.5, "up to 90 %"), ("--band", 0.25, "up to 99 %"))
    delivered = times.bands(figures.times, figures.width, "delivered_s", figures.slo.seconds)
    first = times.bands(figures.times, figures.width, "first_s")
    return section(
        "Time to delivery", "From sent, or from its schedule, to delivered. Retries included.", delivered + key
    ) + section(
        "Time to first try",
        "How long a message waited for a worker: the queue itself, without the other side.",
        first + key,
    )


def _rhythm(figures: Figures) -> str:
    heat = section(
        "Rhythm of the week",
        "Messages by weekday and hour, UTC. A ring: more than 5 % not delivered.",
        small.heat(figures.hours),
    )
    key = _key(("--good", 1, "delivered in the end"), ("--bad", 1, "not"))
    return f'<div class="pair">{heat}' + section(
        "Tries", "How often a message had to be tried.", small.tries(figures.retries, MOST_TRIES) + key
    ) + "</div>"  # fmt: skip


def _endpoints(figures: Figures) -> str:
    more = figures.endpoint_count - len(figures.endpoints)
    why = "The busiest first." + (f" {more:,} quieter ones are not shown." if more > 0 else "")
    return section(
        "Endpoints",
        why + " Red marks below a line: more than 2 % of that time not delivered.",
        tables.endpoints(figures),
    )


def _leaders(figures: Figures) -> str:
    slowest = [(row["channel"], row["delivered_s"][2], svg.seconds(row["delivered_s"][2])) for row in figures.slowest]
    noisiest = [
        (
            row["channel"],
            row["tries"] - row["completed"],
            f"{(lost := row['tries'] - row['completed']):,} {'try' if lost == 1 else 'tries'} failed or deferred",
        )
        for row in figures.noisiest
    ]
    quiet = '<p class="none">No try went wrong.</p>'
    return '<div class="pair">' + section(
        "Slowest", "Time within which 99 % are delivered.", small.bars(slowest, "slow") if slowest else quiet
    ) + section(
        "Noisiest", "Tries that did not deliver.", small.bars(noisiest, "warm") if noisiest else quiet
    ) + "</div>"  # fmt: skip


def _errors(figures: Figures) -> str:
    if not figures.errors:
        return section("Dead letters", "Grouped by what went wrong.", '<p class="none">There are none.</p>')
    more = figures.error_count - len(figures.errors)
    why = 'Grouped by what went wrong: # stands for numbers, ids and times, "..." for quoted texts.'
    return section(
        "Dead letters",
        why + (f" {more:,} rarer causes are not shown." if more > 0 else ""),
        tables.errors(figures.errors),
    )


def _circuits(figures: Figures) -> str:
    if figures.incident_count is None:
        return section(
            "Circuits", "When endpoints were given a rest.", '<p class="none">Not known: no event log was read.</p>'
        )
    if not figures.incidents:
        return section("Circuits", "When endpoints were given a rest.", '<p class="none">No circuit opened.</p>')
    first, last = (figures.total[name].astimezone(UTC).timestamp() for name in ("first_at", "last_at"))
    more = figures.incident_count - len(figures.incidents)
    why = f"{figures.incident_count:,} times an endpoint failed so often that it was given a rest."
    body = small.incidents(figures.incidents, first, last, figures.width) + tables.incidents(figures.incidents[:12])
    return section("Circuits", why + (f" The last {len(figures.incidents):,} are drawn." if more > 0 else ""), body)


def _footer(figures: Figures) -> str:
    return (
        "<footer><p>Delivered is the share of completed messages among those that were completed, dead or expired; "
        "cancelled ones do not count. The clock of a message starts when it was sent, or at its schedule if that is "
        "later. "
        "A redriven message is a new message. Percentiles are approximate, counts are exact. Only ended messages are "
        "here: "
        f"what still waits is not. The goal is that {tables.percent(figures.slo.share)} are delivered within "
        f"{svg.unit(figures.slo.seconds)}.</p></footer>"
    )
