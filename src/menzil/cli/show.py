"""How a command shows what it found: data to stdout, words to stderr, colour only for a person at a terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from menzil.model import exact
from menzil.model.exact import plain

Command = TypeVar("Command", bound=Callable[..., Any])
Record = Mapping[str, Any]

#: What a table shows of a long text; --json shows all of it.
LONGEST = 60

#: The colour of a word wherever it stands in a table.
COLOURS = {
    "completed": "green", "closed": "green", "ok": "green", "active": "green",
    "processing": "cyan", "half_open": "yellow", "warning": "yellow", "stale": "yellow", "unknown": "yellow",
    "failed": "red", "open": "red", "critical": "red", "dead": "red",
}  # fmt: skip

# C0 and C1 controls: an error text or a name from outside must not move the cursor of the reader's terminal.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def json_option(command: Command) -> Command:
    """Give a click command the flag --json, as its parameter `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def say(sentence: str) -> None:
    """Tell a person something that is not data."""
    click.echo(sentence, err=True)


_collected: ContextVar[list[Any] | None] = ContextVar("collected", default=None)


@contextmanager
def collected(wanted: bool = True) -> Iterator[list[Any]]:
    """Keep the JSON documents of a command instead of printing them, where they are wanted."""
    found: list[Any] = []
    token = _collected.set(found if wanted else None)
    try:
        yield found
    finally:
        _collected.reset(token)


def document(value: Any) -> None:
    """Print one JSON document."""
    kept = _collected.get()
    if kept is not None:
        kept.append(value)
        return
    click.echo(pretty(value) if sys.stdout.isatty() else exact.dumps(value, default=plain))


def pretty(value: Any) -> str:
    """JSON over several lines; numbers as they were written."""
    return exact.dumps(value, indent=2, default=plain)


def paint(text: str, colour: str | None = None, *, bold: bool = False) -> str:
    """Colour a text; click takes the colour off again where the output is not a terminal."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not (colour or bold):
        return text
    return click.style(text, fg=colour, bold=bold or None)


def listing(records: Sequence[Record], columns: Sequence[str], *, as_json: bool, empty: str) -> None:
    """Print records as one JSON list, or the columns of them as a table; `empty` says what would fill it."""
    if as_json:
        document(records)
    elif records:
        table(records, columns)
    else:
        say(empty)


def table(records: Sequence[Record], columns: Sequence[str], *, longest: int | None = LONGEST) -> None:
    """Print aligned columns: texts to the left, numbers to the right."""
    cells = [[cell(record[column], longest) for column in columns] for record in records]
    heads = [column.replace("_", " ") for column in columns]
    widths = [max(len(head), *(len(row[place]) for row in cells)) for place, head in enumerate(heads)]
    right = [_is_numeric([record[column] for record in records]) for column in columns]
    click.echo(paint(_line(heads, widths, right), bold=True))
    for row in cells:
        click.echo(_line(row, widths, right, coloured=True))


def _line(texts: Sequence[str], widths: Sequence[int], right: Sequence[bool], *, coloured: bool = False) -> str:
    padded = [
        text.rjust(width) if to_right else text.ljust(width)
        for text, width, to_right in zip(texts, widths, right, strict=True)
    ]
    padded[-1] = padded[-1] if right[-1] else texts[-1]
    if coloured:
        padded = [paint(shown, COLOURS.get(text)) for shown, text in zip(padded, texts, strict=True)]
    return "  ".join(padded)


def fields(record: Record, names: Sequence[str] | None = None) -> None:
    """Print one record, a field per line; what is not there is left out."""
    shown = {name: record[name] for name in (names or record) if record[name] is not None}
    width = max((len(name) for name in shown), default=0)
    for name, value in shown.items():
        text = cell(value)
        label = paint(name.replace("_", " ").ljust(width), bold=True)
        click.echo(f"{label}  {paint(text, COLOURS.get(text))}")


def cell(value: Any, longest: int | None = None) -> str:
    """One value as a person reads it, on one line."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        case float():
            return f"{value:g}"
        case dict() | list():
            text = exact.dumps(value, default=plain)
        case bytes():
            text = f"{len(value)} bytes"
        case _:
            text = str(value)
    text = _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    return text if longest is None or len(text) <= longest else text[: longest - 1] + "…"


def _is_numeric(values: Sequence[Any]) -> bool:
    given = [value for value in values if value is not None]
    return bool(given) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in given)


def count(number: int, thing: str, things: str | None = None) -> str:
    """A number with its word: 1 message, 1,200 messages."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def duration(seconds: float) -> str:
    """A length of time in its two largest units."""
    whole = max(round(seconds), 0)
    for unit, size, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"
