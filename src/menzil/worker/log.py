"""What a worker says: one line per event, `event key=value …`, through the logger `menzil.worker`.

Passwords of the DSN never appear, what the setting `redact` names is marked, and an event that comes in floods is
counted instead of repeated. The traceback of a failure follows its line, indented. A record takes its facts along, so
that a program may write its lines in another form (telemetry/logs.py).
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable
from contextlib import suppress
from textwrap import indent

from menzil.model.redact import Redactor
from menzil.telemetry.logs import said

LOGGER = logging.getLogger("menzil.worker")
LOGGER.addHandler(logging.NullHandler())  # a program that embeds a worker decides what is shown

#: Lines of one kind within one second; what comes beyond is summed up when the second is over.
FLOOD = 20
LONGEST = 300


class Hide:
    """Takes secrets out of texts: those that the worker knows, and with `redact` those that the setting names."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.redactor = Redactor()
        self._redacts: str | None = None
        self._secrets: list[str] = []
        self.know(secrets)

    def know(self, secrets: Iterable[str]) -> None:
        """Take these out of texts, too."""
        found = {*self._secrets, *(secret for secret in secrets if secret)}
        self._secrets = sorted(found, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "********")
        return text

    def redact(self, text: str) -> str:
        """Return the text without secrets and without what the setting `redact` names."""
        return self.redactor.text(self(text))

    def learn(self, setting: str | None) -> None:
        """Take the setting `redact`, read again every few seconds; one that cannot be read changes nothing."""
        if setting != self._redacts:
            self._redacts = setting
            found = Redactor.of_setting(setting)
            self.redactor = self.redactor if found.faults else found


class Log:
    """The events of one worker; where it serves several databases, those of one of them."""

    def __init__(self, hide: Hide, database: str | None = None) -> None:
        self._hide = hide
        self._where = {} if database is None else {"database": database}
        self._seen: dict[str, tuple[float, int]] = {}

    def debug(self, event: str, **facts: object) -> None:
        """A line that only `--verbose` prints."""
        self._say(logging.DEBUG, event, facts)

    def info(self, event: str, **facts: object) -> None:
        """Something that belongs to a normal day."""
        self._say(logging.INFO, event, facts)

    def warning(self, event: str, *, trace: str | None = None, **facts: object) -> None:
        """Something went wrong, and the worker deals with it; `trace` is a traceback without secrets."""
        self._say(logging.WARNING, event, facts, trace)

    def error(self, event: str, **facts: object) -> None:
        """Something that a person should look at."""
        self._say(logging.ERROR, event, facts)

    def _say(self, level: int, event: str, facts: dict[str, object], trace: str | None = None) -> None:
        if not LOGGER.isEnabledFor(level):
            return
        now = time.monotonic()
        since, count = self._seen.get(event, (now, 0))
        if now - since >= 1:
            if count > FLOOD:
                more = {"more": count - FLOOD}
                _log(level, f"{event} more={more['more']}", said(event, dict(more)))
            since, count = now, 0
        self._seen[event] = (since, count + 1)
        if count < FLOOD:
            known = {name: self._fact(value) for name, value in (self._where | facts).items() if value is not None}
            trace = self._hide.redactor.text(trace) if trace else None
            words = [event, *(f"{name}={_write(value)}" for name, value in known.items())]
            below = f"\n{indent(trace, '    ')}" if trace else ""
            _log(level, f"{' '.join(words)}{below}", said(event, known, trace))

    def _fact(self, value: object) -> object:
        """A number as it is, everything else as a text without secrets, and not too long."""
        if isinstance(value, bool | int | float):
            return value
        text = self._hide.redact(str(value))
        return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _log(level: int, line: str, facts: dict[str, object]) -> None:
    # A filter of the program may raise, and standard error may be closed: the worker goes on without its line.
    with suppress(Exception):
        LOGGER.log(level, "%s", line, extra=facts)


def _write(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    text = str(value)
    plain = text.isprintable() and text and not any(sign in text for sign in ' "=')
    return text if plain else json.dumps(text, ensure_ascii=False)
