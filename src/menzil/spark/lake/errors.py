"""What can be wrong with a lake.

::

    MenzilError
    └── LakeError
        ├── LakeDamagedError       files and manifests, or lake and database, do not say the same
        ├── LakeForeignError       the database is another one than the lake was exported from
        └── LakeBusyError          another process works on it
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

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


@contextmanager
def in_words() -> Iterator[None]:
    """What files and catalog of a lake refuse, as one sentence: a full disk, a missing right, a store that is gone."""
    try:
        yield
    except OSError as error:
        lines = (error.strerror or str(error) or type(error).__name__).splitlines()
        what = re.sub(r"\.? Detail: \[errno \d+\] ", ": ", lines[0]).rstrip(".")
        raise LakeError(
            f"The files of the lake cannot be read or written: {what}.",
            hint="nothing that was half written counts; mend it and run the command again",
        ) from error
    except Exception as error:
        told = _of_database(error)
        if told is None:
            raise
        if isinstance(told, psycopg.errors.InsufficientPrivilege):
            sentence = "This role may not change the catalog of the lake."
            raise LakeError(sentence, hint="grant it menzil_pipeline") from error
        raise told from None


def _of_database(error: Exception) -> psycopg.Error | None:
    """What PostgreSQL said, of an error in which SQLAlchemy repeats its statement."""
    wrapped = getattr(sys.modules.get("sqlalchemy.exc"), "DBAPIError", ())
    told = error.orig if isinstance(error, wrapped) else None
    return told if isinstance(told, psycopg.Error) else None
