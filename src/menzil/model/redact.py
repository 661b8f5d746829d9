"""Hides secrets before they are shown: one redaction for the console, the command line, logs and exports.

    >>> Redactor(["password", "*token*", "$.card.*"]).value({"user": "ada", "card": {"number": 4111}})
    {'user': 'ada', 'card': {'number': '[redacted]'}}

What the patterns mean is said in redact_rules.py. Numbers and everything else that is not secret stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from menzil.model.errors import InvalidValueError
from menzil.model.redact_json import MARK, redact_json
from menzil.model.redact_rules import DEFAULT, Rules, States, split
from menzil.model.redact_text import redact_text

__all__ = ["DEFAULT", "MARK", "Redactor"]


class Redactor:
    """Hides the values of secret keys and paths. Without patterns it changes nothing."""

    def __init__(self, patterns: Sequence[str] = DEFAULT) -> None:
        self._rules = Rules(patterns)
        self.faults: list[InvalidValueError] = []  # of a setting

    @classmethod
    def of_setting(cls, setting: str | None) -> Redactor:
        """Read the setting `redact`: patterns separated by commas; None stands for the default.

        A pattern that cannot be read hides everything: what it was to hide is not known. `faults` says why.
        """
        patterns, faults = [], []
        for pattern in DEFAULT if setting is None else split(setting):
            try:
                Rules([pattern])
                patterns.append(pattern)
            except InvalidValueError as fault:
                faults.append(fault)
        made = cls([*patterns, *(("$", "*") if faults else ())])
        made.faults = faults
        return made

    def __bool__(self) -> bool:
        return bool(self._rules)

    def __repr__(self) -> str:
        return f"Redactor({list(self._rules.patterns)!r})"

    def key(self, name: str) -> bool:
        """Whether the value of a key or header of this name is secret."""
        return self._rules.key(name)

    def text(self, text: str) -> str:
        """Hide secrets in free text, and in a JSON text without a change to the rest of it."""
        if self.faults:
            return MARK
        return redact_text(text, self._rules) if self._rules else text

    def json(self, text: str) -> str:
        """Hide secrets in a JSON text; what is not secret stays as it was written, every digit of it."""
        if not self._rules or self.faults:
            return f'"{MARK}"' if self.faults else text
        start = len(text) - len(text.lstrip())
        new, end = redact_json(text, start, self._rules, self.text)
        if new is None or text[end:].strip():
            return self.text(text)
        return f"{text[:start]}{new}{text[end:]}"

    def headers(self, headers: Mapping[str, Any]) -> dict[str, Any]:
        """Hide the values of secret headers, and secrets within the values of others."""
        return {name: MARK if self.key(name) else self.value(value) for name, value in headers.items()}

    def value(self, value: Any) -> Any:
        """Return a JSON value with secrets replaced by "[redacted]"; the value given is not changed."""
        if not self._rules:
            return value
        top: list[Any] = [None]
        # Without recursion: what to redact, the container its copy belongs to, and where in it. Without a container:
        # the id of an object that has been copied with all that it holds.
        todo: list[tuple[Any, Any, Any, States]] = [(value, top, 0, self._rules.start())]
        around: set[int] = set()  # ids of the objects that hold this one
        while todo:
            one, container, place, states = todo.pop()
            if container is None:
                around.discard(one)
            elif self._rules.hits(states) or (isinstance(place, str) and self._rules.key(place)):
                container[place] = MARK
            elif not isinstance(one, Mapping | list | tuple):
                container[place] = self.text(one) if isinstance(one, str) else one
            elif id(one) in around:
                container[place] = one  # a circle: no JSON can say it, and who writes it is told so
            else:
                around.add(id(one))
                todo.append((id(one), None, None, states))
                if isinstance(one, Mapping):
                    copy = container[place] = dict.fromkeys(one)
                    todo += [(each, copy, key, self._rules.enter(states, str(key))) for key, each in one.items()]
                else:
                    items = container[place] = [None] * len(one)
                    todo += [(each, items, index, self._rules.enter(states, index)) for index, each in enumerate(one)]
        return top[0]
