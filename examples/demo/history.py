"""The last scenes: the history leaves the database for a lake, is looked at and proved, and one endpoint gets it again.

These are the functions behind `menzil pipeline export`, `report`, `audit` and `replay`. Spark is an extra: without it
the first of these scenes says so, and there are no others.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, LiteralString

from examples.demo.book import counted
from examples.demo.stage import Stage
from menzil import MenzilError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The endpoint that gets its messages once more.
AGAIN = "gateway"

_REPLAYED: LiteralString = """
select id, replay_of from menzil.queue where channel = %s and replay_of is not null
 union select id, replay_of from menzil.archive where channel = %s and replay_of is not null order by 1"""


def exported(stage: Stage) -> None:
    """Archive to Parquet, read back, compared with PostgreSQL before it counts, and once more afterwards."""
    stage.title("The history as a lake of Parquet files")
    spark = _spark(stage)
    if spark is None:
        return
    from menzil.spark.jobs.export import export
    from menzil.spark.lake import verify

    dsn, lake = stage.server.dsn, _lake(stage)
    done = export(spark, dsn, lake, run_id="demo")
    stage.say(f"export: {done.rows:,} messages in {sum(month.files for month in done.months)} files, "
              f"each read back and compared before it counts: {done.seconds:.1f} s")  # fmt: skip
    again = export(spark, dsn, lake, run_id="demo")
    found = verify(lake, dsn, spark=spark)
    stage.say(f"verify: {found.rows:,} messages, count, bounds, sum and xor of their hashes equal PostgreSQL's; "
              f"{len(found.problems)} problems")  # fmt: skip
    stage.say(f"the same run again exports {again.rows}")
    stage.check(found.ok, f"lake and database agree ({'; '.join(found.problems)})")
    stage.check(done.rows == found.rows == len(stage.book.entries), "the lake has every message of the book")
    stage.check(again.rows == 0, "a run exports once")


def looked(stage: Stage) -> None:
    """One page to look at, and every promise checked on the history, with the book as the ledger."""
    spark = _spark(stage, quietly=True)
    if spark is None:
        return
    stage.title("What the history says: a page, and an audit")
    from menzil.spark.jobs.audit import audit
    from menzil.spark.jobs.report import report

    dsn, lake, page = stage.server.dsn, _lake(stage), stage.workshop.place / "report.html"
    made = report(spark, str(lake), page, dsn=dsn)
    middle, _, most = made.total["delivered_s"]
    stage.say(f"report: {made.total['sent']:,} messages to {made.endpoint_count} endpoints and channels, half "
              f"delivered within {middle * 1000:,.0f} ms, 99 % within {most:.1f} s,")  # fmt: skip
    stage.say(f"  {made.error_count} causes of dead letters, {made.incident_count} circuit that opened: {page}")
    stage.workshop.page = page
    with tempfile.TemporaryDirectory(prefix="menzil-demo-") as place:
        ledger = Path(place) / "ledger.csv"
        ledger.write_text("id\n" + "".join(f"{message_id}\n" for message_id in stage.book.entries))
        proved = audit(spark, str(lake), dsn, ledger=str(ledger))
    told = [f"{check.kind} {check.violations}" for check in proved.checks if check.violations]
    counts, checked = proved.counts, sum(not check.skipped for check in proved.checks)
    stage.say(f"audit: {checked} promises checked on {counts['ended']:,} ended messages and "
              f"{counts['acknowledged']:,} acknowledged ids,")  # fmt: skip
    stage.say(f"  from nothing lost to no limit exceeded: {', '.join(told) or '0 violations'}")
    stage.check(made.total["sent"] == len(stage.book.entries), "the page counts every message of the book")
    stage.check(made.incident_count == 1, "the page knows the circuit that opened")
    stage.check(proved.ok, f"every promise was kept ({', '.join(told)})")


def replayed(stage: Stage) -> None:
    """From the lake through the front door, exactly once, and delivered."""
    spark = _spark(stage, quietly=True)
    if spark is None:
        return
    stage.title("From the lake to the queue: one endpoint once more")
    from menzil.spark.jobs.replay import plan_replay, replay

    dsn, lake = stage.server.dsn, str(_lake(stage))
    plan = plan_replay(spark, dsn, lake, run_id="demo", endpoint=AGAIN, status="completed")
    stage.say(f"plan: {plan.messages} messages would go to {AGAIN}; waiting now: {_waiting(stage)}")
    stage.check((plan.messages, _waiting(stage)) == (4, 0), "a plan moves nothing")
    sent = replay(spark, dsn, lake, run_id="demo", endpoint=AGAIN, status="completed", plan=plan)
    again = replay(spark, dsn, lake, run_id="demo", endpoint=AGAIN, status="completed")
    rows = stage.ask(_REPLAYED, AGAIN, AGAIN)
    ids = [message_id for message_id, _ in rows]
    stage.check(sent.messages == len({origin for _, origin in rows}) == len(ids) == plan.messages, "each goes once")
    stage.check(again.repeated, "the same run sends nothing again")
    stage.book.sent(AGAIN, *ids, origin="replayed")
    hand = stage.crew.start("late-shift", "--once", "--no-janitors")
    stage.ended(ids, "completed")
    stage.until(lambda: hand.process.poll() is not None, "the worker ends")
    stage.say(f"{sent.messages} new messages, {counted(ids)}, in one transaction, delivered by a worker; "
              "the same run again sends 0")  # fmt: skip


def _spark(stage: Stage, *, quietly: bool = False) -> SparkSession | None:
    try:
        return stage.workshop.session()
    except MenzilError as error:
        if not quietly:
            stage.say(f"left out: {error.message} To see it, {error.hint}.")
        return None


def _lake(stage: Stage) -> Path:
    return stage.workshop.place / "lake"


def _waiting(stage: Stage) -> int:
    return int(stage.ask("select count(*) from menzil.queue")[0][0])
