"""Install menzil into a database, keep it up to date, print the SQL instead, and notice changes made by hand.

``migrate`` connects and does it; ``script`` prints what it would do, and ``revision`` prints it for Alembic;
``check`` is the handshake of every client; ``drift`` compares a database with this package.
"""

from menzil.install.check import Status, check
from menzil.install.drift import Difference, drift
from menzil.install.errors import InstallError, InstallLockedError, MigrationChangedError
from menzil.install.migrate import Report, migrate
from menzil.install.revision import revision
from menzil.install.script import script
from menzil.install.step import Pace

__all__ = [
    "Difference",
    "InstallError",
    "InstallLockedError",
    "MigrationChangedError",
    "Pace",
    "Report",
    "Status",
    "check",
    "drift",
    "migrate",
    "revision",
    "script",
]
