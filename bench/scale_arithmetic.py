"""`python -m bench.scale_arithmetic`: a billion messages a day on paper, every figure from the inputs below."""

from __future__ import annotations

from dataclasses import dataclass

DAY = 86_400


@dataclass(frozen=True)
class Inputs:
    """What is assumed. The measured ones name where they come from."""

    messages: float = 1e9  # a day
    peak: float = 3  # times the average
    export: float = 27_000  # a second, verified, of a driver with two busy cores: median of 16, 27, 36 thousand
    stored: float = 100  # bytes of a message in Parquet with zstd: 49 MB for 500,000 with small payloads in those runs
    wal: float = 400  # bytes of WAL for a life, batches of 100; CHANGELOG
    disk: float = 500  # bytes of an ended message in PostgreSQL, indexes included: assumed, not measured
    file: float = 512e6  # bytes of a data file after compaction
    manifest: float = 275  # bytes that a manifest has of a file: bench.lake_scale
    plan: float = 0.00046  # seconds of CPU in which pyiceberg plans a file of a month: 0.46 for 1,000, bench.lake_scale
    channels: int = 1_000
    kept: int = 3  # days in the database before the export drops them


def lines(given: Inputs) -> list[tuple[str, str]]:
    """What follows from them."""
    rate = given.messages / DAY
    month, day = given.messages * 30, given.messages * given.stored
    files = month * given.stored / given.file
    drivers = rate / given.export
    small = given.channels * 24 * 30
    return [
        ("messages a second: on average, at peak", f"{rate:,.0f}, {rate * given.peak:,.0f}"),
        ("in Parquet: a day, a month, a year", ", ".join(_size(n * day) for n in (1, 30, 365))),
        ("files of a month after compaction", f"{files:,.0f} of {_size(given.file)}"),
        ("  at least one for each channel", f"{max(files, given.channels):,.0f}"),
        ("files of a month, exported hourly, not compacted", f"{small:,.0f} with {given.channels:,} channels, "
                                                             f"{24 * 30 * 64:,} with bucket(64, channel)"),
        ("manifest of a month", f"{_size(max(files, given.channels) * given.manifest)}"),
        ("planning of a month: all files, one channel of 64 buckets",
         f"{files * given.plan:.1f} s, {files / 64 * given.plan:.2f} s, and reading the manifest"),
        ("partitions of a year: month and channel, month and bucket", f"{12 * given.channels:,}, {12 * 64}"),
        ("share of its time that one such driver exports", f"{drivers:.0%}"),
        ("  hours for a day that was missed", f"{given.messages / given.export / 3600:.1f}, with one driver"),
        ("WAL: a second, a day", f"{_size(rate * given.wal)}, {_size(given.messages * given.wal)}"),
        (f"PostgreSQL's disk for {given.kept} days", _size(given.messages * given.disk * given.kept)),
        ("an export reads of PostgreSQL, a second", _size(rate * given.disk)),
        *[(f"PostgreSQL servers, each {speed:,} messages a second at peak", f"{_ceiling(rate * given.peak / speed)}")
          for speed in (5_000, 10_000, 20_000, 40_000)],
        ("transaction ids a day: one message in each, 100 in each", f"{_ids(given, 1)}, {_ids(given, 100)}"),
    ]  # fmt: skip


def _size(number: float) -> str:
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if number < 1000:
            return f"{number:,.1f} {unit}"
        number /= 1000
    return f"{number:,.1f} PB"


def _ids(given: Inputs, batch: int) -> str:
    """A message is sent, leased and settled: three transactions, each for `batch` of them. 2 billion may be open."""
    used = 3 * given.messages / batch
    return f"{used / 1e6:,.0f} million (2 billion last {2e9 / used:,.1f} days)"


def _ceiling(number: float) -> int:
    return max(1, -int(-number // 1))


def main() -> None:
    print(f"\na billion messages a day, from {Inputs()}")
    for what, figure in lines(Inputs()):
        print(f"{what:<62} {figure}")


if __name__ == "__main__":
    main()
