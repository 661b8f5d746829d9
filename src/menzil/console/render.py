"""Templates: autoescape everywhere, nothing undefined, and one environment for all pages."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from menzil.console import documents, texts, words
from menzil.report.charts import svg
from menzil.watch.search import Search

HERE = Path(__file__).resolve().parent
STATIC = {"console.css": "text/css", "console.js": "text/javascript", "icon.svg": "image/svg+xml"}


@cache
def environment() -> Environment:
    """The environment; templates are read once."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=texts.finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        extensions=["jinja2.ext.do"],
    )
    made.filters |= {
        "said": texts.said, "weblink": texts.link, "slug": texts.slug, "count": words.count, "capped": words.capped,
        "span": words.span, "size": words.size, "moment": words.moment, "exact": words.exact, "iso": words.iso,
        "clock": words.clock, "day_clock": words.day_clock, "json": documents.dumps, "short": svg.short,
        "aged": words.aged, "rate": words.rate, "share": words.share, "is_id": words.is_id, "is_past": words.is_past,
        "sentence": words.sentence, "is_typed": words.is_typed, "shell": quote, "typed": texts.typed,
        "said_items": _said_items, "said_facts": _said_facts, "without": _without,
    }  # fmt: skip
    made.globals |= {"many": words.many, "seek": _seek, "versions": versions()}
    return made


def prepare() -> None:
    """Compile every template, so that no viewer waits for it."""
    for name in environment().list_templates():
        environment().get_template(name)


def render(template: str, values: Mapping[str, Any]) -> str:
    """The text of a page."""
    return environment().get_template(template).render(values)


def _said_items(found: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Names and values of strangers, for a list of facts."""
    return [(str(name), texts.said(value)) for name, value in found.items()]


def _said_facts(found: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The same for words of an answer: yes and no instead of true and false, and names as people write them."""
    return [(str(name).replace("_", " ").capitalize(), texts.said(_word(value))) for name, value in found.items()]


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else documents.dumps(value)


def _without(found: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """A mapping without some of its keys."""
    return {name: value for name, value in found.items() if name not in names}


def _seek(status: str | None = None, **asked: Any) -> str:
    """The search line that asks for this."""
    return Search(status=None if status is None else (status,), **asked).line()


@cache
def asset(name: str) -> bytes | None:
    """A file that belongs to the pages, or None."""
    return (HERE / "static" / name).read_bytes() if name in STATIC else None


@cache
def versions() -> dict[str, str]:
    """A few digits of each file, so that a browser may keep it for ever."""
    return {name: hashlib.sha256(asset(name) or b"").hexdigest()[:12] for name in STATIC}
