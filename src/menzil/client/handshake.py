"""Does this database fit this client?"""

from __future__ import annotations

from menzil.model.errors import SchemaTooNewError, SchemaTooOldError
from menzil.model.version import SCHEMA_VERSION_KNOWN
from menzil.ops.upkeep import Handshake


def check(answer: Handshake) -> bool:
    """Refuse a schema this client does not know; otherwise say whether a lone statement is READ COMMITTED."""
    installed = answer.schema_version
    if installed > SCHEMA_VERSION_KNOWN:
        raise SchemaTooNewError(f"The database has schema {installed}; this client knows {SCHEMA_VERSION_KNOWN}.")
    if installed < SCHEMA_VERSION_KNOWN:
        raise SchemaTooOldError(f"The database has schema {installed}; this client needs {SCHEMA_VERSION_KNOWN}.")
    return answer.read_committed
