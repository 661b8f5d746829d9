"""One message as a page to attach to a ticket: one HTML file without scripts, loading nothing.

It shows what it is given, so its caller redacts first. Every value is escaped; characters that could turn a line round
or hide a word are shown as escapes.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from menzil.model import exact
from menzil.report.charts.life import life as drawn
from menzil.report.page import POLICY, section
from menzil.report.style import STYLE

#: Characters of one body or response that the page shows.
MOST = 200_000

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_MORE = """
pre{margin:6px 0 0;padding:10px 12px;border-radius:7px;background:var(--paper);border:1px solid var(--line);
white-space:pre-wrap;overflow-wrap:anywhere;font:12.5px/1.45 ui-monospace,"SF Mono",Menlo,Consolas,monospace}
dl{display:grid;grid-template-columns:max-content 1fr;gap:3px 18px;margin:0}dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}.hatch{stroke:var(--mute);stroke-width:2.4}.nowline{stroke:var(--ink);
stroke-width:1.6}td.at{white-space:nowrap}details{margin-top:10px}summary{cursor:pointer}
"""


def incident(found: Mapping[str, Any], *, made_at: datetime, source: str = "") -> str:
    """The page of what watch.messages.one() found."""
    title = f"Message {found['id']}: {found['status']} in {found['channel']}"
    parts = [
        f"<header><h1>Message {found['id']}</h1><p><b>{_said(found['status'])}</b> in {_said(found['channel'])}<br>"
        f"{_said(source)}{', ' if source else ''}made {_when(made_at)}</p></header>",
        _why(found["why"]),
        section("Its time", "From its sending on, to scale.", drawn(found, found["attempts"], made_at)),
        _facts(found),
        _life(found["life"], found["id"]),
        _tries(found["attempts"]),
        _family(found["family"], found["id"]),
        _body(found),
    ]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="referrer" content="no-referrer">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}{_MORE}</style></head><body><main>{''.join(parts)}"
        '<footer><p class="why">Values that the setting <code>redact</code> names are hidden.</p></footer>'
        "</main></body></html>\n"
    )


def _why(reasons: Sequence[Mapping[str, Any]]) -> str:
    if not reasons:
        return ""
    repairs = [f"<code>{_text(one['repair'])}</code>" if one["repair"] else "" for one in reasons]
    lines = [f"<li>{_said(one['sentence'])}{repair}</li>" for one, repair in zip(reasons, repairs, strict=True)]
    ended = reasons[0]["reason"] == "ended"
    kind, title = ("words well", "How it ended") if ended else ("words", "Why it waits")
    return f'<section class="{kind}"><h2>{title}</h2><ul>{"".join(lines)}</ul></section>'


_FACTS = (
    "priority", "ordering_key", "idempotency_key", "correlation_id", "created_at", "scheduled_at", "next_retry_at",
    "expires_at", "ended_at", "num_attempts", "retry_count", "worker", "last_error",
)  # fmt: skip


def _facts(found: Mapping[str, Any]) -> str:
    known = {name.replace("_", " "): found[name] for name in _FACTS if found[name] is not None}
    rows = "".join(f"<dt>{name}</dt><dd>{_said(value)}</dd>" for name, value in known.items())
    return section("What is known of it", "Times are UTC.", f"<dl>{rows}</dl>")


def _life(rows: Sequence[Mapping[str, Any]], message_id: int) -> str:
    heads = "".join(f'<th scope="col" class="left">{name}</th>' for name in ("at", "what", "of", "said"))
    body = []
    for row in rows:
        of = "" if row["message_id"] == message_id else _said(row["message_id"])
        what = _said(row["what"].replace("_", " ").replace(".", " "))
        cells = "".join(
            f'<td class="{kind}">{text}</td>'
            for kind, text in (("left", what), ("left", of), ("cause", _said(row["sentence"])))
        )
        body.append(f'<tr><td class="left at">{_when(row["at"])}</td>{cells}</tr>')
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return section("What happened", "By time, relatives included.", table)


def _tries(attempts: Sequence[Mapping[str, Any]]) -> str:
    if not attempts:
        return ""
    parts = []
    for one in attempts:
        took = "" if one["duration_ms"] is None else f", {one['duration_ms']:,.0f} ms"
        code = "" if one["status_code"] is None else f", HTTP {one['status_code']}"
        by = f", by {_said(one['worker'])}" if one["worker"] else ""
        error = f"<pre>{_said(one['error'])}</pre>" if one["error"] else ""
        answer = (
            "" if one["response"] is None else f"<details><summary>Response</summary>{_json(one['response'])}</details>"
        )
        head = f"<b>Try {one['attempt']}</b>: {_said(one['outcome'])} at {_when(one['leased_at'])}{took}{code}{by}"
        parts.append(f"<div><p>{head}</p>{error}{answer}</div>")
    return section("Tries", "Each with what came back.", "".join(parts))


def _family(family: Sequence[Mapping[str, Any]], message_id: int) -> str:
    if len(family) < 2:
        return ""
    rows = []
    for one in sorted(family, key=lambda row: (row["depth"], row["message_id"])):
        way = "this message" if one["message_id"] == message_id else f"{one['relation']} of {one['parent_id']}"
        if one["depth"] < 0 and one["parent_id"] is None:
            way = "the first"
        text = f"{_said(one['message_id'])}: {_said(way)}, {_said(one['status'])} in {_said(one['channel'])}"
        rows.append(f"<li>{text}, {_when(one['created_at'])}</li>")
    return section("Family", "Messages it was made from, and made from it.", f"<ul>{''.join(rows)}</ul>")


def _body(found: Mapping[str, Any]) -> str:
    parts = [f"<h3>{name}</h3>{_json(found[name])}" for name in ("headers", "metadata") if found[name]]
    if found["content"] is not None:
        parts.append(f"<h3>bytes</h3>{_bytes(found['content'])}")
    else:
        parts.append(f"<h3>payload</h3>{_json(found['payload'])}")
    return section("What was sent", "Numbers have every digit.", "".join(parts))


def _bytes(content: bytes) -> str:
    try:
        return _cut(content.decode())
    except UnicodeDecodeError:
        return f"<p>{len(content):,} bytes, in base64:</p>{_cut(base64.b64encode(content).decode())}"


def _json(value: Any) -> str:
    return _cut(value if isinstance(value, str) else exact.dumps(value, indent=2, default=str))


def _cut(text: str) -> str:
    more = f'<p class="why">{len(text) - MOST:,} more characters are left out.</p>' if len(text) > MOST else ""
    return f"<pre>{_said(text[:MOST])}</pre>{more}"


def _said(value: Any) -> str:
    return f"<bdi>{_text(value)}</bdi>"


def _text(value: Any) -> str:
    text = _when(value) if isinstance(value, datetime) else str(value)
    return escape(_HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text))


def _when(at: datetime | None) -> str:
    return "–" if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"
