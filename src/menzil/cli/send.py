"""`menzil send`: from a name and a body to an id."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import IO, Any

import click

from menzil.cli import given
from menzil.cli.database import Database, on_database
from menzil.cli.names import knowing_names
from menzil.cli.options import chosen, message_options
from menzil.cli.progress import Progress
from menzil.cli.show import count, document, json_option, say
from menzil.model.errors import UsageError
from menzil.model.options import Send
from menzil.ops import sending

#: Lines of one statement, which is also one transaction.
CHUNK = 5_000


@click.command()
@click.argument("name")
@click.argument("body", required=False)
@message_options
@click.option("--text", "as_text", is_flag=True, help="BODY is plain text, sent as a JSON string.")
@click.option("--bytes", "as_bytes", is_flag=True, help="BODY is bytes, sent as they are.")
@click.option("--batch", is_flag=True, help="BODY holds one JSON value per line, each a message.")
@json_option
@on_database
def send(
    db: Database, name: str, body: str | None, as_text: bool, as_bytes: bool, batch: bool, as_json: bool, **options: Any
) -> None:
    """Send BODY to the channel or endpoint NAME and print the id of the message.

    BODY is JSON, @FILE for the contents of a file, or - for standard input; without it the message is an empty object.
    """
    said = chosen(db, **options)
    if batch:
        if as_text or as_bytes or said.get("idempotency_key") is not None:
            raise UsageError("--batch takes no --text, --bytes or --idempotency-key.", hint="its lines are JSON values")
        with knowing_names(db, name):
            _send_lines(db, name, "-" if body is None else body, said, as_json=as_json)
        return
    with knowing_names(db, name):
        message_id = db.run(sending.send(name, _payload(body, as_text, as_bytes), dumps=given.dumps, **said))
    if as_json:
        document({"id": message_id})
    else:
        click.echo(message_id)


def _payload(body: str | None, as_text: bool, as_bytes: bool) -> Any:
    if as_text and as_bytes:
        raise UsageError("--text and --bytes say different things.", hint="give one of them")
    if as_bytes:
        return given.raw(body or "")
    if as_text:
        return given.text(body or "")
    hint = "write JSON, or add --text to send plain text"
    return {} if body is None else given.written(given.text(body), "body", hint=hint)


def _send_lines(db: Database, name: str, source: str, options: Any, *, as_json: bool) -> None:
    """Send chunk by chunk, each all or nothing, so that a file of any length needs little memory."""
    ids: list[int] = []
    with _lines(source) as lines, Progress("sent") as progress:
        numbered = ((number, line.strip()) for number, line in enumerate(lines, 1))
        bodies = (_message(name, number, line, options) for number, line in numbered if line)
        while chunk := list(islice(bodies, CHUNK)):
            (op,) = sending.send_many(chunk, dumps=given.dumps)
            made = db.run(op)
            if as_json:
                ids += made
            else:
                progress.clear()
                click.echo("\n".join(map(str, made)))
            progress.add(len(made))
    say(f"Sent {count(progress.done, 'message')}.")
    if as_json:
        document({"ids": ids})


def _message(name: str, number: int, line: bytes, options: Any) -> Send:
    try:
        return Send(name, given.written(line.decode("utf-8-sig"), f"body in line {number}"), **options)
    except UnicodeDecodeError:
        raise UsageError(f"Line {number} is not UTF-8.") from None


@contextmanager
def _lines(source: str) -> Iterator[IO[bytes]]:
    if source == "-":
        yield sys.stdin.buffer
        return
    try:
        file = open(source.removeprefix("@"), "rb")  # noqa: SIM115 - closed below, outside the try
    except OSError as error:
        hint = "with --batch, BODY is @FILE or - for standard input"
        raise UsageError(f"{source.removeprefix('@')} cannot be read: {error.strerror}.", hint=hint) from None
    with file:
        yield file
