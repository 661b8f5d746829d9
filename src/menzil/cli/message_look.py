"""`menzil message why`, `life` and `compare`: what one message waits for, what happened to it, how two differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from menzil.cli.database import Database, on_database
from menzil.cli.lazy import SOMETHING_TO_FIX
from menzil.cli.show import cell, count, document, json_option, paint, say
from menzil.cli.timeline import life_lines
from menzil.model import exact
from menzil.model.redact import Redactor
from menzil.watch import messages
from menzil.watch.redaction import redactor

Command = TypeVar("Command", bound=Callable[..., Any])

#: What a comparison shows of one value on a line; --json shows all of it.
LONGEST = 200
_SIGNS = {"changed": "~", "added": "+", "removed": "-", "equal": " "}
_COLOURS = {"added": "green", "removed": "red", "changed": "yellow"}


def redact_option(command: Command) -> Command:
    """Give a click command the flag --redact."""
    help_text = "Hide values that the setting redact names."
    return click.option("--redact", is_flag=True, help=help_text)(command)


def hiding(db: Database, redact: bool) -> Redactor | None:
    """The redactor of the database, if it is wanted."""
    return redactor(db.run) if redact else None


@click.command()
@click.argument("message_id", metavar="ID", type=int)
@redact_option
@json_option
@on_database
@click.pass_context
def why(ctx: click.Context, db: Database, message_id: int, redact: bool, as_json: bool) -> None:
    """Say why a message does not move, the most decisive reason first, and what repairs it.

    Exit code 1 when there is no such message.
    """
    found = messages.waits(db.run, message_id, redactor=hiding(db, redact))
    if as_json:
        document(found)
    else:
        for reason in found["why"]:
            _reason(reason)
            if reason["reason"] == "ended" and "dead letter" in reason["sentence"]:
                click.echo(f"  → menzil message show {message_id}, for the error of every try")
        if not found["why"]:
            say("Nothing holds it: it is leased when its turn comes.")
    if any(reason["reason"] == "unknown" for reason in found["why"]):
        ctx.exit(SOMETHING_TO_FIX)


def _reason(reason: Mapping[str, Any]) -> None:
    word = paint(reason["reason"].replace("_", " "), bold=reason["rank"] == 1)
    click.echo(f"{word}: {cell(reason['sentence'])}")
    if reason["repair"]:
        click.echo(f"  → {cell(reason['repair'])}")


@click.command()
@click.argument("message_id", metavar="ID", type=int)
@redact_option
@json_option
@on_database
def life(db: Database, message_id: int, redact: bool, as_json: bool) -> None:
    """Tell what happened to a message, to those it was made from and to those made from it, by time."""
    found = messages.life(db.run, message_id, redactor=hiding(db, redact))
    if as_json:
        document(found)
        return
    for line in life_lines(found["life"], message_id):
        click.echo(line)
    relatives = [one for one in found["family"] if one["relation"] != "self"]
    if relatives:
        click.echo()
    for one in relatives:
        way = "came before it" if one["depth"] < 0 else f"{cell(one['relation'])} of {one['parent_id']}"
        click.echo(f"{one['message_id']}  {way}, {cell(one['status'])} in {cell(one['channel'])}")


@click.command()
@click.argument("a", type=int)
@click.argument("b", type=int)
@click.option("--tries", metavar="ID", type=int, help="A and B are tries of this message.")
@click.option("--all", "everything", is_flag=True, help="Show equal parts, too.")
@redact_option
@json_option
@on_database
@click.pass_context
def compare(
    ctx: click.Context, db: Database, a: int, b: int, tries: int | None, everything: bool, redact: bool, as_json: bool
) -> None:
    """Show two messages side by side: their fields, and their bodies by JSON path.

    Exit code 1 when their bodies differ.
    """
    hide = hiding(db, redact)
    if tries is None:
        found = messages.compare(db.run, a, b, redactor=hide)
    else:
        found = messages.compare_tries(db.run, tries, a, b, redactor=hide)
    if as_json:
        document(found)
    else:
        _show(found, everything)
    if not all(part["equal"] for part in found["body"].values()):
        ctx.exit(SOMETHING_TO_FIX)


def _show(found: Mapping[str, Any], everything: bool) -> None:
    fields = [field for field in found["fields"] if everything or not field["equal"]]
    width = max((len(field["field"]) for field in fields), default=0)
    for field in fields:
        name = field["field"].replace("_", " ").ljust(width)
        same = f"  {name}  {cell(field['a'])}"
        differs = f"{_SIGNS['changed']} {name}  {_apart(field['a'], field['b'])}"
        click.echo(same if field["equal"] else paint(differs, _COLOURS["changed"]))
    for name, part in found["body"].items():
        click.echo(paint(f"{name}: {_verdict(part)}", bold=True))
        for row in part["rows"]:
            if row["change"] != "equal" or everything:
                click.echo(_row(row))
        if part["cut"]:
            say("There are more differences than are shown here; --json shows as many.")


def _apart(a: Any, b: Any) -> str:
    """Two values that differ; two times of one second with their fractions."""
    if isinstance(a, datetime) and isinstance(b, datetime) and cell(a) == cell(b):
        return " → ".join(one.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") for one in (a, b))
    return f"{cell(a)} → {cell(b)}"


def _verdict(part: Mapping[str, Any]) -> str:
    same = sum(row["size"] for row in part["rows"] if row["change"] == "equal")
    return "equal" if part["equal"] else f"{count(part['differences'], 'difference')}, {count(same, 'value')} equal"


def _row(row: Mapping[str, Any]) -> str:
    sign, path = _SIGNS[row["change"]], cell(row["path"], LONGEST)
    shown = {"added": (row["b"],), "removed": (row["a"],), "equal": (row["a"],)}.get(
        row["change"], (row["a"], row["b"])
    )
    return paint(f"{sign} {path}  {' → '.join(_value(value) for value in shown)}", _COLOURS.get(row["change"]))


def _value(value: Any) -> str:
    return cell(value if isinstance(value, bytes) else exact.dumps(value, default=str), LONGEST)
