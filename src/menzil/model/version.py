"""Which database schema this package was written for."""

from __future__ import annotations

from pathlib import Path

_MIGRATIONS = Path(__file__).parent.parent / "sql" / "migrations"

#: The schema that `menzil migrate` of this package installs: the number of the last migration. Read from their names,
#: because a second place to write it down would one day be forgotten.
SCHEMA_VERSION_KNOWN = max((int(path.name[:4]) for path in _MIGRATIONS.glob("[0-9][0-9][0-9][0-9]_*.sql")), default=0)
