"""What bridges say: one line per event, `event key=value …`, through the logger `menzil.bridge`."""

from __future__ import annotations

import json
import logging

from menzil.telemetry.logs import said

LOGGER = logging.getLogger("menzil.bridge")
LOGGER.addHandler(logging.NullHandler())  # a program that embeds a bridge decides what is shown


def say(level: int, event: str, **facts: object) -> None:
    """Write one line."""
    known = {name: value for name, value in facts.items() if value is not None}
    words = [event, *(f"{name}={_write(value)}" for name, value in known.items())]
    LOGGER.log(level, "%s", " ".join(words), extra=said(event, known))


def _write(value: object) -> str:
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    plain = text.isprintable() and text and not any(sign in text for sign in ' "=')
    return text if plain else json.dumps(text, ensure_ascii=False)
