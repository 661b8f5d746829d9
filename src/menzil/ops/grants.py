"""Which role may do what an Op does, so that a refusal can name the grant that is missing."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

#: From the least to the most: the first one that may do it is the one to grant.
ROLES = ("menzil_application", "menzil_worker", "menzil_monitor", "menzil_pipeline", "menzil_admin")

_USED = re.compile(r"\bmenzil\.(\w+)")


def grant_for(text: str, user: str | None) -> str | None:
    """Return the hint that names the grant this statement needs, or None where no role of ours would help."""
    used = set(_USED.findall(text))
    if not used or any(name.startswith("_before_") for name in used):
        return None
    role = next((role for role in ROLES if role == ROLES[-1] or used <= _may_use()[role]), ROLES[-1])
    return f"let an administrator run: grant {role} to {user or 'the role of this connection'}"


@cache
def _may_use() -> dict[str, frozenset[str]]:
    """Read what roles.sql grants, which is the one place that says it."""
    written = (Path(__file__).resolve().parent.parent / "sql" / "roles.sql").read_text(encoding="utf-8")
    found: dict[str, frozenset[str]] = {role: frozenset() for role in ROLES}
    for block in re.findall(r"jsonb := '(\{.*?\})'", written, re.DOTALL):
        for role, names in json.loads(block).items():
            found[role] |= frozenset(names)
    return found
