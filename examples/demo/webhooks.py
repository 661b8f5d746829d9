"""Scenes about delivery to others: where it may not go, how it is signed, and how it is tried again."""

from __future__ import annotations

import base64
import os
from typing import Any
from uuid import uuid4

from examples.demo.stage import Stage

METADATA = "http://169.254.169.254/latest/meta-data/"


def guarded(stage: Stage) -> None:
    """Addresses inside are refused before a connection is made, until a setting opens them."""
    stage.title("Where deliveries may not go")
    stage.say(f"a receiver of its own, in another process, listens on 127.0.0.1:{stage.partner.port}")
    for name, url in (("metadata", METADATA), ("inside", stage.partner.url("/inside"))):
        endpoint(stage, name, url=url)
        stage.book.sent(name, stage.mq.send(name, {"who": "am I"}), end="failed")
    hand = stage.crew.start("visitor", "--once", "--no-janitors")
    stage.until(lambda: hand.process.poll() is not None, "menzil worker --once ends")
    stage.check(hand.process.returncode == 0, "menzil worker --once ends well")
    dead = stage.ask(
        """select endpoint_name, num_attempts, last_error from menzil.dlq
            where endpoint_name in ('metadata', 'inside') order by id"""
    )
    for name, attempts, error in dead:
        stage.say(f"{name:<9} {error.partition(' (settings')[0]}")
        stage.check(attempts == 1 and error.startswith("[PERMANENT]"), "an address inside is refused for good")
    stage.check(len(dead) == 2, "both are refused")
    stage.say(f"connections the receiver saw: {stage.partner.connections}")
    stage.check(stage.partner.connections == 0, "what is refused is never connected to")
    stage.mq.set_setting("http_allow_internal_urls", True)
    stage.say("from here on http_allow_internal_urls is on: our receiver is on loopback")


def signed(stage: Stage) -> None:
    """A webhook, delivered by a worker and verified by the receiver with code of its own."""
    stage.title("A webhook, signed and delivered")
    secret = "whsec_" + base64.b64encode(os.urandom(32)).decode()
    stage.partner.expect_signature("/newsdesk", secret)
    endpoint(stage, "newsdesk", signing={"secret": secret})
    hand = stage.crew.start("postman", "examples.demo.loyalty:app", "--grace", "2")
    stage.until(lambda: hand.said("started"), "the worker starts")
    stage.say(f"menzil worker examples.demo.loyalty:app, pid {hand.pid}: one worker for all endpoints and a handler")
    ids = stage.mq.send_batch("newsdesk", [{"headline": n} for n in range(3)])
    stage.book.sent("newsdesk", *ids)
    stage.ended(ids, "completed")
    requests = stage.partner.requests("/newsdesk")
    stage.say(f"{len(ids)} messages, {len(requests)} requests, such as {requests[0].id}; signatures verified: "
              f"{sum(request.signed is True for request in requests)}")  # fmt: skip
    stage.check(sorted(request.message_id for request in requests) == ids, "each is delivered once")
    stage.check(all(request.signed for request in requests), "the receiver can verify every signature")
    shown = stage.ask("select config -> 'signing' from menzil.endpoints where name = 'newsdesk'")[0][0]
    stage.say(f"the endpoint does not show its secret: {shown}")
    stage.check(secret not in str(shown), "secrets are not shown")


def retried(stage: Stage) -> None:
    """A receiver that stumbles gets the same message again, under the same name."""
    stage.title("A receiver that answers 500 twice, then 200")
    endpoint(stage, "warehouse", {"max_retries": 5, "backoff": "exponential", "base_delay_seconds": 0.2})
    stage.partner.play("/warehouse", {"status": 500, "body": "no forklift"}, {"status": 500, "body": "no forklift"})
    correlation_id = uuid4()
    message_id = stage.mq.send("warehouse", {"ship": 7}, correlation_id=correlation_id)
    stage.book.sent("warehouse", message_id)
    stage.ended([message_id], "completed")
    requests = stage.partner.requests("/warehouse")
    for request in requests:
        after = f"after {request.began - requests[0].began:.2f} s"
        stage.say(f"attempt {request.attempt}, {after}: webhook-id {request.id} → {request.status}")
    stage.check([request.attempt for request in requests] == [1, 2, 3], "two failures, two retries")
    stage.check([request.status for request in requests] == [500, 500, 200], "the third try is accepted")
    stage.check(len({request.id for request in requests}) == 1, "the webhook-id stays the same")
    carried = {request.correlation_id for request in requests}
    stage.check(carried == {str(correlation_id)}, "the correlation id comes with every attempt")
    ((error,),) = stage.ask("select error from menzil.attempts where message_id = %s and attempt = 1", message_id)
    stage.say(f"x-correlation-id {correlation_id} each time; what was written down: {error}")


def rested(stage: Stage) -> None:
    """429 with Retry-After is obeyed by the whole endpoint, and counts as no failure."""
    stage.title("429 with Retry-After: the whole endpoint rests")
    # A short delay of its own: the longer of the policy's delay and Retry-After counts.
    endpoint(stage, "gateway", {"base_delay_seconds": 0.1}, max_concurrency=1)
    stage.partner.play("/gateway", {"status": 429, "retry_after": 1})
    ids = stage.mq.send_batch("gateway", [{"text": n} for n in range(4)])
    stage.book.sent("gateway", *ids)
    stage.ended(ids, "completed")
    first, *others = stage.partner.requests("/gateway")
    stage.check(first.status == 429 and first.ended is not None, "the first is turned away")
    pauses = [request.began - (first.ended or 0) for request in others]
    stage.say(f"four messages; the first is answered 429, Retry-After 1; {len(others)} requests follow after "
              f"{', '.join(f'{pause:.2f}' for pause in pauses)} s")  # fmt: skip
    stage.check(len(others) == 4 and min(pauses) >= 0.99, "no delivery is tried while the endpoint rests")
    ((failures,),) = stage.ask("select circuit_failure_count from menzil.get_endpoint_health('gateway')")
    stage.say(f"failures its circuit counts: {failures}")
    stage.check(failures == 0, "429 with a time to come back is no failure of the endpoint")


def endpoint(stage: Stage, name: str, policy: dict[str, Any] | None = None, **config: Any) -> None:
    """Create an endpoint that delivers to a path of the receiver."""
    stage.mq.create_endpoint(name, "http", {"url": stage.partner.url(f"/{name}"), **config})
    if policy:
        stage.mq.set_retry_policy(name, policy)
