"""The payload of every measurement: JSON of about 200 bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def payload(number: int) -> dict[str, Any]:
    """One payload as Python would build it."""
    return {"order": number, "customer": f"customer-{number % 997}", "status": "paid", "note": "x" * 130}


def text(number: int) -> str:
    """The same as JSON."""
    return json.dumps(payload(number))


def array_literal(texts: Iterable[str]) -> str:
    """Texts as one array literal, which costs a client far less than adapting a list element by element."""
    return '{"' + '","'.join([each.replace("\\", "\\\\").replace('"', '\\"') for each in texts]) + '"}'


def numbers_literal(numbers: Iterable[int]) -> str:
    """Numbers as one array literal."""
    return "{" + ",".join(map(str, numbers)) + "}"


def small(number: int) -> str:
    """JSON of about 100 bytes, for what is about the queue and not about the payload."""
    return json.dumps({"order": number, "customer": f"customer-{number % 997}", "status": "paid", "note": "x" * 30})
