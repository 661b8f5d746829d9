"""What can go wrong while installing.

::

    MenzilError
    ├── SchemaError                 (menzil.model.errors: missing, too old, too new)
    └── InstallError                the schema could not be brought up to date; the sentence says why
        ├── InstallLockedError      another session held the locks for longer than the timeout
        └── MigrationChangedError   a migration was edited after it had been applied
"""

from __future__ import annotations

import psycopg

from menzil.model.errors import ENDED, READ_ONLY, ConnectionFailedError, MenzilError, PermissionDeniedError, read_only


class InstallError(MenzilError):
    """The schema could not be brought up to date; nothing is half done."""


class InstallLockedError(InstallError):
    """Another session held a lock that the installer needs for longer than its timeout."""

    default_sqlstate = "55P03"


class MigrationChangedError(InstallError):
    """A migration that this database already has is not the one this package carries."""

    default_hint = "install the menzil release that migrated this database, or a later one; migrations never change"


def explain(error: psycopg.Error, doing: str) -> MenzilError:
    """Turn what the server said while `doing` into one sentence and one hint."""
    state = error.sqlstate
    sentence = error.diag.message_primary or str(error).strip() or type(error).__name__
    # The file and line, when it was one of our files that failed.
    doing = " at ".join([doing, *getattr(error, "__notes__", [])])
    if state is None or state.startswith("08") or state in ENDED:
        return ConnectionFailedError(f"The connection was lost while {doing}: {sentence}.", sqlstate=state)
    hint = error.diag.message_hint
    ours = error.diag.source_function == "exec_stmt_raise"  # our own SQL said it, as a whole sentence
    if state == "42501":
        return PermissionDeniedError(
            f"The role has not the right, while {doing}: {sentence}.",
            hint=(ours and hint) or "run it as the role that owns schema menzil, or as a member of that role",
        )
    if state == READ_ONLY:
        return read_only()
    if ours:
        return InstallError(sentence, sqlstate=state, hint=hint)
    return InstallError(f"The database refused while {doing}: {sentence}.", sqlstate=state, hint=hint)
