"""What can go wrong with the embedded PostgreSQL.

::

    MenzilError
    └── EmbeddedError    no binaries, no place for the data, or a server that does not start; the sentence says which
"""

from __future__ import annotations

from menzil.model.errors import MenzilError


class EmbeddedError(MenzilError):
    """The embedded PostgreSQL cannot be had; the hint says what to do about it."""
