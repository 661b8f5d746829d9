"""Canaries: texts that are planted where secrets and payloads live, and that must be found nowhere else.

`Canaries.of(kind, where)` makes one. `clean(text, what)` fails if a text holds any of them, however spelled: as it
is, in another case, in Base64, in hexadecimal digits, in UTF-16.
"""

from __future__ import annotations

import base64
import gzip
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any


class Kind(Enum):
    """What a canary stands for, and so where it may be found."""

    #: Credentials of endpoints and of the database, tokens: nowhere outside of the table of secrets.
    SECRET = "secret"
    #: The value of a key that the setting `redact` names: in the payload, and nowhere that people or machines look.
    REDACTED = "redacted"
    #: The same in an error that a program wrote itself, by SQL: stored as it is, redacted when it is shown.
    WRITTEN = "written"
    #: An ordinary part of a payload: for those who may see payloads. In no metric, span or log line.
    PAYLOAD = "payload"
    #: A key of ordering or idempotency: for people, not for metrics and spans.
    KEY = "key"


#: What no metric, span or log line holds.
ALL = frozenset(Kind)
#: What nobody sees on a page, not even those who may see payloads.
HIDDEN = frozenset({Kind.SECRET, Kind.REDACTED, Kind.WRITTEN})
#: What no error column of the database holds.
STORED = frozenset({Kind.SECRET, Kind.REDACTED})


@dataclass(frozen=True, slots=True)
class Canary:
    """One text, what it stands for, and where it was planted."""

    text: str
    kind: Kind
    where: str


class Canaries:
    """All canaries of one test."""

    def __init__(self) -> None:
        self.all: list[Canary] = []

    def of(self, kind: Kind, where: str, text: str | None = None) -> str:
        """Make a canary, or let a given text be one, such as a key in a form of its own."""
        canary = Canary(text or f"canary{secrets.token_hex(10)}", kind, where)
        self.all.append(canary)
        return canary.text

    def found(self, text: str | bytes, kinds: Iterable[Kind] = ALL) -> list[Canary]:
        """The canaries of these kinds that a text holds."""
        wanted = frozenset(kinds)
        haystack = (text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text).lower()
        return [
            canary
            for canary in self.all
            if canary.kind in wanted and any(way.lower() in haystack for way in _spellings(canary.text))
        ]

    def clean(self, text: str | bytes | Any, what: str, kinds: Iterable[Kind] = ALL) -> None:
        """Fail if the text, or the repr of what is no text, holds a canary of these kinds."""
        shown = text if isinstance(text, str | bytes) else repr(text)
        assert shown, f"{what} is empty: nothing was looked at"
        found = [f"{canary.kind.value} of {canary.where}" for canary in self.found(shown, kinds)]
        assert not found, f"{what} holds: {', '.join(found)}"

    def clean_files(self, folder: Path, kinds: Iterable[Kind] = ALL) -> int:
        """Look into every file below a folder; return how many there were. Compressed ones must be opened first."""
        count = 0
        for file in sorted(folder.rglob("*")):
            if file.is_file() and (content := file.read_bytes()):
                self.clean(gzip.decompress(content) if file.suffix == ".gz" else content, str(file), kinds)
                count += 1
        return count


def _spellings(text: str) -> Iterator[bytes]:
    raw = text.encode()
    yield raw
    yield raw.hex().encode()
    yield text.encode("utf-16-le")
    for shift in range(3):  # Base64 spells a text in three ways, depending on what stands before it
        spelled = base64.b64encode(b"\0" * shift + raw)
        yield spelled[(0, 2, 3)[shift] : -4]
