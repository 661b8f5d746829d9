"""What a worker says: one line per event, `event key=value …`, through the logger `menzil.worker`.

Passwords of the DSN never appear, and an event that comes in floods is counted instead of repeated. The traceback of a
failure follows its line, indented.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable
from textwrap import indent

LOGGER = logging.getLogger("menzil.worker")
LOGGER.addHandler(logging.NullHandler())  # a program that embeds a worker decides what is shown

#: Lines of one kind within one second; what comes beyond is summed up when the second is over.
FLOOD = 20
LONGEST = 300


class Hide:
    """Takes secrets out of texts."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = sorted((secret for secret in secrets if secret), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "********")
        return text


class Log:
    """The events of one worker."""

    def __init__(self, hide: Hide) -> None:
        self._hide = hide
        self._seen: dict[str, tuple[float, int]] = {}

    def debug(self, event: str, **facts: object) -> None:
        """Something for those who look closely."""
        self._say(logging.DEBUG, event, facts)

    def info(self, event: str, **facts: object) -> None:
        """Something that belongs to a normal day."""
        self._say(logging.INFO, event, facts)

    def warning(self, event: str, *, trace: str | None = None, **facts: object) -> None:
        """Something went wrong, and the worker deals with it; `trace` is a traceback without secrets."""
        self._say(logging.WARNING, event, facts, trace)

    def error(self, event: str, **facts: object) -> None:
        """Something somebody should look at."""
        self._say(logging.ERROR, event, facts)

    def _say(self, level: int, event: str, facts: dict[str, object], trace: str | None = None) -> None:
        if not LOGGER.isEnabledFor(level):
            return
        now = time.monotonic()
        since, count = self._seen.get(event, (now, 0))
        if now - since >= 1:
            if count > FLOOD:
                LOGGER.log(level, "%s more=%d", event, count - FLOOD)
            since, count = now, 0
        self._seen[event] = (since, count + 1)
        if count < FLOOD:
            words = [event, *(f"{name}={self._write(value)}" for name, value in facts.items() if value is not None)]
            below = f"\n{indent(trace, '    ')}" if trace else ""
            LOGGER.log(level, "%s%s", " ".join(words), below)

    def _write(self, value: object) -> str:
        if isinstance(value, float):
            return f"{value:.3g}"
        text = self._hide(str(value))
        if len(text) > LONGEST:
            text = text[:LONGEST] + "…"
        plain = text.isprintable() and text and not any(sign in text for sign in ' "=')
        return text if plain else json.dumps(text, ensure_ascii=False)
