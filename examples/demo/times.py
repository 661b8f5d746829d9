"""Scenes about time: later, again and again, and too late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from examples.demo.stage import Stage


def delayed(stage: Stage) -> None:
    """A delayed message comes when it is due, a message past its expiry never."""
    stage.title("Later, and too late")
    mq = stage.mq
    mq.channel_set("reminders")
    due = stage.book.sent("reminders", mq.send("reminders", {"pay": "order 7"}, delay=0.4))
    mq.complete(stage.take("reminders"))
    ((waited, early),) = stage.ask(
        """select extract(epoch from leased_at - created_at)::float, leased_at < scheduled_at
             from menzil.archive where id = %s""",
        due,
    )
    stage.say(f"message {due} with a delay of 0.4 s: handed out after {waited:.2f} s")
    stage.check(not early, "a delayed message waits for its time")
    gone = stage.book.sent("reminders", mq.send("reminders", {"sale": "today"}, expires_in=0.2), end="expired")
    expires_at = mq.status(gone).expires_at
    stage.until(lambda: stage.ask("select true where clock_timestamp() > %s", expires_at), "it expires")
    late = mq.dequeue(1, channels="reminders")
    stage.say(
        f"message {gone} expires in 0.2 s and is asked for too late: {len(late)} handed out, {mq.status(gone).status}"
    )
    stage.check(late == [], "an expired message is never handed out")


def schedule(stage: Stage) -> None:
    """A cron schedule fires each slot once, and a missed slot at the next look."""
    stage.title("Every day at a fixed time")
    mq = stage.mq
    mq.channel_set("reports")
    slot = datetime.now(UTC) - timedelta(minutes=2)
    cron = f"{slot.minute} {slot.hour} * * *"
    mq.schedule_create("daily-report", cron, "reports", {"report": "sales"}, time_zone="UTC")
    ((next_at,),) = stage.ask("select next_at from menzil.schedules")
    stage.say(f"schedule daily-report, cron {cron!r} in UTC: next at {next_at:%Y-%m-%d %H:%M}")
    with stage.connect() as conn:  # the one place where the demo reaches below the functions: it will not wait a day
        conn.execute("update menzil.schedule set next_at = next_at - interval '1 day'")
    fired, again = mq.schedule_fire_due(), mq.schedule_fire_due()
    stage.say(f"as if no worker had run since yesterday: {fired} fired, and {again} when asked once more")
    stage.check((fired, again) == (1, 0), "a missed slot fires once")
    message = stage.take("reports")
    stage.book.sent("reports", message.id)
    stage.say(f"message {message.id} carries {message.metadata}")
    mq.complete(message)
    mq.schedule_drop("daily-report")
