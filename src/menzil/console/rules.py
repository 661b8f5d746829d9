"""What the settings say about payloads: `console_payloads` and `redact`."""

from __future__ import annotations

import time
from dataclasses import dataclass

import psycopg

from menzil.console.access import PAYLOADS, Payloads
from menzil.console.database import Database
from menzil.model.errors import MenzilError
from menzil.model.redact import Redactor
from menzil.ops import looking


@dataclass(frozen=True)
class Rules:
    """What of payloads is shown, and what counts as a secret in them."""

    payloads: Payloads
    redactor: Redactor


def read_rules(database: Database, given: Payloads | None) -> Rules | None:
    """The rules; None while the database cannot be asked. `given` on the command line goes before the setting."""
    deadline = time.monotonic() + 2.0
    try:
        found = {row["name"]: row["value"] for row in database.read(lambda run: run(looking.settings()), deadline)}
    except (MenzilError, psycopg.Error):
        return None
    allowed = found.get("console_payloads", "redact")
    payloads: Payloads = next((word for word in PAYLOADS if word == allowed), "redact")
    return Rules(given or payloads, Redactor.of_setting(found.get("redact")))
