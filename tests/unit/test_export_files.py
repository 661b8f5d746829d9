"""What a task of an export does with rows, without Spark and without a database."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import md5
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem
from pyspark import cloudpickle

from menzil.ops.lake import ArchiveCensus
from menzil.spark.jobs import export_task
from menzil.spark.jobs.export_attempts import attempts
from menzil.spark.jobs.export_files import tasks
from menzil.spark.lake.errors import LakeDamagedError
from menzil.spark.lake.schema import COLUMNS, arrow
from menzil.spark.lake.write import proved
from menzil.spark.parquet import hash as hashing
from menzil.spark.parquet import sort
from menzil.spark.parquet.proof import BESIDE, Proof, beside, in_footer
from menzil.spark.parquet.sort import Divider
from menzil.spark.parquet.write import Place

SHAPE = pa.schema([("id", pa.int64()), ("created_at", pa.timestamp("us", "UTC")), ("channel", pa.string())])
BEGIN = datetime(2025, 3, 1, tzinfo=UTC)


def table(ids: list[int]) -> pa.Table:
    times = [BEGIN + timedelta(seconds=number) for number in ids]
    return pa.table([ids, times, [f"channel {number % 3}" for number in ids]], schema=SHAPE)


def place_at(path: Path) -> Place:
    hashed = ([("id", "number"), ("created_at", "time"), ("channel", "text")], ())
    return Place(LocalFileSystem(), str(path), SHAPE, ("id",), hashed)


def divided(place: Path, blocks: list[list[int]]) -> list[Any]:
    divider = Divider(place_at(place))
    done = [each for ids in blocks for each in divider.take(table(ids), table(ids)["channel"])]
    return [*done, *divider.end()]


def test_mixed_rows_become_a_sorted_file_for_each_part(tmp_path: Path) -> None:
    found = divided(tmp_path, [[5, 1, 4, 2, 3, 6], [9, 8, 7]])
    assert {file.key: pq.read_table(file.path)["id"].to_pylist() for file in found} == {
        "channel 0": [3, 6, 9], "channel 1": [1, 4, 7], "channel 2": [2, 5, 8],
    }  # fmt: skip
    assert all(file.ordered for file in found)


def test_a_file_says_what_was_written_to_it_and_is_read_back(tmp_path: Path) -> None:
    for file in divided(tmp_path, [[5, 1, 4, 2, 3, 6], [9, 8, 7]]):
        with pq.ParquetFile(file.path) as stored:
            assert in_footer(stored) == file.said == file.found
        assert file.said is not None
        assert (file.said["rows"], file.census[0]) == (3, 3)


def test_hashes_beside_rows_are_summed_by_file_and_a_row_that_became_another_is_noticed(tmp_path: Path) -> None:
    row = np.array([-(2**63), 2**63 - 1, 7])
    success = np.ma.array([5, 0, -(2**62)], mask=[False, True, False])
    tries = np.array([2**63 - 1, 2**63 - 1, -1])  # the second row has two that failed, the third one
    sums = beside(row, success, tries, np.array([0, 0, 2]), np.array([0, 2, 1]))
    rows = table([3, 6, 9])
    for name, column in sums.items():
        rows = rows.append_column(name, column)
    proof = Proof(((), ()))
    proof.add(rows.slice(0, 1))
    proof.add(rows.slice(1))
    said = proof.fingerprint
    every = [5, 2**63 - 1, 2**63 - 1, -1, -(2**62)]
    assert (said["rows"], int(said["sum"]), said["xor"]) == (3, sum(row.tolist()), -(2**63) ^ (2**63 - 1) ^ 7)
    assert (said["attempts"], int(said["attempts_sum"])) == (5, sum(every))
    assert said["attempts_xor"] == 5 ^ -1 ^ -(2**62)
    assert proof.census == (3, 18, 3, 21)
    assert set(sums) == set(BESIDE)
    divider = Divider(place_at(tmp_path))
    (file,) = [*divider.take(rows, rows["channel"]), *divider.end()]
    assert file.said is not None
    assert file.found is not None
    assert file.said["sum"] == said["sum"] != file.found["sum"], "these hashes are not those of the rows"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"row_count": 10}, "the number of messages is 9, not 10"),
        ({"id_sum": 46}, "the sum of ids is 45, not 46"),
        ({"failed_attempt_count": 1}, "the number of failed tries is 0, not 1"),
        ({"failed_attempt_id_sum": 7}, "the sum of ids of failed tries is 0, not 7"),
        ({"max_id": 10}, "max_id is 9, not 10"),
    ],
)
def test_rows_that_tasks_did_not_read_as_the_database_counts_them_never_count(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    lake: Any = SimpleNamespace(root=tmp_path.as_uri(), options={})
    files = hashed_files(tmp_path)
    whole = ArchiveCensus(9, 45, 1, 9, BEGIN + timedelta(seconds=1), BEGIN + timedelta(seconds=9), 0, 0)
    assert proved(lake, files, [whole], "2025-03").rows == 9
    with pytest.raises(LakeDamagedError, match=said):
        proved(lake, files, [replace(whole, **change)], "2025-03")
    assert not list(tmp_path.glob("*.parquet"))


def test_a_file_that_holds_another_value_than_the_database_hashed_never_counts(tmp_path: Path) -> None:
    lake: Any = SimpleNamespace(root=tmp_path.as_uri(), options={})
    first, *rest = hashed_files(tmp_path)
    assert first.found is not None
    other = replace(first, found=first.found | {"xor": first.found["xor"] ^ 1})
    census = ArchiveCensus(9, 45, 1, 9, BEGIN + timedelta(seconds=1), BEGIN + timedelta(seconds=9), 0, 0)
    with pytest.raises(LakeDamagedError, match=f"in {first.path} xor is"):
        proved(lake, [other, *rest], [census], "2025-03")
    assert not list(tmp_path.glob("*.parquet"))


def hashed_files(place: Path) -> list[Any]:
    """Files of nine rows without tries, each with the hash that the database would send."""
    rows = table([5, 1, 4, 2, 3, 6, 9, 8, 7])
    (batch,) = rows.combine_chunks().to_batches()
    there = place_at(place)
    row = hashing.hashes(dict(zip(batch.schema.names, batch.columns, strict=True)), there.hashed[0], 9)
    none = np.zeros(9, np.int64)
    for name, column in beside(row, np.ma.masked_all(9, np.int64), np.zeros(0, np.int64), none, none).items():
        rows = rows.append_column(name, column)
    divider = Divider(there)
    return [*divider.take(rows, rows["channel"]), *divider.end()]


def test_a_file_whose_row_groups_are_not_in_order_does_not_say_it_is_sorted(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sort, "GROUP_ROWS", 1)  # each block is a row group
    found = divided(tmp_path, [[30, 31, 33], [1, 60]])
    assert {file.key: file.ordered for file in found} == {
        "channel 0": True, "channel 1": False,
    }  # fmt: skip
    assert sum(file.rows for file in found) == 5


def test_rows_beyond_a_file_go_to_the_next(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sort, "GROUP_ROWS", 1)
    monkeypatch.setattr(sort, "ROWS", 4)
    found = divided(tmp_path, [[3, 6, 9], [12, 15, 18], [21]])
    assert [pq.read_table(file.path)["id"].to_pylist() for file in found] == [[3, 6, 9], [12, 15, 18, 21]]


def test_what_waits_stays_below_its_limit(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sort, "WAITING", 0)
    divider = Divider(place_at(tmp_path))
    for ids in ([1, 2, 3], [4, 5, 6]):
        list(divider.take(table(ids), table(ids)["channel"]))
        assert not divider._waiting
    assert sum(file.rows for file in divider.end()) == 6


def test_a_message_has_its_failed_tries_in_order_and_then_the_one_that_succeeded() -> None:
    kind = arrow(COLUMNS).field("attempts").type
    at = pa.array([BEGIN] * 4, pa.timestamp("us", "UTC"))
    rows = pa.table(
        {
            "id": [7, 3, 5, 9], "status": ["completed", "dead", "completed", "cancelled"], "num_attempts": [1, 2, 3, 0],
            "leased_at": at, "ended_at": at, "worker": ["w", None, "w", None],
            "success_status": pa.array([200, None, 201, None], pa.int32()), "success_ms": [1.5, None, 2.5, None],
        }
    )  # fmt: skip
    tries = pa.table(
        {
            "message_id": [3, 3, 4, 5, 5], "attempt": [1, 2, 1, 1, 2], "outcome": ["failed"] * 5,
            "leased_at": pa.array([BEGIN] * 5, at.type), "ended_at": pa.array([BEGIN] * 5, at.type),
            "worker": ["w"] * 5, "error": ["a", "b", "of a message elsewhere", "c", "d"],
            "status_code": pa.array([503] * 5, pa.int32()), "duration_ms": [0.5] * 5,
        }
    )  # fmt: skip
    found = [
        [(one["attempt"], one["outcome"], one["error"]) for one in each]
        for each in attempts(rows, tries, kind).to_pylist()
    ]
    success = [(1, "completed", None)], [(3, "completed", None)]
    failed = [(1, "failed", "a"), (2, "failed", "b")], [(1, "failed", "c"), (2, "failed", "d")]
    assert found == [success[0], failed[0], failed[1] + success[1], []]
    assert [len(each) for each in attempts(rows, None, kind).to_pylist()] == [1, 0, 1, 0]


def test_the_text_of_a_row_is_the_one_that_the_server_hashes() -> None:
    moments = [datetime(1999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), None, datetime(2000, 1, 1, tzinfo=UTC)]
    columns = {
        "n": pa.array([1, None, -3]), "t": pa.array(["ä", "", None]), "b": pa.array([b"\x00\xff", None, b""]),
        "at": pa.array(moments, pa.timestamp("us", "UTC")), "ms": pa.array([12.5, None, -0.0005]),
    }  # fmt: skip
    fields = [("n", "number"), ("t", "text"), ("b", "bytes"), ("at", "time"), ("ms", "micros"), ("gone", "text")]
    null = "\x1e"
    texts = [
        ["1", "=ä", "00ff", "f" * 16, "12500", null],
        [null, "=", null, null, null, null],
        ["-3", null, "", "0" * 16, "-1", null],
    ]
    whole = [int.from_bytes(md5("\x1f".join(text).encode()).digest()[:8], "big", signed=True) for text in texts]
    assert hashing.hashes(columns, fields, 3).tolist() == whole
    added = hashing.Sum()
    added.add(hashing.hashes(columns, fields, 3))
    assert (added.count, added.sum, added.xor) == (3, sum(whole), whole[0] ^ whole[1] ^ whole[2])


@pytest.mark.parametrize(
    ("rows", "keys", "parallel", "count"),
    [(0, 5, 8, 1), (60_000, 5, 8, 1), (1_000_000, 20, 2, 2), (1_000_000, 20, 8, 4), (100_000_000, 20, 200, 50)],
)
def test_tasks_are_few_where_files_would_be_small(rows: int, keys: int, parallel: int, count: int) -> None:
    assert tasks(rows, keys, parallel) == count


def test_a_process_that_runs_a_task_reads_neither_the_catalog_nor_pandas(tmp_path: Path) -> None:
    """Every Python process of Spark would read them first, for more than a second."""
    job = export_task.Job("dbname=x", "2025-03-01", place_at(tmp_path), (), pa.null(), None, "2025-03")
    works = [export_task.messages(job), export_task.events("dbname=x", place_at(tmp_path), [])]
    program = """
import sys
from pyspark import cloudpickle
for work in cloudpickle.loads(sys.stdin.buffer.read()):
    assert callable(work)
print(*sorted({"numpy", "pandas", "psycopg", "pyarrow", "pyiceberg", "sqlalchemy"} & set(sys.modules)))
"""
    ran = subprocess.run([sys.executable, "-c", program], input=cloudpickle.dumps(works), capture_output=True)
    assert ran.stdout.split() == [b"numpy", b"psycopg", b"pyarrow"], ran.stderr.decode()
