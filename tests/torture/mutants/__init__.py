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
    options = {"big_batches": 0.0, **more.pop("options", {})}  # more transactions for the same number of messages
    return {
        **plan,
        "options": options,
        "senders": 2,
        "consumers": 3,
        "workers": 0,
        "drain_seconds": 15.0,
        "turns": False,
        **more,
    }


_WORKERS: dict[str, Any] = {"consumers": 0, "workers": 2}
#: What consumers do more often than usual: fail, defer and show old tokens; only fail and defer; walk away and come
#: late; come late, so that they hardly ever commit: a commit that waits for the disk takes all others along.
_OLD_TOKENS = [[0.05, 0.22], [0.48, 0.54], [0.48, 0.54]]
_TRIES_AGAIN = [[0.05, 0.22]]
_WALKS_AWAY = [[0.0, 0.05]]
_SLOW = {"favoured": [[0.03, 0.05]]}

#: Channels whose messages go to a broker.
_BROKERS = ("nats", "valkey", "valkey_once")
#: Messages of many lanes: several leases in one settle.
_LANES = ("plain", "three", "paced", "short")

MUTANTS: dict[str, Mutant] = {
    "settle_without_attempt": Mutant(
        "A settle takes the lease of the message, whichever attempt it shows.",
        ("stale_accepted",),
        edits=in_sql.SETTLE_WITHOUT_ATTEMPT,
        plan=_run(500, 4, "stop_consumer kill_consumer", "plain", options={"favoured": _OLD_TOKENS}),
    ),
    "heartbeat_without_attempt": Mutant(
        "A heartbeat keeps the lease of the message, whichever attempt it shows.",
        ("stale_accepted",),
        edits=in_sql.HEARTBEAT_WITHOUT_ATTEMPT,
        plan=_run(500, 4, "kill_consumer", "plain", options={"favoured": _OLD_TOKENS, "verbs": ["beat"]}),
    ),
    "settle_before_delivery": Mutant(
        "A worker completes a message, and then delivers it.",
        ("undelivered",),
        worker=in_worker.settle_before_delivery,
        plan=_run(500, 4, "kill_worker", "work", **_WORKERS, gap=1.2),
    ),
    "settle_before_the_confirm": Mutant(
        "A worker calls a message delivered when it is written to the broker, before the broker has acknowledged it.",
        ("unstored",),
        worker=in_worker.settle_before_the_confirm,
        plan=_run(600, 6, "swallow_broker kill_broker reset_broker", *_BROKERS, **_WORKERS, gap=1.0),
    ),
    "asynchronous_commit": Mutant(
        "A send does not wait for the disk.",
        ("lost",),
        edits=in_sql.ASYNCHRONOUS_COMMIT,
        plan=_run(1600, 3, "kill_backend kill_postmaster", "plain", senders=6, consumers=1, gap=2.5, options=_SLOW),
    ),
    "lease_without_lock": Mutant(
        "Two consumers may be at the same lane and find the same messages.",
        ("two_leases", "internal_error"),
        edits=in_sql.LEASE_WITHOUT_LOCK,
        plan=_run(500, 2, "cut", "plain", consumers=6),
    ),
    "limit_without_lock": Mutant(
        "Two consumers may ask the same gate and both be told that there is room.",
        ("concurrency", "rate"),
        edits=in_sql.LIMIT_WITHOUT_LOCK,
        plan=_run(500, 2, "cut", "three", "paced", consumers=6),
    ),
    "attempts_at_failure": Mutant(
        "A lease that ran out does not count as an attempt.",
        ("two_leases",),
        edits=in_sql.ATTEMPTS_AT_FAILURE,
        plan=_run(400, 4, "kill_consumer stop_consumer", "plain", options={"favoured": _WALKS_AWAY}),
    ),
    "no_reaper": Mutant(
        "No lease is taken back from a dead worker.",
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
        plan=_run(600, 2, "cut_commit", "plain", options={"repeats": 0.4}),
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
        plan=_run(600, 2, "cut", *_LANES, options={"twins": 1.0, "next": 0.0, "apart": 1.0}),
    ),
    "fold_without_lock": Mutant(
        "Lines are made into runs of a lane that another transaction holds.",
        ("drained", "counters", "internal_error", "two_leases"),
        edits=in_sql.FOLD_WITHOUT_LOCK,
        plan=_run(600, 3, "stranger", "plain", consumers=6, gap=1.0),
    ),
    "head_past_run": Mutant(
        "A visit that ends in the middle of a lane moves the head past the run that is next.",
        ("drained", "counters"),
        edits=in_sql.HEAD_PAST_RUN,
        plan=_run(1000, 2, "cut", "plain", "short", senders=4, drain_seconds=8.0),
    ),
    "head_stays": Mutant(
        "A line that belongs before the head of its lane leaves the head where it is.",
        ("drained", "counters"),
        edits=in_sql.HEAD_STAYS,
        plan=_run(400, 3, "kill_consumer", "plain", drain_seconds=8.0, options={"favoured": _TRIES_AGAIN}),
    ),
    "end_not_split": Mutant(
        "A row of ends spans as many ids as the settle happens to.",
        ("counters", "drained"),
        edits=in_sql.END_NOT_SPLIT,
        plan=_run(
            *(1200, 12, "stranger", "plain"),
            drain_seconds=12.0,
            options={"strangers": ["loader"], "favoured": _TRIES_AGAIN},
        ),
    ),
    "withdrawals_before_lock": Mutant(
        "A dequeue asks for withdrawals before it has locked a lane.",
        ("two_ends", "counters"),
        edits=in_sql.WITHDRAWALS_BEFORE_LOCK,
        plan=_run(
            *(1000, 2, "cut", *_LANES),
            senders=4,
            consumers=2,
            drain_seconds=60.0,
            # Few and short cancels: the early question finds one that is under way or that no dequeue has met yet.
            # The bug is in the long way.
            options={
                "cancels": 0.15,
                "cancel_next": True,
                "slow_cancels": 0.0,
                "hurried": 1.0,
                "next": 0.0,
                "apart": 1.0,
            },
        ),
    ),
    "proof_without_late": Mutant(
        "A proof does not name the transactions that are still open.",
        ("drained", "counters"),
        edits=in_sql.PROOF_WITHOUT_LATE,
        plan=_run(400, 2, "cut", "plain", senders=4, drain_seconds=8.0),
    ),
    "left_lines_forgotten": Mutant(
        "A line of a lane that another transaction holds is forgotten by the proof.",
        ("drained", "counters"),
        edits=in_sql.LEFT_LINES_FORGOTTEN,
        plan=_run(500, 3, "stranger", "plain", drain_seconds=8.0, gap=1.0),
    ),
    "log_truncated": Mutant(
        "The log is emptied when a snapshot shows no line in it, although a transaction may be about to commit one.",
        ("drained", "counters"),
        edits=in_sql.LOG_TRUNCATED,
        plan=_run(500, 2, "cut", "plain", senders=4, drain_seconds=8.0),
    ),
    "short_way_without_withdrawals": Mutant(
        "The short way of a dequeue does not ask whether messages are being withdrawn.",
        ("two_ends", "counters"),
        edits=in_sql.SHORT_WAY_WITHOUT_WITHDRAWALS,
        plan=_run(
            *(800, 2, "cut", "deep"),
            consumers=2,
            options={"cancels": 1.0, "cancel_next": True, "slow_cancels": 1.0, "big_batches": 0.5, "next": 0.95},
        ),
    ),
    "fresh_way_without_withdrawals": Mutant(
        "The fresh way of a dequeue does not ask whether messages are being withdrawn.",
        ("two_ends", "counters"),
        edits=in_sql.FRESH_WAY_WITHOUT_WITHDRAWALS,
        plan=_run(
            *(800, 2, "cut", "plain"),
            consumers=2,
            options={"cancels": 1.0, "cancel_next": True, "slow_cancels": 1.0, "next": 0.0},
        ),
    ),
    "housekeeping_without_timeout": Mutant(
        "Housekeeping waits for a lock that it wants for itself alone, and every other statement waits behind it.",
        ("held_up",),
        edits=in_sql.HOUSEKEEPING_WITHOUT_TIMEOUT,
        plan=_run(600, 2, "stranger", "work", **_WORKERS, gap=6.0, options={"strangers": ["reader"]}),
    ),
}
