"""Redacts free text: error texts, header lines, key=value pairs, queries of URLs, JSON in the middle of a sentence.

Free text has no grammar, so in doubt more is hidden: after `key:` the rest of the line is.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from menzil.model.redact_json import MARK, redact_json, skip_brackets
from menzil.model.redact_rules import Rules

# Quantifiers are possessive and starts are anchored, so that no text takes longer than its length.
_TOKEN = re.compile(
    r"""
      (?<!\\)(?P<escape>\\*+)(?P<quote>["'])(?P<quoted>[^"'\\\n]{1,200}+)(?P=escape)(?P=quote)[ \t\r\n]*+(?:=>|:=|:|=)
    | (?<=:)// [^\s/@:"'<>\[\]{}]*+ : (?P<userinfo>[^\s/"'<>@]++(?:@[^\s/"'<>@]*+(?=@))*+)(?=@)
    | \b(?:Bearer|Basic|Digest|Negotiate)[ \t]++(?P<credential>(?=[^\s,;"']*\d)[\w.~+/=-]{8,}+)
    | (?:(?<=%[0-9A-Fa-f]{2})|(?<![\w.%$@-]))(?P<coded>[\w.-]++)(?P<equals>%(?:25)*+3[Dd])
    | (?<![\w.%$@-])(?P<bare>[\w.%$@-]++(?:\[[\w.%-]*+\])*+)[ \t]*+(?P<sign>=>|:=|=++|:)
    | (?P<open>[\[{])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_RUN = re.compile(r"""[^\s&;"'<>]*+""")
_CODED_RUN = re.compile(r"""(?:(?!%(?:25)*26)[^\s&;"'<>])*+""", re.IGNORECASE)
_ELEMENT = re.compile(r"[^,}\]\n]*+")
_LINE = re.compile(r"[^\r\n]*+")
_SPACES = re.compile(r"[ \t]*+")
_BLANK = re.compile(r"[ \t\r\n]*+")
_OPENS = re.compile(r"""[bBuUrRfF]{0,2}(?P<escape>\\*+)(?P<quote>["'])""")
_SCHEMES = ("bearer", "basic", "digest", "negotiate", "token", "apikey")
# `InvalidTokenError: expired` is the name of a class and its sentence, not a key and its value.
_CLASS = re.compile(r".*(?:error|exception|warning|failure|failed|invalid|expired)", re.IGNORECASE | re.DOTALL)


def redact_text(text: str, rules: Rules) -> str:
    """Return the text with the values of secret keys hidden."""
    parts: list[str] = []
    place = done = tried = 0
    while (found := _TOKEN.search(text, place)) is not None:
        place = found.end()
        hide: tuple[int, int, str] | None = None
        if found["open"] is not None:
            if found.start() >= tried:
                # Brackets before the place where this attempt failed would fail there too.
                new, tried = redact_json(text, found.start(), rules, lambda inner: redact_text(inner, rules))
                hide = None if new is None else (found.start(), tried, new)
        elif found["userinfo"] is not None:
            hide = (*found.span("userinfo"), MARK) if rules.key("password") else None
        elif found["credential"] is not None:
            hide = (*found.span("credential"), MARK) if rules.key("authorization") else None
        elif found["coded"] is not None:
            if rules.key(unquote(found["coded"])):
                hide = _hidden(text, place, _end(_CODED_RUN, text, place))
        elif found["quoted"] is not None:
            if rules.key(found["quoted"].strip()):
                hide = _after_quoted(text, place)
        elif _is_key(found["bare"], found["sign"], rules):
            hide = _after_bare(text, place, found["sign"])
        if hide is not None:
            start, end, shown = hide
            parts += [text[done:start], shown]
            done = place = max(end, place)
    return "".join([*parts, text[done:]]) if parts else text


def _is_key(name: str, sign: str, rules: Rules) -> bool:
    if not rules.key(unquote(name)):
        return False
    return sign != ":" or _CLASS.fullmatch(name) is None


def _after_quoted(text: str, place: int) -> tuple[int, int, str] | None:
    """The value of a quoted key, as in JSON or a repr."""
    place = _end(_BLANK, text, place)
    opens = _OPENS.match(text, place)
    if opens is not None:
        mark = f"{opens['escape']}{opens['quote']}"
        return place, _close(text, opens), f"{mark}{MARK}{mark}"
    if text[place : place + 1] in ("{", "["):
        return place, skip_brackets(text, place), f'"{MARK}"'
    end = _call(text, place, _end(_ELEMENT, text, place))
    return (place, end, f'"{MARK}"') if text[place:end].strip() else None


def _after_bare(text: str, place: int, sign: str) -> tuple[int, int, str] | None:
    """The value of a key without quotes: the rest of the line after a colon, else one word."""
    place = _end(_SPACES, text, place)
    opens = _OPENS.match(text, place)
    if sign == ":":
        end = _end(_LINE, text, place)
        return _hidden(text, place, max(end, _close(text, opens)) if opens is not None else end)
    if opens is not None:
        return place, _close(text, opens), f"{opens['quote']}{MARK}{opens['quote']}"
    first = _end(_RUN, text, place)
    if text[place : place + 1] in ("{", "[", "("):
        first = max(first, skip_brackets(text, place))
    elif text[place:first].casefold() in _SCHEMES:
        first = _end(_RUN, text, _end(_SPACES, text, first))
    end = _call(text, place, first)
    return _hidden(text, place, end - text.endswith(",", place, end))


def _call(text: str, start: int, end: int) -> int:
    """Where a value ends that may be the repr of an object: Secret('a, b')."""
    bracket = text.find("(", start, end)
    return end if bracket < 0 else max(end, skip_brackets(text, bracket))


def _hidden(text: str, start: int, end: int) -> tuple[int, int, str] | None:
    return (start, end, MARK) if text[start:end].strip() else None


def _end(kind: re.Pattern[str], text: str, place: int) -> int:
    found = kind.match(text, place)
    return place if found is None else found.end()


def _close(text: str, opens: re.Match[str]) -> int:
    """Where a string ends that was opened by a quote with this many backslashes before it."""
    level, quote = len(opens["escape"]), opens["quote"]
    for found in re.compile(rf"(\\*+){quote}").finditer(text, opens.end()):
        if len(found[1]) % (2 * (level + 1)) == level:
            return found.end()
    return len(text)
