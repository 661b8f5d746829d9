"""Scenes about leases: one that runs out, one that is kept, and work that yields in between."""

from __future__ import annotations

import time

from examples.demo.stage import Stage
from menzil import NotInFlightError, StaleLeaseError


def expiry(stage: Stage) -> None:
    """A worker that says nothing loses its lease, and its late answer is refused."""
    stage.title("A lease that runs out")
    mq = stage.mq
    mq.channel_set("invoices")
    message_id = stage.book.sent("invoices", mq.send("invoices", {"invoice": 11}))
    silent = stage.take("invoices", lease=0.3, worker="silent")
    began = time.monotonic()
    inherited = stage.take("invoices", worker="awake")
    stage.say(f"message {message_id}: leased for 0.3 s by worker silent, attempt {silent.attempt}, who says nothing")
    stage.say(
        f"{time.monotonic() - began:.2f} s later worker awake has it: attempt {inherited.attempt}, "
        f"{inherited.retry_count} failure counted"
    )
    stage.check((inherited.id, inherited.attempt) == (message_id, 2), "the message is handed out again")
    said = stage.refused(lambda: mq.complete(silent), StaleLeaseError)
    stage.say(f"silent wakes up and completes: refused, {said}")
    mq.heartbeat(inherited, 60)
    mq.complete(inherited)
    said = stage.refused(lambda: mq.heartbeat(inherited), NotInFlightError)
    stage.say(f"awake sends a heartbeat, completes, and sends another: refused, {said}")


def cooperative(stage: Stage) -> None:
    """A long task does one page per lease, leaves a bookmark, and lets others in between."""
    stage.title("A long task that yields: defer with a state")
    mq = stage.mq
    mq.channel_set("exports")
    task = stage.book.sent("exports", mq.send("exports", {"export": "catalogue", "pages": 3}))
    short = stage.book.sent("exports", mq.send("exports", {"export": "logo", "pages": 1}))
    order, ended = [], 0
    while ended < 2:
        message = stage.take("exports")
        page = int(message.state or b"0") + 1
        order.append(f"{message.payload['export']} {page}/{message.payload['pages']}")
        if page < message.payload["pages"]:
            mq.defer(message, state=str(page).encode())
        else:
            mq.complete(message)
            ended += 1
    told = mq.status(task)
    stage.say(f"messages {task} and {short}, one consumer: {', '.join(order)}")
    stage.say(f"message {task}: {told.status}, {told.attempts} attempts, {told.retry_count} failures")
    wanted = ["catalogue 1/3", "logo 1/1", "catalogue 2/3", "catalogue 3/3"]
    stage.check(order == wanted, "a deferred message goes behind what waited")
    stage.check((told.attempts, told.retry_count) == (3, 0), "a defer costs no retry")
