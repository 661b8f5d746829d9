"""The embedded PostgreSQL: found or installed by pip, started on demand, shared by processes.

::

    your process ── shares the lock `holders` ──▶ [home] ◀── takes it alone when no user is left ── supervisor
         │                                                                                            │ parent of
         └───────────────────────────── TCP or socket, scram password ─────────────────────────▶ postmaster

Files: server (the class), control (stop, status), holders (who uses it), home (what lies where), places, account,
binaries, publish, spawn; and inside the supervisor's own process: boot, supervisor, postmaster, cluster, plan, locks.
"""

from menzil.embedded.errors import EmbeddedError
from menzil.embedded.server import Embedded

__all__ = ["Embedded", "EmbeddedError"]
