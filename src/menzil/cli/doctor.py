"""`menzil doctor`: what is wrong with a queue, and what repairs it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from menzil.cli.database import Database, connect, demand, located
from menzil.cli.dsn import dsns_options, several_of
from menzil.cli.findings import report
from menzil.cli.several import in_turn
from menzil.cli.show import json_option
from menzil.embedded.control import status as look
from menzil.embedded.errors import EmbeddedError
from menzil.embedded.places import data_dir
from menzil.install import check, drift
from menzil.model.errors import PermissionDeniedError
from menzil.ops.dsn import Dsn
from menzil.watch.doctor import examine_queue
from menzil.watch.finding import Finding

#: Differences that are told one by one.
NAMED = 10


@click.command()
@json_option
@dsns_options
@click.pass_context
def doctor(ctx: click.Context, dsns: Sequence[str], dsn_file: Path | None, as_json: bool) -> None:
    """Look for everything that is wrong and say what repairs it. Changes nothing.

    Exit codes: 0 all is well, 1 something to fix, 2 could not look.
    """
    named = several_of(dsns, dsn_file)
    if named is None:
        ctx.exit(_examine(dsns[0] if dsns else None, as_json))
    in_turn(named, lambda one: ctx.exit(_examine(one.dsn, as_json)), as_json=as_json)


def _examine(dsn: str | None, as_json: bool) -> int:
    with located(dsn, migrated=True) as found, connect(found) as conn:
        db, status = Database(conn), check(conn)
        if status.verdict == "missing":
            demand(conn, found)
        if status.ok and status.newer:
            sentence = f"A later menzil migrated this database to schema {status.installed}; it still serves this one."
            schema = [Finding("schema", "ok", sentence)]
        else:
            schema = _schema(db)
        findings = [_database(db, found), *schema]
        if status.verdict == "ok":
            # What an older or newer schema answers is not ours to read.
            findings += examine_queue(db.run)
    return report(findings, as_json=as_json)


def _database(db: Database, dsn: Dsn) -> Finding:
    """Which database is looked at and why: a program that looks at another one sees nothing of what is said here."""
    at = db.conn.info
    server = at.host if at.host.startswith("/") else f"{at.host} port {at.port}"
    sentence = f"{at.dbname} on {server} as {at.user}, chosen by {dsn.chosen_by}."
    return Finding("database", "ok", f"{sentence}{_beside(at.port)}")


def _beside(port: int) -> str:
    """Name the embedded server that runs beside this database: a program without a DSN uses it."""
    try:
        directory = data_dir()
        found = look(directory)
    except (EmbeddedError, OSError):
        return ""
    if found is None or found.port == port:
        return ""
    users = ", ".join(f"{user.program} (pid {user.pid})" for user in found.users) or "no program"
    return f" An embedded PostgreSQL runs, too, in {directory}, used by {users}."


def _schema(db: Database) -> list[Finding]:
    """Whether the database still runs what this package put there."""
    try:
        differences = drift(db.conn)
    except PermissionDeniedError as error:
        return [Finding("schema", "unknown", f"Could not look: {error.message}", error.hint)]
    if not differences:
        return [Finding("schema", "ok", "The schema is as this menzil has it.")]
    found = [_difference(one.what, one.sentence, kind=one.kind) for one in differences[:NAMED]]
    if rest := differences[NAMED:]:
        # What `menzil migrate` does without being asked needs no word more.
        simple = all(one.what == "outdated" or _is_outstanding(one.what, one.kind) for one in rest)
        found.append(_difference("outdated" if simple else "changed", f"{len(rest)} more differences"))
    return found


def _is_outstanding(what: str, kind: str) -> bool:
    # What was never applied is applied without being asked; what was and is gone, is not.
    return what == "missing" and kind in ("migration", "code")


def _difference(what: str, sentence: str, *, kind: str = "") -> Finding:
    repair = {
        "missing": "menzil migrate --reapply",
        "outdated": "menzil migrate",
        "changed": "menzil migrate --reapply",
        "unknown": "upgrade this menzil, or drop what is not its own",
    }["outdated" if _is_outstanding(what, kind) else what]
    return Finding(
        "schema", "critical" if what == "missing" else "warning", f"{sentence[:1].upper()}{sentence[1:]}.", repair
    )
