"""What `menzil lake` cannot do it says in a sentence and exit code 2, and nothing is done by half. No Spark."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest
from psycopg.conninfo import make_conninfo

from menzil.spark import lake
from tests.integration.cli.user import User
from tests.spark.test_lake_sweep import filled


@pytest.fixture
def watcher(db: str) -> str:
    """Somebody who may look."""
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("drop role if exists lake_watcher")
        conn.execute("create role lake_watcher login password 'w' in role menzil_monitor")
    return make_conninfo(db, user="lake_watcher", password="w")


def test_a_role_that_may_only_look_is_told_which_one_may_change_the_catalog(
    db: str, watcher: str, tmp_path: Path
) -> None:
    filled(tmp_path / "known", db, 2)
    filled(tmp_path / "other", db)
    said = User(watcher).fails("lake", "sweep", str(tmp_path / "known"), "--keep-days", "0")
    assert said == "Error: This role may not change the catalog of the lake.\nHint: grant it menzil_pipeline\n"
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("delete from menzil_lake.iceberg_tables where metadata_location like '%/other/%'")
    said = User(watcher).fails("lake", "register", str(tmp_path / "other"), "--beside")
    assert said.startswith("Error: This role may not change the catalog of the lake.\n")


def test_a_store_that_does_not_answer_is_named(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "eu-west-1",
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    for command in ("sweep", "register"):
        said = User(db).fails("lake", command, "s3://bucket/lake")
        assert said.startswith("Error: The files of the lake cannot be read or written: ")
        assert "AWS Error NETWORK_CONNECTION" in said
        assert "Hint: " in said


@pytest.mark.parametrize("days", ["nan", "inf", "1e30", "-1"])
def test_days_that_cannot_be_counted_are_refused(db: str, days: str) -> None:
    refused = User(db).types("lake", "sweep", "somewhere", "--keep-days", days)
    assert refused.exit_code == 2
    assert "Invalid value for '--keep-days'" in refused.stderr


@pytest.mark.parametrize("more", [("--promote", "order"), ("--until", "2026-01-01"), ("--run-id", "r"), ("--drop",)])
def test_what_only_an_export_does_is_refused_beside_verify(db: str, tmp_path: Path, more: tuple[str, ...]) -> None:
    said = User(db).fails("pipeline", "export", "--lake", str(tmp_path), "--verify", *more)
    assert said.startswith("Error: --verify only looks")


def test_a_report_names_the_file_that_is_rotten_cut_or_gone(db: str, tmp_path: Path) -> None:
    filled(tmp_path, db, 2)
    path = Path(lake.files(tmp_path)[0])
    whole = path.read_bytes()
    ids = pq.ParquetFile(path).metadata.row_group(0).column(0)
    last = (ids.dictionary_page_offset or ids.data_page_offset) + ids.total_compressed_size - 1
    command = ("report", "--lake", str(tmp_path), "--out", str(tmp_path / "report.html"))
    for damaged in (whole[:last] + bytes([whole[last] ^ 1]) + whole[last + 1 :], whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        assert User(db).fails(*command).startswith(f"Error: {path} cannot be read: ")
    path.unlink()
    said = User(db).fails(*command)
    assert said.startswith(f"Error: {path} is missing.\nHint: ")
    assert "--verify" in said
    assert not (tmp_path / "report.html").exists()
