"""Redacts a JSON text in place: what is not secret stays as it was written, every digit and every space.

The reader forgives what error texts do to JSON: a text that breaks off, single quotes, the words of Python's repr.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from menzil.model.redact_rules import Rules, States

MARK = "[redacted]"

_BLANK = re.compile(r"[ \t\r\n]*+")
_WORD = re.compile(r"[\w.+-]++")
_STRING = {
    '"': re.compile(r'"(?:[^"\\]|\\.)*+("|\\?$)', re.DOTALL),
    "'": re.compile(r"'(?:[^'\\]|\\.)*+('|\\?$)", re.DOTALL),
}
_CLOSES = {"{": "}", "[": "]"}


class _BrokenError(Exception):
    """This is not JSON, nor anything near it; `place` is where that became clear."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


def redact_json(text: str, place: int, rules: Rules, inside: Callable[[str], str]) -> tuple[str | None, int]:
    """Redact the JSON value that starts at `place`; return its new text and where it ends.

    If it is not JSON, return None and where that became clear. `inside` redacts the free text of strings.
    """
    walk = _Walk(text, rules, inside)
    try:
        end = walk.through(place)
    except _BrokenError as broken:
        return None, broken.place
    return walk.redacted(place, end), end


class _Walk:
    """One pass without recursion: a document may be nested deeper than Python's stack."""

    def __init__(self, text: str, rules: Rules, inside: Callable[[str], str]) -> None:
        self.text, self.rules, self.inside = text, rules, inside
        self.changes: list[tuple[int, int, str]] = []

    def redacted(self, start: int, end: int) -> str:
        parts = []
        for first, last, new in self.changes:
            parts += [self.text[start:first], new]
            start = last
        return "".join([*parts, self.text[start:end]])

    def through(self, place: int) -> int:
        text, size = self.text, len(self.text)
        # Open brackets: which, the states of the paths, the number of values so far.
        stack: list[tuple[str, States]] = []
        counts: list[int] = []
        states, secret = self.rules.start(), False
        while True:
            place = self._blank(place)
            if place >= size:
                return size
            # A value.
            start, opens = place, text[place]
            hidden = secret or self.rules.hits(states)
            if opens in _CLOSES and hidden:
                place = skip_brackets(text, place)
                self.changes.append((start, place, f'"{MARK}"'))
            elif opens in _CLOSES:
                stack.append((opens, states))
                counts.append(0)
                place += 1
            else:
                place = self._scalar(place, hidden)
            # Commas and closing brackets, up to the next value.
            while True:
                if not stack:
                    return place
                place = self._blank(place)
                if place >= size:
                    return size
                bracket, outer = stack[-1]
                if text[place] == _CLOSES[bracket]:
                    place += 1
                    stack.pop()
                    counts.pop()
                    continue
                if counts[-1]:
                    if text[place] != ",":
                        raise _BrokenError(place)
                    place = self._blank(place + 1)
                    if place >= size:
                        return size
                    if text[place] == _CLOSES[bracket]:
                        continue  # Python writes (and people write) a comma behind the last value
                break
            counts[-1] += 1
            if bracket == "[":
                states, secret = self.rules.enter(outer, counts[-1] - 1), False
                continue
            name, place = self._key(place)
            if name is None:
                return size
            states, secret = self.rules.enter(outer, name), self.rules.key(name)

    def _blank(self, place: int) -> int:
        found = _BLANK.match(self.text, place)
        return found.end() if found else place

    def _key(self, place: int) -> tuple[str | None, int]:
        start = place
        kind = _STRING.get(self.text[place])
        found = kind.match(self.text, place) if kind else None
        if found is None:
            raise _BrokenError(place)
        place = self._blank(found.end())
        if place >= len(self.text):
            return None, place
        if self.text[place] != ":":
            raise _BrokenError(place)
        return _decoded(self.text[start : found.end()]), place + 1

    def _scalar(self, place: int, hidden: bool) -> int:
        kind = _STRING.get(self.text[place])
        found = (kind or _WORD).match(self.text, place)
        if found is None:
            raise _BrokenError(place)
        if hidden:
            self.changes.append((place, found.end(), f'"{MARK}"'))
        elif kind is not None:
            said = _decoded(found[0])
            new = self.inside(said)
            if new != said:
                self.changes.append((place, found.end(), json.dumps(new, ensure_ascii=False)))
        return found.end()


def skip_brackets(text: str, place: int) -> int:
    """Where the bracket at `place` closes, or the end of the text."""
    depth = 0
    for found in _BRACKET.finditer(text, place):
        if found[0] in "{[(":
            depth += 1
        elif found[0] in "}])":
            depth -= 1
            if depth <= 0:
                return found.end()
    return len(text)


_BRACKET = re.compile(r"""  "(?:[^"\\]|\\.)*+"? | '(?:[^'\\\n]|\\.)*+' | [{}\[\]()]  """, re.DOTALL | re.VERBOSE)


def _decoded(written: str) -> str:
    quote = written[0]
    inner = written[1:-1] if len(written) > 1 and written[-1] == quote else written[1:]
    if "\\" not in inner:
        return inner
    try:
        found: str = json.loads(f'"{inner}"', strict=False)
    except ValueError:
        return inner
    return found
