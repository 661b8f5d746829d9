"""`menzil pipeline export`: the archive goes to a lake."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from menzil.cli import given
from menzil.cli.lazy import SOMETHING_TO_FIX
from menzil.cli.pipeline.options import Workshop, pipeline_options, workshop
from menzil.cli.pipeline.record import recorded
from menzil.cli.pipeline.watch import watching
from menzil.cli.plan import carry_out
from menzil.cli.show import count, document, say
from menzil.model.errors import UsageError
from menzil.ops import lake as ops

if TYPE_CHECKING:
    from menzil.spark.jobs.export import ExportReport

#: What the database answers when it is asked to let a month go, for people.
_ANSWERS = {
    "dropped": "dropped from the database",
    "absent": "left the database before",
    "open": "stays in the database: it has live messages or dead letters",
    "changed": "stays in the database: messages ended or were erased since, and the next run takes those that ended",
    "busy": "stays in the database: others have it locked, the next run tries again",
}


@click.command()
@click.option("--lake", required=True, metavar="DIR", help="A directory, or a URL: s3://, gs://, abfs://, hdfs://.")
@click.option("--until", type=given.when, metavar="TIME", help="Only what was created before then.")
@click.option("--drop", is_flag=True, help="Drop months from the database that lie verified in the lake.")
@click.option("--run-id", metavar="ID", help="The same id again exports nothing again.")
@click.option(
    "--promote",
    multiple=True,
    metavar="EVENT_TYPE",
    help="Make columns of the fields that its schema names, from now on. May be given several times.",
)
@click.option("--catalog", metavar="NAME", help="A catalog of .pyiceberg.yaml.  [default: the database]")
@click.option("--compact", is_flag=True, help="Afterwards make few large files of many small ones.")
@click.option("--verify", is_flag=True, help="Export nothing; compare lake and database.")
@click.option("--yes", is_flag=True, help="With --drop: do it; without this only the plan is shown.")
@pipeline_options
def export(
    dsn: str | None,
    master: str | None,
    lake: str,
    until: datetime | timedelta | None,
    drop: bool,
    run_id: str | None,
    promote: tuple[str, ...],
    catalog: str | None,
    compact: bool,
    verify: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Bring what is new in the archive and the event log to a lake: two Iceberg tables that every engine reads.

    What was written is read back and compared with the database before it counts. With --drop, months that are over
    and lie whole in the lake leave the database: that shows a plan, and needs --yes. Without --drop nothing in the
    database changes, and the export starts at once.

    TIME is ISO 8601, in UTC unless it says otherwise, or a distance from now: -30d, now.
    """
    if verify and (drop or compact or promote or until is not None or run_id is not None):
        others = "--until, --drop, --run-id, --promote and --compact"
        raise UsageError("--verify only looks, at all that was exported.", hint=f"run it without {others}")
    with workshop(dsn, master) as shop, watching(shop, as_json=as_json):
        if verify:
            _verify(shop, lake, catalog, as_json)
            return
        end = shop.db.moment(until)
        months = [
            {"month": f"{each.starts_at:%Y-%m}", "open": each.is_open}
            for each in shop.db.run(ops.archive_months())
            if end is None or each.starts_at < end
        ]
        over = sum(not month["open"] for month in months)
        if end is not None and months and f"{end:%Y-%m}" == months[-1]["month"] and not months[-1]["open"]:
            over -= 1  # the month goes on after that time
        sentences = [f"Exports what is new of {count(len(months), 'month')} and of the event log to {lake}."]
        if drop:
            sentences.append(f"Drops {count(over, 'month')} from the database, once verified; open ones stay.")

        def act() -> dict[str, object]:
            from menzil.spark.jobs.export import export as job  # only now: importing Spark takes a while

            with recorded(shop, "export", lake) as run:
                report = job(
                    shop.spark, shop.dsn, lake, until=end, drop=drop, run_id=run_id, promote=promote, catalog=catalog
                )
                run.rows, run.files = report.rows, sum(month.files for month in report.months)
                run.verdict = "repeated" if report.repeated else "ok"
            done: dict[str, object] = asdict(report) if as_json else {"messages": report.rows}
            if compact:
                from menzil.spark.jobs.plainly import of_lake
                from menzil.spark.lake import compact as rewrite

                with recorded(shop, "compact", lake):
                    made = of_lake(rewrite)(shop.spark, lake, shop.dsn, catalog=catalog)
                done |= {"compacted": asdict(made)} if as_json else {}
            if not as_json:
                _tell(report)
            return done

        carry_out(sentences, {"lake": lake, "months": months, "drop": drop}, act, yes=yes or not drop, as_json=as_json)


def _tell(report: ExportReport) -> None:
    if report.repeated:
        say(
            f"The run {report.run_id} was done before: nothing was exported. A run that exports needs an id of its own."
        )
    for month in report.months:
        fate = "" if month.drop is None else f"; {_ANSWERS[month.drop]}"
        say(f"{month.month}: {count(month.rows, 'message')} in {count(month.files, 'file')}{fate}")
    if report.without_column:
        say(f"No column, because only a field with one scalar type gets one: {', '.join(report.without_column)}")
    if report.events:
        say(f"Event log: {count(report.events, 'line')}")


def _verify(shop: Workshop, lake: str, catalog: str | None, as_json: bool) -> None:
    spark = shop.spark  # before anything of menzil.spark.jobs is imported
    from menzil.spark.jobs.plainly import of_lake
    from menzil.spark.lake import verify

    with recorded(shop, "verify", lake) as run:
        report = of_lake(verify)(lake, shop.dsn, spark=spark, catalog=catalog)
        run.rows, run.files = report.rows, report.files
        run.verdict = "ok" if report.ok else count(len(report.problems), "problem")
    if as_json:
        document(asdict(report))
    else:
        for problem in report.problems:
            click.echo(problem)
        found = count(len(report.problems), "problem")
        say(f"{count(report.rows, 'message')} in {count(report.files, 'file')}, {found}.")
    if not report.ok:
        raise SystemExit(SOMETHING_TO_FIX)
