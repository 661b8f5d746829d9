"""Bodies of messages as the admin shows them: as the settings `console_payloads` and `redact` and MENZIL say."""

from __future__ import annotations

import json
from typing import Any

from menzil.contrib.django import conf
from menzil.contrib.django.queue import run_in
from menzil.model.redact import Redactor
from menzil.ops import looking_tasks

#: Characters of one body.
LONGEST = 20_000


def redactor(alias: str) -> tuple[Redactor, Redactor] | None:
    """Return the patterns of the setting and those of MENZIL; None where the setting hides bodies."""
    said: dict[str, str] = run_in(alias, looking_tasks.shown_settings())
    if said.get("console_payloads") == "hide":
        return None
    redacts = said.get("console_payloads") != "show"
    return Redactor.of_setting(said.get("redact") if redacts else ""), Redactor(conf.said("REDACT", []))


def shown(value: Any, redacts: tuple[Redactor, Redactor] | None) -> str:
    """Return a body as text."""
    if value is None:
        return "-"
    if redacts is None:
        return "(hidden by the setting console_payloads)"
    if isinstance(value, bytes | memoryview):
        return f"{len(value)} bytes"
    for one in redacts:
        value = one.value(value)
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
