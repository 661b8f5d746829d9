"""Where everything lies in a lake, as text. No I/O.

::

    DIR/data/year=2026/month=03/endpoint=partner/nightly-7-2026-03-5d1c07aa-00000.parquet   messages
    DIR/events/year=2026/month=03/nightly-7-2026-03-5d1c07aa-00000.parquet                  lines of the event log
    DIR/_manifest/00000000000000000007.json                                                what counts, in order
    DIR/_manifest/checkpoint-00000000000000000050.json                                     the first 50 of them in one
    DIR/_tmp/nightly-7/2026-03-5d1c07aa/…                                                   work in progress

Names that begin with an underscore are ignored by whoever reads Parquet directories.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import UTC, datetime

DATA = "data"
EVENTS = "events"
MANIFESTS = "_manifest"
WORK = "_tmp"

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ODD = re.compile(r"[^A-Za-z0-9._-]")
_MONTH = re.compile(r"(\d{4,6})-(\d{2})")


def directory(name: str) -> str:
    """The directory of an endpoint: its name, or when that is long or has odd letters, a like one with a hash.

    No tool quotes or decodes such a name, so all of them read the same one. fingerprint.py says this in Spark's words.
    """
    if _PLAIN.fullmatch(name):
        return name
    return f"{_ODD.sub('_', name)[:60]}-{hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:12]}"


def month_label(at: datetime) -> str:
    """2026-03, of a time in that month (UTC)."""
    at = at.astimezone(UTC)
    return f"{at.year:04}-{at.month:02}"


def month_start(label: str) -> datetime:
    """The first moment of 2026-03."""
    found = _MONTH.fullmatch(label)
    if found is None or not 1 <= int(found[2]) <= 12:
        raise ValueError(f"{label!r} is no month")
    return datetime(int(found[1]), int(found[2]), 1, tzinfo=UTC)


def month_end(label: str) -> datetime:
    """The first moment after it."""
    start = month_start(label)
    return start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)


def partition(month: str, endpoint_directory: str | None) -> str:
    """The directory of the rows of a month and an endpoint, or of the event log of a month."""
    year, _, number = month.partition("-")
    if endpoint_directory is None:
        return f"{EVENTS}/year={year}/month={number}"
    return f"{DATA}/year={year}/month={number}/endpoint={endpoint_directory}"


def token() -> str:
    """Of one attempt at a step. Whoever was left behind by a killed one never meets its successor at the same path."""
    return secrets.token_hex(4)


def file_name(place: str, month: str, number: int) -> str:
    """The name of a file that was prepared in this place of work."""
    _, run, step = place.split("/")
    return f"{run}-{month}-{step.rsplit('-', 1)[1]}-{number:05}.parquet"


def work(run: str, step: str) -> str:
    """A new place where a run prepares a step."""
    return f"{WORK}/{directory(run)}/{step}-{token()}"


def manifest(number: int) -> str:
    """The manifest of this number."""
    return f"{MANIFESTS}/{number:020}.json"


def checkpoint(number: int) -> str:
    """All manifests up to this number in one."""
    return f"{MANIFESTS}/checkpoint-{number:020}.json"
