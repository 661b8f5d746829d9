"""Scenes about who is served next: fairness, priority, and limits."""

from __future__ import annotations

import time

from examples.demo.book import counted
from examples.demo.stage import Stage, milliseconds

MANY = 5000


def fairness(stage: Stage) -> None:
    """A channel with thousands of messages does not make a channel with one wait; an urgent one overtakes both."""
    stage.title("Channels take turns; a priority goes first")
    mq, book = stage.mq, stage.book
    mq.channel_set("newsletter")
    mq.channel_set("password")
    began = time.monotonic()
    book.sent("newsletter", *mq.send_batch("newsletter", [{"to": f"reader-{n}"} for n in range(MANY)]))
    stage.say(f"{MANY:,} newsletters in one statement: {milliseconds(began)}")
    single = book.sent("password", mq.send("password", {"to": "ada"}))
    urgent = book.sent("newsletter", mq.send("newsletter", {"to": "the editor"}, priority=9))
    stage.say(f"then one password mail, message {single}, and one newsletter of priority 9, message {urgent}")
    batch = stage.until(lambda: mq.dequeue(4), "there is something to do")
    stage.say(f"the next four: {', '.join(f'{message.id} ({message.channel})' for message in batch)}")
    stage.check(batch[0].id == urgent, "the highest priority goes first")
    stage.check(single in [message.id for message in batch], "the single message does not wait for thousands")
    mq.complete_many(batch)
    began, done = time.monotonic(), len(batch) - 2  # newsletters of priority 0 in the first batch
    while batch := mq.dequeue(100, channels=["newsletter", "password"]):
        done += len(batch)
        settled = mq.complete_many(batch)
        stage.check(all(outcome.ok for outcome in settled), "every lease is settled")
    passed = time.monotonic() - began
    stage.say(f"the rest in batches of 100: {done:,} newsletters, {done / passed:,.0f} a second with one consumer")
    stage.check(done == MANY, "every newsletter is handed out once")


def concurrency(stage: Stage) -> None:
    """At most two in flight, over all consumers."""
    stage.title("A channel with max_concurrency 2")
    mq = stage.mq
    mq.channel_set("packing", max_concurrency=2)
    stage.book.sent("packing", *mq.send_batch("packing", [{"parcel": n} for n in range(5)]))
    first = stage.until(lambda: mq.dequeue(10, channels="packing"), "packing begins")
    second = mq.dequeue(10, channels="packing")
    stage.say(f"five messages, a batch of up to ten: {len(first)}; another batch: {len(second)}")
    stage.check((len(first), second) == (2, []), "two are in flight at most")
    mq.complete(first[0])
    third = stage.until(lambda: mq.dequeue(10, channels="packing"), "a slot comes back")
    stage.say(f"one completed, another batch: {len(third)}")
    stage.check(len(third) == 1, "a slot that comes back is one slot")
    flying, packed = [first[1], *third], 1
    while packed < 5:
        packed += len(mq.complete_many(flying))
        flying = mq.dequeue(10, channels="packing")
        stage.check(len(flying) <= 2, "two are in flight at most")


def rate(stage: Stage) -> None:
    """At most two in any half second, however many consumers ask."""
    stage.title("A channel that releases 2 messages per 0.5 s")
    mq = stage.mq
    mq.channel_set("sms", release_interval=0.5, release_count=2)
    stage.book.sent("sms", *mq.send_batch("sms", [{"text": n} for n in range(6)]))
    ids = list[int]()
    while len(ids) < 6:
        batch = stage.until(lambda: mq.dequeue(10, channels="sms"), "the next text messages are released")
        mq.complete_many(batch)
        ids += [message.id for message in batch]
    left = stage.ask(
        "select extract(epoch from leased_at)::float from menzil.archive where id = any(%s) order by 1", ids
    )
    times = [at - left[0][0] for (at,) in left]
    stage.say(f"messages {counted(ids)} left after {', '.join(f'{at:.2f}' for at in times)} s")
    stage.check(all(later - sooner > 0.499 for sooner, later in zip(times, times[2:], strict=False)), "the rate holds")
