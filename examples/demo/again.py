"""Scenes about a second chance: dead letters are redriven, the archive is replayed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from examples.demo.book import counted
from examples.demo.stage import Stage
from menzil import MenzilError

RATE = 40


def redrive(stage: Stage) -> None:
    """Dead letters by cause; when the cause is gone they go again, as new messages, once."""
    stage.title("Dead letters by cause, and again after the repair")
    mq, partner = stage.mq, stage.partner
    causes = mq.dlq_causes()
    for row in causes:
        stage.say(f"{row['endpoint_name']:<12} {row['failed_count']} × {row['cause'].partition(':')[0]}")
    stage.check(sum(row["failed_count"] for row in causes) == stage.book.dead(), "every dead letter has a cause")
    for name in ("catalogue", "sleeper", "dripper", "old-partner"):
        partner.play(f"/{name}")
    mq.enable_endpoint("old-partner")
    cause = next(row["cause"] for row in causes if row["endpoint_name"] == "catalogue")
    went = [
        mq.redrive_endpoint("catalogue", cause=cause),
        mq.redrive_endpoint("sleeper"),
        mq.redrive_endpoint("dripper"),
    ]
    ((letter,),) = stage.ask("select id from menzil.dlq where endpoint_name = 'old-partner'")
    new = mq.redrive_message(letter)
    rows = stage.ask("select endpoint_name, redriven_id from menzil.dlq where status = 'redriven' order by 2")
    stage.check(len(rows) == sum(went) + 1 == 9, "all of them go once more")
    for name, message_id in rows:
        stage.book.sent(name, message_id, origin="redriven")
    ids = [message_id for _, message_id in rows]
    stage.ended(ids, "completed")
    stage.say(f"receivers repaired: catalogue {went[0]} (by its cause), sleeper {went[1]}, dripper {went[2]}, "
              f"old-partner 1: messages {counted(ids)}, all delivered")  # fmt: skip
    said = stage.refused(lambda: mq.redrive_message(letter), MenzilError)
    stage.check(new in ids, "the new message is told")
    stage.say(f"the same letter again: refused, {said}")


def replay(stage: Stage) -> None:
    """A partner lost an hour: first the plan, then the same messages again, at a pace it can take."""
    stage.title("Replay of one endpoint's last hour, from the archive")
    mq = stage.mq
    ((endpoint_id,),) = stage.ask("select id from menzil.endpoints where name = 'tracking'")
    start, end = datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC)
    planned = mq.replay_range(endpoint_id, start, end, status="completed", dry_run=True)
    waiting = stage.ask("select count(*) from menzil.queue")[0][0]
    stage.say(f"tracking, the last hour, a dry run: {planned} messages would go; waiting now: {waiting}")
    stage.check((planned, waiting) == (40, 0), "a plan moves nothing")
    count = mq.replay_range(endpoint_id, start, end, status="completed", rate=RATE)
    rows = stage.ask(
        """select id, replay_of from menzil.queue where replay_of is not null
           union select id, replay_of from menzil.archive where replay_of is not null order by 1"""
    )
    stage.check(count == len(rows) == len({row[1] for row in rows}) == planned, "what was planned goes, each once")
    ids = [row[0] for row in rows]
    stage.book.sent("tracking", *ids, origin="replayed")
    stage.ended(ids, "completed")
    ((took, early),) = stage.ask(
        """select extract(epoch from max(leased_at) - min(created_at))::float,
                  count(*) filter (where leased_at < scheduled_at)
             from menzil.archive where id = any(%s)""",
        ids,
    )
    stage.say(f"{count} new messages, {counted(ids)}, at {RATE} a second: the last one left after {took:.2f} s")
    stage.check(took >= planned / RATE and early == 0, "the pace holds")
