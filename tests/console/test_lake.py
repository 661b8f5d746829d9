"""One life from send to Parquet row: the page of a message names its file and row group."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow

from menzil.console import Access, Console
from menzil.spark.lake import commit, layout
from menzil.spark.lake.place import file_system, inside
from menzil.spark.lake.schema import BOUNDED, COLUMNS, MESSAGES
from menzil.spark.lake.table import open_for_writing
from menzil.spark.parquet import write as parquet
from tests.console.conftest import Full
from tests.console.seat import served


def make_lake(dsn: str, place: Path, channel: str, ids: list[int], at: datetime) -> str:
    """A lake of one file with two messages a row group, as an export would leave it."""
    lake, _ = open_for_writing(place, dsn)
    tx = commit.begin(lake.make(MESSAGES), COLUMNS)
    shape = schema_to_pyarrow(commit.schema_of(tx))
    month = layout.month_label(at)
    rows = [{"id": number, "channel": channel, "created_at": at} for number in ids]
    table = pa.Table.from_pylist(rows, shape).append_column(parquet.KEY, pa.array([f"{month}/{channel}"] * len(ids)))
    files = file_system(lake.root, lake.options)
    writer = parquet.Writer(files, inside(f"{lake.root}/messages/data/{month}"), shape, BOUNDED[MESSAGES])
    for first in range(0, len(ids), 2):
        assert not list(writer.take(table.slice(first, 2)))
    written = list(writer.end())
    commit.finish(lake, MESSAGES, tx, commit.data_files(tx, written, lake.root), {})
    return str(Path(written[0].path).relative_to(place))


def test_page_of_an_exported_message_names_its_file_and_row_group(
    full: Full, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 2)
    number = full.ids.completed
    with psycopg.connect(full.dsn) as conn:
        row = conn.execute("select created_at from menzil.archive where id = %s", (number,)).fetchone()
        assert row is not None
    path = make_lake(full.dsn, tmp_path, "reports", list(range(number - 4, number + 1)), row[0].astimezone(UTC))
    with served(Console(full.dsn, local=Access.viewer("ada"), lake=str(tmp_path))) as browser:
        page = browser.get(f"/messages/{number}")
        assert path in page.words
        assert "Row group 2 of 3, counted from 0" in page.words
        assert browser.get(f"/messages/{number}.json").json["lake"]["file"] == path
        assert "In the lake" not in browser.get(f"/messages/{full.ids.waiting}").words
        assert "In the lake" not in browser.get(f"/messages/{full.ids.dead}").words


def test_lake_that_cannot_be_read_leaves_the_rest_of_the_page(full: Full, tmp_path: Path) -> None:
    metadata = tmp_path / "messages" / "metadata"
    metadata.mkdir(parents=True)
    (metadata / "version-hint.text").write_text("nonsense")
    with served(Console(full.dsn, local=Access.viewer("ada"), lake=str(tmp_path))) as browser:
        page = browser.get(f"/messages/{full.ids.completed}")
        assert page.status == 200
        assert "It completed at" in page.words
        assert "In the lake" in page.words
        assert 'class="trouble"' in page.text
