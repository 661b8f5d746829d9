"""What `menzil lake` cannot do it says in a sentence and exit code 2, and nothing is done by half. No Spark."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import psycopg
import pyarrow.parquet as pq
import pytest
from psycopg.conninfo import make_conninfo
from pyarrow.fs import S3FileSystem

from menzil.spark import lake
from menzil.spark.parquet.read import damage
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


def test_a_report_does_not_call_a_file_damaged_that_cannot_be_opened(db: str, tmp_path: Path) -> None:
    filled(tmp_path, db, 2)
    path = Path(lake.files(tmp_path)[0])
    path.unlink()
    path.symlink_to(path)  # rights would not do: tests may run as root
    said = User(db).fails("report", "--lake", str(tmp_path), "--out", str(tmp_path / "report.html"))
    assert said.startswith(f"Error: {path} cannot be read: ")
    assert "Too many levels of symbolic links" in said
    assert said.endswith("\nHint: check its rights and the store, then run the command again\n")


class Closed(BaseHTTPRequestHandler):
    """A store that tells how large a file is, and gives it to no client."""

    def do_HEAD(self) -> None:
        self._answer(200, b"1" * 1000)

    def do_GET(self) -> None:
        self._answer(403, b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/xml")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_a_file_that_the_store_does_not_give_is_not_told_as_damaged() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Closed) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            store = S3FileSystem(
                access_key="key", secret_key="secret", endpoint_override=f"127.0.0.1:{server.server_port}",
                scheme="http", region="us-east-1", connect_timeout=60, request_timeout=60,
            )  # fmt: skip
            with pytest.raises(OSError, match="AWS Error ACCESS_DENIED"):
                damage(store, "bucket/a.parquet", 1000, 1)
        finally:
            server.shutdown()
            thread.join()
