"""The scene with the circuit breaker: a receiver that is down is left alone, then asked once, then served."""

from __future__ import annotations

from examples.demo.stage import Stage
from examples.demo.webhooks import endpoint

COOLDOWN = 5  # the shortest there is


def circuit(stage: Stage) -> None:
    """Ten failures open it, nothing is tried while it is open, exactly one probe goes, and then the backlog flows."""
    stage.title("Ten failures open the circuit")
    mq, partner = stage.mq, stage.partner
    mq.set_setting("circuit_breaker_cooldown", COOLDOWN)
    endpoint(stage, "tracking", {"max_retries": 20, "backoff": "fixed", "base_delay_seconds": 1})
    partner.play("/tracking", then={"status": 503, "body": "down"})
    ids = mq.send_batch("tracking", [{"parcel": n} for n in range(10)])
    opened = stage.until(lambda: _open(stage), "the circuit opens")
    tried = len(partner.requests("/tracking"))
    stage.say(f"{len(ids)} messages, {tried} requests, all answered 503: circuit {opened}, for {COOLDOWN} s")
    stage.check(tried == 10, "ten failures open the circuit, and not one more is tried")
    partner.play("/tracking", {"wait": 0.5})  # repaired, but slow at first
    ids += mq.send_batch("tracking", [{"parcel": n} for n in range(10, 40)])
    stage.book.sent("tracking", *ids)
    stage.say("the receiver is repaired; 30 more messages are accepted and wait")
    stage.workshop.warm()  # for the last scenes: here nothing else happens for a while
    stage.ended(ids, "completed")
    before, (probe, *others) = partner.requests("/tracking")[:tried], partner.requests("/tracking")[tried:]
    rest = probe.began - max(request.ended or 0 for request in before)
    alone = others[0].began - (probe.ended or 0)
    stage.say(f"nothing was tried for {rest:.2f} s; then one probe, message {probe.message_id}, answered after "
              f"{(probe.ended or 0) - probe.began:.2f} s")  # fmt: skip
    stage.say(f"the next request came {alone * 1000:.0f} ms after that answer; {1 + len(others)} messages in "
              f"{others[-1].began - probe.began:.2f} s, the backlog is gone")  # fmt: skip
    stage.check(rest > COOLDOWN - 0.1, "nothing is tried while the circuit is open")
    stage.check(alone >= 0, "one probe goes, and no other request before its answer")
    stage.check(len(others) == len(ids) - 1, "every message is delivered once after the probe")
    events = stage.ask(
        "select event_type from menzil.event_log where entity_id = 'tracking' and event_type ~ '^circuit' order by id"
    )
    stage.say(f"events: {', '.join(name for (name,) in events)}")
    wanted = ["circuit.opened", "circuit.half_open", "circuit.closed"]
    stage.check([name for (name,) in events] == wanted, "each turn of the circuit is one event")


def _open(stage: Stage) -> str | None:
    ((state,),) = stage.ask("select circuit_state from menzil.get_endpoint_health('tracking')")
    return state if state == "open" else None
