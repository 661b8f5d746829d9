"""`menzil archive`: the months of ended messages."""

from __future__ import annotations

import click

from menzil.cli.database import Database, on_database
from menzil.cli.findings import report
from menzil.cli.lazy import SOMETHING_TO_FIX
from menzil.cli.plan import carry_out, yes_option
from menzil.cli.show import count, document, json_option, say
from menzil.ops import history, looking_archive, upkeep
from menzil.watch import archive as looks
from menzil.watch.examine import examine

#: Messages of one statement on their way home from the default partition.
CHUNK = 10_000


@click.group()
def archive() -> None:
    """Keep the archive of ended messages in order."""


@archive.command()
@click.option("--months-ahead", type=click.IntRange(0, 120), default=3, show_default=True)
@json_option
@on_database
def maintain(db: Database, months_ahead: int, as_json: bool) -> None:
    """Make the partitions of this month and the next ones.

    Messages that found none move to their month.
    """
    made, moved = db.run(upkeep.maintain_archive_partitions(months_ahead)), 0
    while some := db.run(upkeep.archive_completed_messages(0, CHUNK)):
        moved += some
    if as_json:
        document({"made": made, "moved": moved})
    else:
        say(f"Made {count(made, 'partition')} and moved {count(moved, 'message')}.")


@archive.command()
@click.option(
    "--months", type=click.IntRange(1, 120), help="Whole months to keep.  [default: archive_retention_months]"
)
@yes_option
@json_option
@on_database
def cleanup(db: Database, months: int | None, yes: bool, as_json: bool) -> None:
    """Drop old months, with all messages in them."""
    kept = months if months is not None else int(db.run(upkeep.setting("archive_retention_months")))
    old = db.run(looking_archive.old_months(kept))
    sentences = [f"Drops {count(len(old), 'month')} of the archive, keeping {kept} and the current one."]
    sentences += [f"{month['name']}, about {month['about_rows']:,} messages" for month in old]
    plan = {"keep_months": kept, "months": old}

    def act() -> dict[str, int]:
        gone = db.run(history.cleanup_old_archive_partitions(kept))
        if gone < len(old):
            say(f"{count(len(old) - gone, 'month')} could not be dropped while in use: run it again later.")
        done["months"] = gone
        return done

    done: dict[str, int] = {}
    carry_out(sentences, plan, act, yes=yes, as_json=as_json)
    if done and done["months"] < len(old):
        raise SystemExit(SOMETHING_TO_FIX)


@archive.command()
@json_option
@on_database
@click.pass_context
def verify(ctx: click.Context, db: Database, as_json: bool) -> None:
    """Check that every message lies in its month.

    Reads the whole archive.
    """
    checks = {
        "partitions": looks.ahead,
        "default partition": looks.strays,
        "months": looks.attached,
        "rows": looks.rows,
    }
    ctx.exit(report(examine(db.run, checks), as_json=as_json))
