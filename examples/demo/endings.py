"""Scenes about how a worker ends: asked to, and killed."""

from __future__ import annotations

import re
import signal
import time

from examples.demo.book import counted
from examples.demo.events import points
from examples.demo.stage import Stage
from examples.demo.webhooks import endpoint

LEASE = 3  # seconds: long enough for a busy machine to keep, short enough to wait for


def asked(stage: Stage) -> None:
    """SIGTERM: what can be finished in time is, the rest is handed back and costs no retry."""
    stage.title("SIGTERM: finish, or hand back")
    hand, partner = stage.crew.hands[-1], stage.partner
    endpoint(stage, "customs", {"max_retries": 5, "base_delay_seconds": 0.1})
    partner.play("/customs", then={"hold": True})
    ids = stage.mq.send_batch("customs", [{"form": n} for n in range(5)])
    stage.book.sent("customs", *ids)
    stage.until(lambda: partner.held("/customs") == 5, "five requests wait for their answers")
    began = time.monotonic()
    hand.term()
    stage.until(lambda: hand.said("stopping"), "the worker says what it waits for")
    stage.say(f"{hand.name}: {hand.said('stopping')}")
    partner.release("/customs", 1)
    stage.until(lambda: hand.process.poll() is not None, "the worker ends")
    stage.say(f"{hand.name}: {_short(hand.said('stopped'))}")
    stage.say(f"exit code {hand.process.returncode} after {time.monotonic() - began:.1f} s, of which it gave them 2")
    told = [stage.mq.status(message_id) for message_id in ids]
    stage.check(hand.process.returncode == 0, "a worker that is asked to end ends well")
    stage.check(sorted(one.status for one in told) == ["completed", *["pending"] * 4], "four are handed back")
    stage.check(sum(one.retry_count for one in told) == 0, "being handed back costs no retry")


def killed(stage: Stage) -> None:
    """kill -9: leases run out, and another worker takes over; receivers see an id that they know."""
    stage.title("kill -9 for a worker, in the middle of its deliveries")
    mq, partner = stage.mq, stage.partner
    ids = [
        message_id for (message_id,) in stage.ask("select id from menzil.queue where channel = 'customs' order by 1")
    ]
    slow = stage.book.sent("points", mq.send("points", {"order": 7, "total": 1, "slow": True}))
    tries, _ = points(stage)
    victim = stage.crew.start("night-shift", "examples.demo.loyalty:app", "--lease", str(LEASE))
    stage.until(lambda: partner.held("/customs") == 4 and points(stage)[0] > tries, "it is in the middle of it")
    victim.process.send_signal(signal.SIGSTOP)  # from here on it hears nothing any more
    partner.release("/customs")
    stage.until(lambda: partner.held("/customs") == 0, "the receiver has accepted all four")
    victim.kill()
    began = time.monotonic()
    partner.play("/customs")
    stage.say(f"night-shift, pid {victim.pid}, lease {LEASE} s, delivers messages {counted(ids)} and handles {slow}")
    stage.say(
        "the receiver has accepted all four, the handler has written; it is killed before it can note any of that"
    )
    stage.check(victim.process.returncode == -signal.SIGKILL, "it had no time to say anything")
    relief = stage.crew.start("relief", "examples.demo.loyalty:app")
    stage.ended([*ids, slow], "completed")
    stage.say(f"relief, pid {relief.pid}: {time.monotonic() - began:.1f} s after the kill all of them are completed")
    requests = [request for request in partner.requests("/customs") if request.message_id in ids]
    names = {request.id for request in requests}
    twice = sum(request.accepted for request in requests) - len(names)
    stage.say(f"the receiver got {twice} of {len(names)} messages twice, and knows them by their webhook-id")
    stage.check(len(names) == len(ids) == 4, "a message keeps its name over workers")
    stage.check(twice == 4, "what was not noted is delivered again")
    stage.check({mq.status(one).retry_count for one in ids} == {1}, "a crash counts as one failure")
    tries_now, rows = points(stage)
    stage.say(f"for order 7 the handler wrote {tries_now - tries} times, and {rows.count(7)} row stands")
    stage.check((tries_now - tries, rows.count(7)) == (2, 1), "what a killed handler wrote is not there")
    stage.good("Nothing was lost.")


def _short(line: str | None) -> str:
    """Without the figures of the whole day."""
    return re.sub(r" (worker|seconds|delivered|failed|dead|deferred)=\S+", "", line or "")
