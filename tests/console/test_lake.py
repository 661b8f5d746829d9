"""One life from send to Parquet row: the page of a message names its file and row group."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from menzil.console import Access, Console
from menzil.spark.lake import layout
from menzil.spark.lake.cover import Part
from menzil.spark.lake.table import open_for_writing
from menzil.spark.parquet import write as parquet
from tests.console.conftest import Full
from tests.console.seat import served
from tests.spark.lake_files import begun, finish, written


def make_lake(dsn: str, place: Path, channel: str, ids: list[int], at: datetime) -> str:
    """A lake of one file, as an export would leave it."""
    lake, _ = open_for_writing(place, dsn)
    tx = begun(lake)
    files = written(lake, tx, channel, ids, at)
    finish(lake, tx, files, "nightly-1", Part(0, 1), layout.month_label(at))
    return str(Path(files[0].path).relative_to(place))


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


def test_lake_page_tells_which_months_are_where(full: Full, tmp_path: Path) -> None:
    old = datetime(2020, 1, 15, tzinfo=UTC)
    make_lake(full.dsn, tmp_path, "reports", [1, 2, 3], old)
    with served(Console(full.dsn, local=Access.viewer("ada"), lake=str(tmp_path))) as browser:
        found = {one["month"]: one for one in browser.get("/lake.json").json["months"]}
        gone = found["2020-01"]
        assert (gone["database"], gone["in_lake"], gone["rows"], gone["files"]) == (None, True, 3, 1)
        assert gone["bytes"] == sum(file.stat().st_size for file in tmp_path.rglob("*.parquet"))
        now = found[f"{datetime.now(UTC):%Y-%m}"]
        assert (now["database"], now["in_lake"], now["rows"]) == ("open", False, None)
        words = browser.get("/lake").words
        assert "2020-01 dropped exported 3" in words
        months = sorted(found)
        assert f"{datetime.now(UTC):%Y-%m} grows" in words
        assert months[-1] > f"{datetime.now(UTC):%Y-%m}", "no month is made ahead"
        assert f"{months[-1]} ahead" in words
    with served(Console(full.dsn, local=Access.viewer("ada"))) as browser:
        assert {one["in_lake"] for one in browser.get("/lake.json").json["months"]} == {None}
        assert "Start the console with --lake DIRECTORY" in browser.get("/lake").words
