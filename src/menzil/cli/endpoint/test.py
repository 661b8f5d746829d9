"""One message to an endpoint, and what became of it."""

from __future__ import annotations

import time
from typing import Any

import click

from menzil.cli import given
from menzil.cli.database import Database, on_database
from menzil.cli.lazy import SOMETHING_TO_FIX
from menzil.cli.show import document, json_option, say
from menzil.cli.timeline import attempt_lines
from menzil.model.status import Status
from menzil.ops import looking_messages, messages, sending
from menzil.watch.endpoints import described

#: Seconds between two looks: short at first, because most deliveries are.
FIRST_LOOK, LONGEST_LOOK = 0.02, 0.5


@click.command()
@click.argument("name")
@click.option("--body", type=given.json_value("body"), metavar="JSON|@FILE", help="What to send instead of a greeting.")
@click.option(
    "--timeout", type=given.seconds, default="30s", show_default=True, metavar="DURATION", help="How long to wait."
)
@json_option
@on_database
@click.pass_context
def test(ctx: click.Context, db: Database, name: str, body: Any, timeout: float, as_json: bool) -> None:
    """Send one message, wait for its end, show every attempt.

    It stands in line like any other message, and a worker must run to deliver it.
    """
    found = described(db.run, name)
    if found["paused"]:
        say(f"Endpoint {name} is paused and will hold the message.")
    payload = {"type": "menzil.test", "endpoint": name} if body is None else body
    message_id = db.run(sending.send(name, payload, dumps=given.dumps, metadata={"test": True}))
    say(f"Sent message {message_id}.")
    status = _wait(db, message_id, timeout)
    attempts = db.run(looking_messages.attempts(message_id))
    if as_json:
        document({"id": message_id, "status": status.status, "last_error": status.last_error, "attempts": attempts})
    else:
        for attempt in attempts:
            click.echo("\n".join(attempt_lines(attempt)))
        click.echo(f"{message_id} {status.status}")
    if not status.ended:
        if attempts:
            say(f"It has not ended after {timeout:g} s: it failed, and is tried again.")
            say(f"Hint: the last attempt says what to repair; `menzil message show {message_id}` tells of the next")
        else:
            say(f"It has not ended after {timeout:g} s.")
            say(f"Hint: does a worker run? See `menzil workers` and `menzil message show {message_id}`")
    if status.status != "completed":
        ctx.exit(SOMETHING_TO_FIX)


def _wait(db: Database, message_id: int, timeout: float) -> Status:
    deadline, pause = time.monotonic() + timeout, FIRST_LOOK
    while True:
        status = db.run(messages.status(message_id))
        if status.ended or time.monotonic() >= deadline:
            return status
        time.sleep(min(pause, max(deadline - time.monotonic(), 0)))
        pause = min(pause * 1.5, LONGEST_LOOK)
