"""One life from send to Parquet row: the page of a message names its file and row group."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pyarrow as pa
from pyarrow import parquet

from menzil.console import Access, Console
from menzil.spark.lake import layout
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.manifest import File, Manifest
from tests.console.conftest import Full
from tests.console.seat import served


def make_lake(place: Path, channel: str, ids: list[int], at: datetime) -> str:
    """A lake of one file with two messages a row group, as an export would leave it."""
    month = layout.month_label(at)
    path = f"{layout.partition(month, layout.directory(channel))}/nightly-1-{month}-5d1c07aa-00000.parquet"
    file = place / path
    file.parent.mkdir(parents=True)
    parquet.write_table(pa.table({"id": pa.array(ids, pa.int64())}), file, row_group_size=2)
    about = Fingerprint(rows=len(ids), min_id=min(ids), max_id=max(ids))
    manifest = Manifest(
        "export", "nightly-1", month, at.isoformat(), (File(path, month, channel, file.stat().st_size, about),)
    )
    (place / layout.MANIFESTS).mkdir()
    (place / layout.manifest(1)).write_bytes(manifest.encode())
    return path


def test_page_of_an_exported_message_names_its_file_and_row_group(full: Full, tmp_path: Path) -> None:
    number = full.ids.completed
    with psycopg.connect(full.dsn) as conn:
        row = conn.execute("select created_at from menzil.archive where id = %s", (number,)).fetchone()
        assert row is not None
    path = make_lake(
        tmp_path, "reports", [number - 4, number - 3, number - 2, number - 1, number], row[0].astimezone(UTC)
    )
    with served(Console(full.dsn, local=Access.viewer("ada"), lake=str(tmp_path))) as browser:
        page = browser.get(f"/messages/{number}")
        assert path in page.words
        assert "Row group 2 of 3, counted from 0" in page.words
        assert browser.get(f"/messages/{number}.json").json["lake"]["file"] == path
        assert "In the lake" not in browser.get(f"/messages/{full.ids.waiting}").words
        assert "In the lake" not in browser.get(f"/messages/{full.ids.dead}").words


def test_lake_that_cannot_be_read_leaves_the_rest_of_the_page(full: Full, tmp_path: Path) -> None:
    (tmp_path / layout.MANIFESTS).mkdir()
    (tmp_path / layout.manifest(1)).write_text(json.dumps({"format": "nonsense"})[:-3])
    with served(Console(full.dsn, local=Access.viewer("ada"), lake=str(tmp_path))) as browser:
        page = browser.get(f"/messages/{full.ids.completed}")
        assert page.status == 200
        assert "It completed at" in page.words
        assert "In the lake" in page.words
        assert 'class="trouble"' in page.text


def test_lake_page_tells_which_months_are_where(full: Full, tmp_path: Path) -> None:
    old = datetime(2020, 1, 15, tzinfo=UTC)
    make_lake(tmp_path, "reports", [1, 2, 3], old)
    with served(Console(full.dsn, local=Access.viewer("ada"), lake=str(tmp_path))) as browser:
        found = {one["month"]: one for one in browser.get("/lake.json").json["months"]}
        gone = found["2020-01"]
        assert (gone["database"], gone["in_lake"], gone["rows"], gone["files"]) == (None, True, 3, 1)
        assert gone["bytes"] == sum(file.stat().st_size for file in tmp_path.rglob("*.parquet"))
        now = found[f"{datetime.now(UTC):%Y-%m}"]
        assert (now["database"], now["in_lake"], now["rows"]) == ("open", False, None)
        words = browser.get("/lake").words
        assert "2020-01 dropped exported 3" in words
    with served(Console(full.dsn, local=Access.viewer("ada"))) as browser:
        assert {one["in_lake"] for one in browser.get("/lake.json").json["months"]} == {None}
        assert "Start the console with --lake DIRECTORY" in browser.get("/lake").words
