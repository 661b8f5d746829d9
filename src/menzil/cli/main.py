"""The `menzil` command: the table of its commands, and nothing they do.

To add one, write a file with a click command beside this one and give it a line in COMMANDS.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

import click

from menzil.cli.actor import actor_option
from menzil.cli.lazy import LazyGroup, Place

COMMANDS: dict[str, Place] = {
    "adopt": Place("menzil.cli.adopt:adopt", "Make a copy of a database live, or let it stand still."),
    "archive": Place("menzil.cli.archive:archive", "Keep the archive of ended messages in order."),
    "bridge": Place("menzil.cli.bridge:bridge", "Take records of Kafka, NATS, Redis, RabbitMQ and MQTT into channels."),
    "channel": Place("menzil.cli.channel:channel", "Look at channels, set their limits, hold and empty them."),
    "completion": Place("menzil.cli.completion:completion", "Print what bash, zsh or fish need to complete commands."),
    "console": Place("menzil.cli.console:console", "Serve the operator's seat to a browser."),
    "dlq": Place("menzil.cli.dlq:dlq", "Look at dead letters, send them once more, clean up."),
    "doctor": Place("menzil.cli.doctor:doctor", "Look for what is wrong and say what repairs it."),
    "endpoint": Place("menzil.cli.endpoint:endpoint", "Make, change, watch and test endpoints."),
    "event-type": Place("menzil.cli.pubsub:event_type", "Look at and change the kinds of events."),
    "lake": Place("menzil.cli.lake:lake", "Serve the lake to other engines, make it known to a database."),
    "message": Place("menzil.cli.message:message", "Look at messages, cancel them, hurry them."),
    "metrics": Place("menzil.cli.metrics:metrics", "Print the numbers of the queue."),
    "migrate": Place("menzil.cli.migrate:migrate", "Install menzil into a database, or bring it up to date."),
    "pg": Place("menzil.cli.pg:pg", "Start, stop and look at the embedded PostgreSQL."),
    "pipeline": Place("menzil.cli.pipeline:pipeline", "Move many messages, and look at their history, with Spark."),
    "plan": Place(
        "menzil.cli.plans:plan", "Redrive, replay or cancel many messages: at a pace, with stop and take back."
    ),
    "pulse": Place("menzil.cli.pulse:pulse", "Show what was sent, ended and failed, minute by minute."),
    "publish": Place("menzil.cli.pubsub:publish", "Send an event to all its subscribers."),
    "replay": Place("menzil.cli.replay:replay", "Send ended messages once more."),
    "report": Place("menzil.cli.report:report", "Write a page about deliveries: what is wrong, how much, how fast."),
    "schedule": Place("menzil.cli.schedule:schedule", "Look at and change messages that repeat."),
    "send": Place("menzil.cli.send:send", "Send a message, or many."),
    "settings": Place("menzil.cli.settings:settings", "Look at and change the settings of the whole queue."),
    "sql": Place("menzil.cli.sql:sql", "Print the SQL that migrate would run, without connecting."),
    "subscribe": Place("menzil.cli.pubsub:subscribe", "Let an endpoint get events."),
    "subscription": Place("menzil.cli.pubsub:subscription", "Look at who gets which events."),
    "top": Place("menzil.cli.top:top", "Watch the queue and its channels, every second."),
    "unsubscribe": Place("menzil.cli.pubsub:unsubscribe", "End subscriptions."),
    "up": Place("menzil.cli.up:up", "Start a database, a worker and the console together."),
    "worker": Place("menzil.cli.worker:worker", "Deliver messages to endpoints and handlers."),
    "workers": Place("menzil.cli.workers:workers", "List who is at work."),
}


@click.group(
    cls=LazyGroup,
    places=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 fine, 1 something to fix, 2 could not.",
)
@click.version_option(package_name="menzil", prog_name="menzil", message="%(prog)s %(version)s")
@actor_option
def main() -> None:
    """A message queue and transactional outbox inside PostgreSQL.

    Commands that need a database take --dsn, else MENZIL_DSN, else dsn in menzil.toml, else the PG* variables of
    libpq, else the embedded PostgreSQL.
    """
    _open_streams()
    # A terminal that cannot show a letter shows its number; it does not end the command.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if "MENZIL_LIFELINE" in os.environ:  # a child of `menzil up` or of `menzil worker --processes` ends with its parent
        from menzil.cli.lifeline import watch_lifeline

        watch_lifeline()


def _open_streams() -> None:
    """Open standard streams that were closed: otherwise a connection would get their number, and libuv would abort."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    # Python has None where a stream was closed when it began, and callers ask a stream whether it is a terminal.
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
