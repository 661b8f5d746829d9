"""Seeded bugs: the checker must prove that it can fail.

`python -m tests.torture.mutants` puts each of them in, runs the same harness as always, and prints which promise was
seen broken by which bug. A bug that nobody notices is a hole in the harness.
"""

from __future__ import annotations

from typing import Any

from tests.torture.mutants import in_sql, in_worker
from tests.torture.mutants.mutant import Mutant
from tests.torture.plan import CHANNELS, Channel

__all__ = ["MUTANTS", "Mutant"]


def _only(*names: str) -> dict[str, Channel]:
    return {name: CHANNELS[name] for name in names}


def _run(sends: int, faults: int, kinds: str, *channels: str, **more: Any) -> dict[str, Any]:
    """A short run: so many sends and faults of these kinds, to these channels."""
    plan = {"sends": sends, "faults": faults, "kinds": tuple(kinds.split()), "channels": _only(*channels), "gap": 0.4}
    return {**plan, "senders": 2, "consumers": 3, "workers": 0, "drain_seconds": 15.0, **more}


_WORKERS: dict[str, Any] = {"consumers": 0, "workers": 2}
#: What consumers do more often than usual: fail, defer and show old tokens; only fail and defer; walk away and come
#: late; come late, so that they hardly ever commit: a commit that waits for the disk takes all others along.
_OLD_TOKENS = [[0.05, 0.22], [0.48, 0.54], [0.48, 0.54]]
_TRIES_AGAIN = [[0.05, 0.22]]
_WALKS_AWAY = [[0.0, 0.05]]
_SLOW = {"favoured": [[0.03, 0.05]]}

MUTANTS: dict[str, Mutant] = {
    "settle_without_token": Mutant(
        "A settle takes the lease of the message, whoever holds it.",
        ("stale_accepted",),
        edits=in_sql.SETTLE_WITHOUT_TOKEN,
        plan=_run(500, 4, "stop_consumer kill_consumer", "plain", options={"favoured": _OLD_TOKENS}),
    ),
    "heartbeat_without_token": Mutant(
        "A heartbeat keeps the lease of the message, whoever holds it.",
        ("stale_accepted",),
        edits=in_sql.HEARTBEAT_WITHOUT_TOKEN,
        plan=_run(500, 4, "kill_consumer", "plain", options={"favoured": _OLD_TOKENS, "verbs": ["beat"]}),
    ),
    "settle_before_delivery": Mutant(
        "A worker completes a message, and then delivers it.",
        ("undelivered",),
        worker=in_worker.settle_before_delivery,
        plan=_run(500, 4, "kill_worker", "work", **_WORKERS, gap=1.2),
    ),
    "asynchronous_commit": Mutant(
        "A send does not wait for the disk.",
        ("lost",),
        edits=in_sql.ASYNCHRONOUS_COMMIT,
        plan=_run(1600, 3, "kill_backend kill_postmaster", "plain", senders=6, consumers=1, gap=2.5, options=_SLOW),
    ),
    "lease_without_lock": Mutant(
        "Two consumers may be at the same lane and find the same messages.",
        ("two_leases",),
        edits=in_sql.LEASE_WITHOUT_LOCK,
        plan=_run(500, 2, "cut", "plain", consumers=6),
    ),
    "limit_without_lock": Mutant(
        "Two consumers may ask the same gate and both be told that there is room.",
        ("concurrency", "rate"),
        edits=in_sql.LIMIT_WITHOUT_LOCK,
        plan=_run(300, 2, "cut", "three", "paced"),
    ),
    "attempts_at_failure": Mutant(
        "A lease that ran out does not count as an attempt.",
        ("two_leases",),
        edits=in_sql.ATTEMPTS_AT_FAILURE,
        plan=_run(400, 4, "kill_consumer stop_consumer", "plain", options={"favoured": _WALKS_AWAY}),
    ),
    "no_reaper": Mutant(
        "Nobody takes back what a dead worker held.",
        ("drained",),
        edits=in_sql.NO_REAPER,
        plan=_run(300, 4, "kill_consumer", "plain", drain_seconds=8.0, options={"favoured": _WALKS_AWAY}),
    ),
    "worker_clock": Mutant(
        "The end of a lease is reckoned by the clock of the worker, which is two hours off.",
        ("two_leases", "drained"),
        worker=in_worker.worker_clock,
        plan=_run(300, 3, "kill_worker", "work", **_WORKERS, gap=1.2, drain_seconds=8.0),
    ),
    "no_polling": Mutant(
        "A worker that found nothing waits until a send wakes it.",
        ("drained",),
        worker=in_worker.no_polling,
        plan=_run(300, 4, "cut terminate", "work", consumers=0, workers=1, drain_seconds=8.0),
    ),
    "fifo_without_earlier": Mutant(
        "The next message of an ordering key is ready whether or not an earlier one is on its way.",
        ("order",),
        edits=in_sql.FIFO_WITHOUT_EARLIER,
        plan=_run(500, 2, "kill_consumer", "plain", options={"favoured": _TRIES_AGAIN}),
    ),
    "idempotency_while_active": Mutant(
        "An idempotency key is free again when its message ends.",
        ("idempotent",),
        edits=in_sql.IDEMPOTENCY_WHILE_ACTIVE,
        plan=_run(500, 2, "cut_commit", "plain"),
    ),
    "feed_by_id": Mutant(
        "The reader of the feed takes what has a higher id than the last it had.",
        ("feed",),
        elsewhere=True,
        plan=_run(300, 2, "kill_reader", "plain"),
    ),
    "unsorted_settle": Mutant(
        "A settle of many takes their leases in the order in which they were named.",
        ("deadlock",),
        edits=in_sql.UNSORTED_SETTLE,
        plan=_run(500, 2, "cut", "plain", options={"twins": 1.0}),
    ),
}
