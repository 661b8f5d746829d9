"""Whether the archive is built as it should be: a partition for every month, and every row in its own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from menzil.ops import looking_archive
from menzil.ops.records import Record
from menzil.watch.finding import Finding, Run

MAINTAIN = "menzil archive maintain"
_FIVE_DAYS = timedelta(days=5)


def ahead(run: Run) -> list[Finding]:
    """This month and the next have a partition."""
    months = run(looking_archive.months_ahead())
    if months >= 2:
        return []
    sentence = (
        "The archive has no partition for this month."
        if months == 0
        else "The archive has no partition for next month."
    )
    return [Finding("partitions", "critical" if months == 0 else "warning", sentence, MAINTAIN)]


def strays(run: Run) -> list[Finding]:
    """The default partition is empty."""
    if run(looking_archive.default_is_empty()):
        return []
    sentence = "Messages lie in the default partition of the archive: the partition of their month is missing."
    return [Finding("default partition", "warning", sentence, MAINTAIN)]


def attached(run: Run) -> list[Finding]:
    """Every month hangs where it belongs, with the bounds of its name."""
    found = []
    for month in run(looking_archive.partitions()):
        name, start = month["name"], month["month"]
        end = (start.replace(day=28) + _FIVE_DAYS).replace(day=1)
        if not month["attached"]:
            sentence = f"Table {name} is a month of the archive that is not attached to it."
            bounds = f"for values from ('{start.isoformat()}') to ('{end.isoformat()}')"
            repair = f"alter table menzil.message attach partition menzil.{name} {bounds};"
            found.append(Finding("months", "warning", sentence, repair))
        elif (month["starts_at"], month["ends_at"]) != (start, end):
            sentence = f"Table {name} holds other messages than those of its month."
            found.append(
                Finding("months", "critical", sentence, f"alter table menzil.message detach partition menzil.{name};")
            )
    return found


def rows(run: Run) -> list[Finding]:
    """Every row lies within the bounds of its month. Reads the whole archive."""
    months = {month["name"]: month for month in run(looking_archive.partitions())}
    return [*_outside(run(looking_archive.rows_by_partition()), months)]


def _outside(counted: list[Record], months: dict[str, Record]) -> Iterator[Finding]:
    for one in counted:
        month = months.get(one["name"])
        if month is None or month["starts_at"] is None:
            continue  # the default partition, and what attached() has a word for
        if one["oldest"] < month["starts_at"] or one["newest"] >= month["ends_at"]:
            sentence = (
                f"Table {one['name']} holds messages created outside its month, {one['oldest']} to {one['newest']}."
            )
            yield Finding(
                "rows", "critical", sentence, f"alter table menzil.message detach partition menzil.{one['name']};"
            )
