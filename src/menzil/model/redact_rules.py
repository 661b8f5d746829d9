"""Which keys and places of a JSON document are secret: patterns of key names, and JSON paths.

A pattern without `$` is the name of a key wherever it stands; `*` in it stands for any characters. A pattern that
starts with `$` is a path from the root of the document: `$.card.number`, `$.cards[*].number`, `$.a.*.b`, `$..pin`,
`$["a b"]`. Upper and lower case, `-`, `_` and spaces make no difference, so `api_key` is also apiKey and Api-Key. A
list on the way of a path is walked through: `$.cards.number` means the number of each card of a list too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from menzil.model.errors import InvalidValueError

#: Hidden unless the setting `redact` says otherwise: its default, which a test compares with this.
DEFAULT = (
    "*authorization*", "*cookie*", "*password*", "*passwd*", "*passphrase*", "*secret*", "*token*",
    "*credential*", "*api_key*", "*private_key*", "*access_key*", "card_number", "cvv", "cvc", "iban", "ssn",
)  # fmt: skip

_SAME = str.maketrans("", "", "-_ ")
_PARTS = re.compile(r"[.\[\]]+")
#: The grammar is written a second time in SQL, for the setting: menzil._redact_patterns. Only ASCII counts as a space.
_SPACES = " \t\r\n\f\v"
_STEP = re.compile(
    r"""(?P<deep>\.\.)(?P<deep_name>[^.\[\]"'$\ \t\r\n\f\v]+) | \.(?P<name>[^.\[\]"'$]+) | \[(?P<index>\*|[0-9]+)\]
    | \[(?P<quote>["'])(?P<quoted>(?:(?!(?P=quote))[^\n])+)(?P=quote)\]""",
    re.VERBOSE,
)
_APART = re.compile(r"""((?:\["[^"\n]*"\]|\['[^'\n]*'\]|[^,\n])+)""")
_HINT = "write key names such as password or *token*, or paths such as $.card.*, separated by commas"

#: Matches one normalised name.
Match = Callable[[str], bool]


class Step(NamedTuple):
    """One step of a path. A deep one may skip any number of levels first; `place` is None where a name is meant."""

    match: Match
    place: int | None = None
    any: bool = False
    deep: bool = False


#: Where a walk through a document stands in each path: (path, steps done).
States = tuple[tuple[int, int], ...]


class Rules:
    """The patterns, ready to be asked."""

    def __init__(self, patterns: Sequence[str]) -> None:
        if isinstance(patterns, str):
            raise InvalidValueError("Patterns to redact are a list of texts, not one text.", hint=_HINT)
        self.patterns = tuple(pattern.strip(_SPACES) for pattern in patterns)
        self._keys: list[Match] = []
        self._paths: list[tuple[Step, ...]] = []
        for pattern in self.patterns:
            if pattern.startswith("$"):
                self._paths.append(_path(pattern))
            else:
                self._keys.append(_key(pattern))
        self._known: dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def key(self, name: str) -> bool:
        """Whether the value of a key of this name is secret; db.password is asked as password too."""
        found = self._known.get(name)
        if found is None:
            found = any(matches(one) for one in _names(name) for matches in self._keys)
            if len(self._known) < 10_000:
                self._known[name] = found
        return found

    def start(self) -> States:
        """The root of a document."""
        return tuple((path, 0) for path in range(len(self._paths)))

    def enter(self, states: States, key: str | int) -> States:
        """One level deeper: a key of an object or an index of a list."""
        if not states:
            return ()
        name = key if isinstance(key, int) else plain(key)
        found: dict[tuple[int, int], None] = {}
        for path, done in states:
            if done == len(self._paths[path]):
                continue
            step = self._paths[path][done]
            if step.deep or isinstance(key, int):
                found[path, done] = None
            if step.any or (key == step.place if isinstance(name, int) else step.match(name)):
                found[path, done + 1] = None
        return tuple(found)

    def hits(self, states: States) -> bool:
        """Whether a path ends here."""
        return any(done == len(self._paths[path]) for path, done in states)


def split(setting: str) -> list[str]:
    """The patterns of the setting `redact`: separated by commas and line ends, except in brackets with quotes."""
    return [part.strip(_SPACES) for part in _APART.findall(setting) if part.strip(_SPACES)]


def plain(name: str) -> str:
    """A name without what makes no difference."""
    return name.translate(_SAME).casefold()


def _names(name: str) -> list[str]:
    parts = [part for part in _PARTS.split(name) if part]
    return list({plain(name): None, plain(parts[-1] if parts else name): None})


def _key(pattern: str) -> Match:
    if (not plain(pattern).strip("*") and pattern != "*") or '["' in pattern or "['" in pattern:
        raise InvalidValueError(f"{pattern!r} is not a pattern of key names.", hint=_HINT)
    return _glob(pattern)


def _glob(pattern: str) -> Match:
    """Match in one pass: a regular expression with several stars may take very long."""
    parts = [plain(part) for part in pattern.split("*")]
    if len(parts) == 1:
        return parts[0].__eq__
    first, *middle, last = parts

    def match(name: str) -> bool:
        if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
            return False
        place, end = len(first), len(name) - len(last)
        for part in middle:
            place = name.find(part, place, end)
            if place < 0:
                return False
            place += len(part)
        return True

    return match


def _path(pattern: str) -> tuple[Step, ...]:
    steps, place = [], 1
    while place < len(pattern):
        found = _STEP.match(pattern, place)
        if found is None:
            raise InvalidValueError(
                f"{pattern!r} is not a JSON path: it breaks off at {pattern[place:]!r}.", hint=_HINT
            )
        place = found.end()
        if found["index"] is not None:
            star = found["index"] == "*"
            steps.append(Step(_never, None if star else int(found["index"]), any=star))
            continue
        name = found["deep_name"] or found["name"]
        match = _glob(name) if name else plain(found["quoted"]).__eq__
        steps.append(Step(match, any=name == "*", deep=found["deep"] is not None))
    return tuple(steps)


def _never(_: str) -> bool:
    return False
