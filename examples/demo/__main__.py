"""Plays all scenes on a server of their own, compares the book with the archive, and exits with 0 if it adds up."""

from __future__ import annotations

import logging
import signal
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from examples.demo import (
    again,
    brokers,
    circuit,
    crash,
    endings,
    events,
    history,
    leases,
    refusals,
    sending,
    times,
    trouble,
    turns,
    watch,
    webhooks,
)
from examples.demo.stage import Stage, UntrueError
from menzil import Menzil, MenzilError
from menzil.embedded import Embedded
from menzil.install import migrate

SCENES = (
    sending.transaction,
    sending.crossing,
    sending.ordering,
    turns.fairness,
    turns.concurrency,
    turns.rate,
    times.delayed,
    times.schedule,
    leases.expiry,
    leases.cooperative,
    trouble.dead_letter,
    trouble.second_thoughts,
    trouble.story,
    crash.kill,
    webhooks.guarded,
    webhooks.signed,
    webhooks.retried,
    webhooks.rested,
    refusals.refused,
    refusals.silent,
    circuit.circuit,
    events.publish,
    brokers.there_and_back,
    endings.asked,
    endings.killed,
    again.redrive,
    again.replay,
    watch.standing,
    history.exported,
    history.looked,
    history.replayed,
)


def main() -> int:
    """Exit code 0: everything happened as told; 1: something did not; 2: there is no server to play on."""
    logging.getLogger("psycopg").addHandler(logging.NullHandler())  # it would complain about the server we kill
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="menzil-demo-", ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o711)  # for root the server runs as another account, which has to pass through
        server = Embedded(Path(place) / "pg")
        try:
            server.start()
        except MenzilError as error:
            print(error, file=sys.stderr)
            return 2
        try:
            return _play(server, began)
        except UntrueError as untrue:
            print(f"\nThis should be so, and is not: {untrue}.", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
        finally:
            server.close(wait=30)


def _play(server: Embedded, began: float) -> int:
    started = time.monotonic()
    migrate(server.dsn)
    with Menzil(server.dsn) as mq, closing(Stage(server, mq)) as stage:
        print(f"A PostgreSQL {server.version} of its own, fsync on, on port {server.port}: {started - began:.1f} s;"
              f" menzil installed: {time.monotonic() - started:.1f} s", flush=True)  # fmt: skip
        try:
            for scene in SCENES:
                scene(stage)
        except UntrueError:
            print("", *stage.logs(), sep="\n", file=sys.stderr)
            raise
        stage.title("What was sent, and how it ended")
        with stage.connect() as conn:
            for line in stage.book.table(conn):
                stage.say(line)
            wrong = [*stage.book.differences(conn), *watch.differences(stage)]
    for line in wrong[:20]:
        print(f"    {line}", file=sys.stderr)
    stage.check(not wrong, f"what was sent and how it ended add up ({len(wrong)} messages do not)")
    stage.good(f"It adds up: {len(stage.book.entries):,} messages, each ended once. {time.monotonic() - began:.1f} s.")
    if stage.workshop.page is not None:
        print(f"\nWhat stays is the report of all this: {stage.workshop.page}")
        print(f"and its history: menzil pipeline audit --lake {stage.workshop.place / 'lake'}")
    print("\nRead on: the README, the tutorial about a first message, how a message travels, the examples.")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # its directory is removed then, too
    sys.exit(main())
