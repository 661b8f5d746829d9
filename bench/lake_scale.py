"""`python -m bench.lake_scale [FILES …]`: what the metadata of a large lake costs, measured without any data.

Makes tables of so many files (10,000 and 100,000 when none is named), a month a commit as an export does. The
catalog is in an embedded PostgreSQL. Prints commit, planning, expiry, sizes and memory. No data file exists.
Times are those of the clock, and of this process's CPU in brackets: on a busy machine only the second says something.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from pyiceberg.catalog import Catalog
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform, MonthTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

from menzil.embedded import Embedded
from menzil.install import migrate
from menzil.spark.lake.catalog import location, open_catalog

CHANNELS = 100
SHAPE = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "created_at", TimestamptzType()),
    NestedField(3, "ended_at", TimestamptzType()), NestedField(4, "channel", StringType()),
    NestedField(5, "status", StringType()), NestedField(6, "payload", StringType()),
)  # fmt: skip
SPEC = PartitionSpec(
    PartitionField(2, 1000, MonthTransform(), "created_at_month"),
    PartitionField(4, 1001, IdentityTransform(), "channel"),
)
SETTINGS = {
    "format-version": "2", "commit.retry.num-retries": "0", "write.metadata.metrics.default": "none",
    "write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "20",
}  # fmt: skip


def month_start(number: int) -> datetime:
    """The first moment of a month, counted from January 1970 as Iceberg counts them."""
    return datetime(1970 + number // 12, number % 12 + 1, 1, tzinfo=UTC)


def data_files(table: Table, month: int, number: int) -> list[DataFile]:
    """What tasks would return of a month: files of 100 channels with the bounds that menzil keeps."""
    begin, found = month_start(month), []
    for n in range(number):
        channel = f"channel-{n % CHANNELS:03}"
        low, high = begin + timedelta(minutes=n % 40_000), begin + timedelta(minutes=n % 40_000 + 1)
        bounds = [((month * number + n) * 1000, channel, low), ((month * number + n) * 1000 + 999, channel, high)]
        packed = [
            {1: to_bytes(LongType(), i), 2: _at(at), 3: _at(at), 4: name.encode(), 5: b"completed"}
            for i, name, at in bounds
        ]
        found.append(
            DataFile.from_args(
                content=DataFileContent.DATA, file_format=FileFormat.PARQUET, partition=Record(month, channel),
                file_path=f"{table.location()}/data/{month}-{n:06}.parquet", record_count=9, file_size_in_bytes=2**27,
                column_sizes=dict.fromkeys(range(1, 7), 1000), value_counts=dict.fromkeys(range(1, 6), 1000),
                null_value_counts=dict.fromkeys(range(1, 6), 0), nan_value_counts={}, lower_bounds=packed[0],
                upper_bounds=packed[1], split_offsets=[4], sort_order_id=None, spec_id=table.metadata.default_spec_id,
                equality_ids=None, key_metadata=None,
            )
        )  # fmt: skip
    return found


def _at(at: datetime) -> bytes:
    return to_bytes(TimestamptzType(), round(at.timestamp() * 1_000_000))


def append(table: Table, files: list[DataFile], month: int) -> None:
    """One commit of a month, with what menzil remembers of it."""
    with table.transaction() as change:
        with change.update_snapshot().fast_append() as snapshot:
            for file in files:
                snapshot.append_data_file(file)
        change.set_properties({f"menzil.proof.{month}": "0" * 200, f"menzil.cover.{month}": "0" * 200})


class Took(NamedTuple):
    """Seconds of the clock and of the CPU."""

    clock: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.clock:.3f} s ({self.cpu:.3f})"


def seconds(work: Any) -> tuple[Took, Any]:
    began, used = time.perf_counter(), time.process_time()
    found = work()
    return Took(time.perf_counter() - began, time.process_time() - used), found


def planned(table: Table, month: int | None, channel: str | None = None) -> tuple[Took, int]:
    """Seconds of planning, the table's metadata being loaded, and files found; the best of three."""
    chosen = ""
    if month is not None:
        begin, end = month_start(month).isoformat(), month_start(month + 1).isoformat()
        chosen = f"created_at >= '{begin}' and created_at < '{end}'"
        chosen = f"{chosen} and channel = '{channel}'" if channel else chosen
    scan = table.scan(row_filter=chosen) if chosen else table.scan()
    rounds = 1 if month is None else 3
    return min(seconds(lambda: len(list(scan.plan_files()))) for _ in range(rounds))


def measure(catalog: Catalog, lake: str, number: int, months: int) -> None:
    """All figures of one size."""
    each = number // months
    table = catalog.create_table(
        f"menzil.scale_{number}",
        SHAPE,
        location=location(lake, f"scale-{number}"),
        partition_spec=SPEC,
        properties=SETTINGS,
    )
    spent = [seconds(lambda m=m: append(table, data_files(table, m, each), m))[0] for m in range(600, 600 + months)]
    middle = 600 + months // 2
    say(f"{number:,} files in {months} months", f"{each:,} files a commit")
    say("  commit of a month: first, last", f"{spent[0]}, {spent[-1]}")
    load, table = seconds(lambda: catalog.load_table(f"menzil.scale_{number}"))
    say("  load the table (pointer and metadata)", str(load))
    for label, words in (
        ("one month", (middle,)),
        ("one month, one channel", (middle, "channel-007")),
        ("all", (None,)),
    ):
        took, found = planned(table, *words)
        say(f"  plan {label}", f"{took} for {found:,} files")
    say("  commit of one more file", str(seconds(lambda: append(table, data_files(table, 700, 1), 700))[0]))
    kept = table.metadata.current_snapshot_id
    old = [shot.snapshot_id for shot in table.metadata.snapshots if shot.snapshot_id != kept]
    took, _ = seconds(lambda: table.maintenance.expire_snapshots().by_ids(old).commit())
    say(f"  expire {len(old)} snapshots", str(took))
    took, found = planned(catalog.load_table(f"menzil.scale_{number}"), middle)
    say("  plan one month afterwards", f"{took} for {found:,} files")
    place = Path(table.location().removeprefix("file://")) / "metadata"
    manifests = [path.stat().st_size for path in place.glob("*-m*.avro")]
    pointer = Path(table.metadata_location.removeprefix("file://")).stat().st_size
    say("  manifests, bytes a file in them", f"{len(manifests)}, {sum(manifests) / number:.0f}")
    say("  metadata.json", f"{pointer / 1024:.0f} KB")
    say("  most memory of this process so far", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def say(what: str, figure: str) -> None:
    print(f"{what:<46} {figure}", flush=True)


@contextmanager
def catalog_of_its_own() -> Iterator[tuple[Catalog, str]]:
    """The catalog of an embedded PostgreSQL that ends with this."""
    with tempfile.TemporaryDirectory(prefix="mz-scale-", ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        server = Embedded(Path(place) / "pg", durable=False).start()
        try:
            migrate(server.dsn)
            yield open_catalog(server.dsn), str(Path(place) / "lake")
        finally:
            server.close(wait=30)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.lake_scale", description=__doc__)
    parser.add_argument("files", nargs="*", type=int, default=[10_000, 100_000])
    parser.add_argument("--months", type=int, default=100)
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with catalog_of_its_own() as (catalog, lake):
        for number in given.files:
            measure(catalog, lake, number, given.months)


if __name__ == "__main__":
    main()
