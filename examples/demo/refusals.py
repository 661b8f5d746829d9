"""Scenes about receivers that refuse, or say nothing."""

from __future__ import annotations

import time

from examples.demo.book import counted
from examples.demo.stage import Stage, milliseconds
from examples.demo.webhooks import endpoint
from menzil import DisabledError

SECONDS = 2


def refused(stage: Stage) -> None:
    """400 is the message's fault and not tried again; 410 also closes the endpoint."""
    stage.title("400: a dead letter at once; 410: and the endpoint is disabled")
    mq = stage.mq
    endpoint(stage, "catalogue")
    stage.partner.play("/catalogue", then={"status": 400, "body": "unknown article"})
    ids = mq.send_batch("catalogue", [{"article": n} for n in (1, 2)])
    endpoint(stage, "old-partner", auto_disable_on_gone=True)
    stage.partner.play("/old-partner", then={"status": 410, "body": "we have moved"})
    gone = mq.send("old-partner", {"hello": "?"})
    stage.book.sent("catalogue", *ids, end="failed")
    stage.book.sent("old-partner", gone, end="failed")
    stage.ended([*ids, gone], "failed")
    for message_id, name, attempts, error in stage.ask(
        """select original_message_id, endpoint_name, num_attempts, last_error from menzil.dlq
            where original_message_id = any(%s) order by 1""",
        [*ids, gone],
    ):
        stage.say(f"message {message_id} to {name}, attempt {attempts}: {error}")
        stage.check(attempts == 1, "a refusal is not tried again")
    said = stage.refused(lambda: mq.send("old-partner", {}), DisabledError)
    (event,) = stage.ask(
        "select event_type, metadata from menzil.event_log where event_type = 'endpoint.disabled' and entity_id = %s",
        "old-partner",
    )
    stage.say(f"event {event[0]}; another send: refused, {said}")
    ((failures,),) = stage.ask("select circuit_failure_count from menzil.get_endpoint_health('catalogue')")
    stage.check(failures == 0, "a refusal of one message is not held against the endpoint")


def silent(stage: Stage) -> None:
    """Who never answers, or one byte at a time, is left after the deadline; others do not wait for it."""
    stage.title("A receiver that hangs, and one that drips")
    mq, names = stage.mq, ("sleeper", "dripper")
    for name, act in zip(names, ({"hold": True}, {"drip": True}), strict=True):
        endpoint(stage, name, {"max_retries": 0}, timeout_seconds=SECONDS)
        stage.partner.play(f"/{name}", then=act)
    ids = {name: mq.send_batch(name, [{"knock": n} for n in range(3)]) for name in names}
    stage.until(lambda: all(len(stage.partner.requests(f"/{name}")) == 3 for name in names), "six requests come")
    began = time.monotonic()
    quick = stage.book.sent("newsdesk", mq.send("newsdesk", {"headline": "meanwhile"}))
    stage.ended([quick], "completed")
    stage.say(f"six requests hang or drip; message {quick} to another endpoint meanwhile: {milliseconds(began)}")
    answered = stage.partner.requests("/newsdesk")[-1].ended or 0
    for name in names:
        stage.book.sent(name, *ids[name], end="failed")
        stage.ended(ids[name], "failed")
        requests = stage.partner.requests(f"/{name}")
        spent = [(request.ended or 0) - request.began for request in requests]
        stage.check(min(request.ended or 0 for request in requests) > answered, "no delivery waits for those that hang")
        ((error,),) = stage.ask(
            "select distinct last_error from menzil.dlq where original_message_id = any(%s)", ids[name]
        )
        stage.say(f"messages {counted(ids[name])} to {name}, timeout {SECONDS} s: the receiver was left after "
                  f"{min(spent):.2f} to {max(spent):.2f} s")  # fmt: skip
        stage.say(f"  {error}")
        stage.check(len(spent) == 3 and max(spent) < SECONDS + 1, "no request holds a slot beyond the deadline")
