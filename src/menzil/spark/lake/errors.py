"""What can be wrong with a lake.

::

    MenzilError
    └── LakeError
        ├── LakeDamagedError       files and manifests, or lake and database, do not say the same
        ├── LakeForeignError       the database is another one than the lake was exported from
        └── LakeBusyError          another process works on it
"""

from __future__ import annotations

from menzil.model.errors import MenzilError


class LakeError(MenzilError):
    """The base of them."""


class LakeDamagedError(LakeError):
    """Nothing was published and nothing dropped."""

    default_hint = "nothing was dropped; `menzil pipeline export --verify` lists what is wrong"


class LakeForeignError(LakeError):
    """Nothing was exported: what is new in this database cannot be told from what the lake has."""

    default_hint = "export to a new lake, with another --lake; the old one stays as it is"


class LakeBusyError(LakeError):
    """One at a time."""

    default_hint = "try again when the other one is done"
