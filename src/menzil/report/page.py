"""The page: one HTML file without scripts. Every value that comes from outside is escaped."""

from __future__ import annotations

from datetime import UTC
from html import escape

from menzil.report import tables
from menzil.report.charts import small, svg, times
from menzil.report.charts.frame import both
from menzil.report.figures import MOST_TRIES, Figures, due, share
from menzil.report.style import STYLE
from menzil.report.words import all_well, count, percent, troubles, when

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(figures: Figures) -> str:
    """The whole document."""
    parts = [_header(figures)]
    if figures.total["sent"]:
        parts += [
            _words(figures),
            _cards(figures),
            _errors(figures),
            _endpoints(figures),
            _volume(figures),
            _latency(figures),
            _rhythm(figures),
            _leaders(figures),
            _circuits(figures),
        ]
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


def _header(figures: Figures) -> str:
    total = figures.total
    window = f"<b>{when(total['first_at'])}</b> to <b>{when(total['last_at'])}</b> UTC" if total["sent"] else "empty"
    return (
        f"<header><h1>Delivery report</h1><p>{window}<br>from {escape(figures.source)}, "
        f"made {when(figures.made_at)} UTC</p></header>"
    )


def _words(figures: Figures) -> str:
    """What is wrong, before any number."""
    found = troubles(figures)
    if not found:
        return f'<section class="words well"><h2>{escape(all_well(figures))}</h2></section>'
    lines = "".join(
        f"<li>{escape(each.sentence)}{f'<code>{escape(each.command)}</code>' if each.command else ''}</li>"
        for each in found
    )
    return f'<section class="words"><h2>What is wrong</h2><ul>{lines}</ul></section>'


def _cards(figures: Figures) -> str:
    total, slo, then = figures.total, figures.slo, figures.before
    wanted = due(total)
    attained, delivered = share(total["within"], wanted), share(total["completed"], wanted)
    first, all_the_way = total["first_s"] or [None] * 3, total["delivered_s"] or [None] * 3
    was_first, was_all = ((then or {}).get(name) or [None] * 3 for name in ("first_s", "delivered_s"))
    was_due = due(then) if then else 0
    cards = [
        ("Messages", svg.short(total["sent"]), f"to {count(figures.endpoint_count, 'endpoint')}",
         svg.short(then["sent"]) if then else "", ""),
        ("Delivered", percent(delivered), f"{total['completed']:,} of {wanted:,}",
         percent(share(then["completed"], was_due)) if then else "", "good" if (delivered or 0) >= 0.99 else ""),
        ("Time to delivery", svg.seconds(all_the_way[0]), f"99 % within {svg.seconds(all_the_way[2])}",
         svg.seconds(was_all[0]), ""),
        ("Time to first try", svg.seconds(first[0]), f"99 % within {svg.seconds(first[2])}",
         svg.seconds(was_first[0]), ""),
        ("Needed a retry", percent(share(total["retried"], total["sent"])),
         f"{count(total['tries'], 'try', 'tries')} in all",
         percent(share(then["retried"], then["sent"])) if then else "", ""),
        ("Dead letters", svg.short(total["failed"]), f"and {total['expired']:,} expired",
         svg.short(then["failed"]) if then else "", "bad" if total["failed"] else "good"),
        (f"Goal: {percent(slo.share)} in {svg.unit(slo.seconds)}", percent(attained),
         tables.verdict(attained, slo), percent(share(then["within"], was_due)) if then else "",
         "good" if (attained or 0) >= slo.share else "bad"),
    ]  # fmt: skip
    return '<div class="cards">' + "".join(
        f'<div class="card {kind}"><span>{escape(name)}</span><strong>{escape(value)}</strong>'
        f"<em>{escape(more)}</em>"
        + (f'<em class="was">before: {escape(was)}</em>' if then is not None else "")
        + "</div>"
        for name, value, more, was, kind in cards
    ) + "</div>"  # fmt: skip


def _key(*entries: tuple[str, float, str]) -> str:
    """What the colours mean."""
    marks = (f'<i style="background:var({name});opacity:{opacity:g}"></i>{words}' for name, opacity, words in entries)
    return f'<p class="key">{"".join(marks)}</p>'


def _volume(figures: Figures) -> str:
    key = _key(("--good", 1, "delivered"), ("--bad", 1, "dead or expired"), ("--mute", 1, "cancelled"))
    why = (
        f"Messages by the time they were sent, {svg.unit(figures.width)} a bar. ▲: the bar is cut, and has this number."
    )
    return section("Volume", why, both(lambda frame: times.volume(frame, figures.times, figures.width)) + key)


def _latency(figures: Figures) -> str:
    key = _key(("--blue", 1, "half of them"), ("--band", 0.5, "up to 90 %"), ("--band", 0.25, "up to 99 %"))
    delivered = both(lambda frame: times.bands(frame, figures.times, figures.width, "delivered_s", figures.slo.seconds))
    first = both(lambda frame: times.bands(frame, figures.times, figures.width, "first_s"))
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
    why = "The most troubled first." + (f" {more:,} with less trouble are not shown." if more > 0 else "")
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
            count(row["tries"] - row["completed"], "try", "tries"),
        )
        for row in figures.noisiest
    ]
    quiet = '<p class="none">No try went wrong.</p>'
    return '<div class="pair">' + section(
        "Slowest", "Time within which 99 % are delivered.", small.bars(slowest, "slow") if slowest else quiet
    ) + section(
        "Noisiest", "Tries that failed or were deferred.", small.bars(noisiest, "warm") if noisiest else quiet
    ) + "</div>"  # fmt: skip


def _errors(figures: Figures) -> str:
    if not figures.errors:
        return section("Dead letters", "Grouped by what went wrong.", '<p class="none">There are none.</p>')
    more = figures.error_count - len(figures.errors)
    why = 'Grouped by what went wrong: # stands for numbers, ids and times, "..." for quoted texts.'
    return section(
        "Dead letters",
        why + (f" {count(more, 'rarer cause')} {'is' if more == 1 else 'are'} not shown." if more > 0 else ""),
        tables.errors(figures),
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
    often = "Once" if figures.incident_count == 1 else f"{figures.incident_count:,} times"
    why = f"{often} an endpoint failed so often that it was given a rest."
    lanes = both(lambda frame: small.incidents(frame, figures.incidents, first, last, figures.width))
    body = lanes + tables.incidents(figures.incidents[:12])
    return section("Circuits", why + (f" The last {len(figures.incidents):,} are drawn." if more > 0 else ""), body)


def _footer(figures: Figures) -> str:
    return (
        "<footer><p>Delivered is the share of completed messages among those that were completed, dead or expired; "
        "cancelled ones do not count. The clock of a message starts when it was sent, or at its schedule if that is "
        "later. "
        "A redriven message is a new message. Percentiles are approximate, counts are exact. Only ended messages are "
        "here: "
        f"what still waits is not. {_compared(figures)}The goal is that {percent(figures.slo.share)} are delivered "
        f"within {svg.unit(figures.slo.seconds)}.</p></footer>"
    )


def _compared(figures: Figures) -> str:
    if figures.before is None:
        return "A report that is given a beginning (--from) also compares with the period before. "
    return "Before is the period of the same length that ended where this one begins. "
