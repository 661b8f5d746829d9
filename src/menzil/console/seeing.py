"""What of a message a person may see: everything, all but secrets, or nothing that a sender or receiver wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from menzil.console.parts import Look
from menzil.model.redact import Redactor
from menzil.watch.redaction import DOCUMENTS, TEXTS

#: Fields that hold what strangers wrote. A sentence of the engine and a cause tell no payload.
HIDDEN = ({*DOCUMENTS, *TEXTS} | {"headers", "content", "state"}) - {"detail", "sentence", "cause"}


def redactor(look: Look) -> Redactor | None:
    """What redacts for this viewer; None where the viewer sees everything."""
    return None if look.sees == "show" else look.redact()


def filters(look: Look, subscriptions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Subscriptions whose filters name no value of a secret key, as the config of an endpoint names none."""
    by = look.redact()
    return [{**one, "filter": None if one["filter"] is None else by.value(one["filter"])} for one in subscriptions]


def visible(look: Look, record: Mapping[str, Any]) -> dict[str, Any]:
    """A record, already redacted, as this viewer may see it."""
    if look.sees != "hide":
        return dict(record)
    return {name: None if name in HIDDEN else value for name, value in record.items()}
