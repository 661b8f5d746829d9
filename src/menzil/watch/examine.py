"""Takes every look, and does not let one that is forbidden or fails spoil the others."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg

from menzil.model.errors import ConnectionFailedError, MenzilError, PermissionDeniedError
from menzil.watch.finding import Finding, Look, Run


def examine(run: Run, looks: Mapping[str, Look]) -> list[Finding]:
    """Return what was found, in order; a look that found nothing wrong says so."""
    found: list[Finding] = []
    for check, look in looks.items():
        try:
            found += look(run) or [Finding(check, "ok", "Nothing to fix.")]
        except ConnectionFailedError:
            raise
        except (MenzilError, psycopg.Error) as error:
            sentence = error.message if isinstance(error, MenzilError) else str(error).strip().split("\n")[0]
            # A missing right of menzil's own names the role to grant; other looks read catalogs of the server.
            named = error.hint if isinstance(error, PermissionDeniedError) else None
            repair = named or "look again as the role that owns the schema menzil, or as a superuser"
            found.append(Finding(check, "unknown", f"Could not look: {sentence}", repair))
    return found
