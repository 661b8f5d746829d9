"""Scenes about what goes wrong: retries, dead letters, second thoughts; and the story of one message."""

from __future__ import annotations

from typing import LiteralString

from examples.demo.stage import Stage
from menzil import Settlement


def dead_letter(stage: Stage) -> None:
    """A failure is tried again, later each time, until the budget is used; then a person has to look."""
    stage.title("Failure, retry with back-off, dead letter")
    mq = stage.mq
    mq.channel_set("carrier")
    mq.set_retry_policy("carrier", {"max_retries": 2, "backoff": "exponential", "base_delay_seconds": 0.2})
    message_id = stage.book.sent("carrier", mq.send("carrier", {"parcel": 4}), end="failed")
    outcome, waits = Settlement.RETRY, []
    while outcome is Settlement.RETRY:
        message = stage.take("carrier", worker="van-1")
        outcome = mq.fail(message, f"not at home, try {message.attempt}")
        due = mq.status(message_id).next_retry_at
        if due:
            query: LiteralString = "select %s - max(ended_at) from menzil.attempts where message_id = %s"
            waits.append(stage.ask(query, due, message_id)[0][0].total_seconds())
        waited = f", again in {waits[-1]:.1f} s" if due else ""
        stage.say(f"message {message_id}, attempt {message.attempt}: fail → {outcome}{waited}")
    stage.check(outcome is Settlement.DEAD and message.attempt == 3, "two retries follow the first try")
    stage.check([round(wait, 3) for wait in waits] == [0.2, 0.4], "the delay doubles")
    dead = stage.ask("select original_message_id, endpoint_name, last_error from menzil.dlq")
    stage.say(f"menzil.dlq: {dead[0]}")
    stage.check([row[0] for row in dead] == [message_id], "the dead letter is listed")
    unfit = stage.book.sent("carrier", mq.send("carrier", {"parcel": -1}), end="failed")
    outcome = mq.fail(stage.take("carrier"), "no such parcel", permanent=True)
    stage.say(f"message {unfit}, a permanent error: fail → {outcome} at once")
    stage.check(outcome is Settlement.DEAD, "a permanent error is not tried again")


def second_thoughts(stage: Stage) -> None:
    """A message that waits can be looked at and cancelled; one in flight cannot."""
    stage.title("Look, and cancel")
    mq = stage.mq
    ids = mq.send_batch("parcels", [{"order": 8}, {"order": 9}])
    stage.book.sent("parcels", ids[0])
    stage.book.sent("parcels", ids[1], end="cancelled")
    stage.say(f"peek: {[(message.id, message.payload) for message in mq.peek('parcels')]}")
    flying = stage.take("parcels")
    told = [mq.status(message_id).status for message_id in ids]
    stage.say(f"message {flying.id} is leased; status: {told[0]} and {told[1]}")
    cancelled = [mq.cancel(message_id) for message_id in ids]
    stage.say(f"cancel both: {cancelled[0]} (too late, it is in flight) and {cancelled[1]}")
    stage.check((told, cancelled) == (["processing", "pending"], [False, True]), "only what waits can be cancelled")
    mq.complete(flying)


def story(stage: Stage) -> None:
    """Everything that happened to one message can be read afterwards."""
    ((message_id,),) = stage.ask("select id from menzil.archive where channel = 'invoices'")
    stage.title(f"The story of message {message_id}, read from the archive and its attempts")
    (row,) = stage.ask(
        """select channel, status, num_attempts, retry_count, payload::text, ended_at - created_at
             from menzil.archive where id = %s""",
        message_id,
    )
    stage.say(
        f"{row[0]}: {row[1]} after {row[2]} attempts and {row[3]} failure, {row[5].total_seconds():.2f} s, {row[4]}"
    )
    tries = stage.ask(
        """select attempt, outcome, worker, ended_at - leased_at, coalesce(error, '')
             from menzil.attempts where message_id = %s order by attempt""",
        message_id,
    )
    for attempt, outcome, worker, took, error in tries:
        stage.say(f"attempt {attempt}: {outcome:<9} {worker:<7} {took.total_seconds():.3f} s  {error}".rstrip())
    stage.check([row[1] for row in tries] == ["recovered", "completed"], "every try is written down")
