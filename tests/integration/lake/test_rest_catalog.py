"""The read-only REST catalog: what clients of others read through it, and what it refuses."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

from menzil.console import Access, Console
from menzil.console.catalog_app import CatalogApp
from menzil.spark.lake.catalog import MESSAGES, NAMESPACE
from tests.console.seat import Browser, served
from tests.integration.lake.conftest import Lake
from tests.integration.lake.engines import ROWS, duck

TOKEN = "an-open-door"
LINE = f"ada:viewer:{hashlib.sha256(TOKEN.encode()).hexdigest()}"
ONE = f"/v1/namespaces/{NAMESPACE}/tables/{MESSAGES}"


@pytest.fixture(scope="module")
def seat(lake: Lake) -> Iterator[Browser]:
    """The catalog alone, on loopback without a token."""
    with served(CatalogApp(lake.dsn, local=Access.viewer("ada"))) as browser:
        yield browser


@pytest.fixture(scope="module")
def guarded(lake: Lake) -> Iterator[Browser]:
    """The catalog in a console with a token."""
    with served(Console(lake.dsn, tokens=[LINE])) as browser:
        yield browser


def values(rows: list[Any]) -> list[Any]:
    return sorted((row["id"], row["channel"], row["payload"], row["attempts"]) for row in rows)


EXPECTED = sorted((row["id"], row["channel"], row["payload"], row["attempts"]) for row in ROWS)


def test_duckdb_attaches_and_reads_every_value(seat: Browser) -> None:
    conn = duck()
    conn.execute(
        f"attach 'lake' as lake (type iceberg, endpoint 'http://127.0.0.1:{seat.port}', authorization_type 'none')"
    )
    assert conn.execute("select count(*) from lake.menzil.events").fetchone() == (0,)
    found = conn.execute("select id, channel, payload, attempts from lake.menzil.messages").fetchall()
    assert sorted(found) == EXPECTED


def test_duckdb_attaches_to_a_console_with_a_token(guarded: Browser) -> None:
    conn = duck()
    conn.execute(f"create secret (type iceberg, token '{TOKEN}')")
    conn.execute(f"attach 'lake' as lake (type iceberg, endpoint 'http://127.0.0.1:{guarded.port}/iceberg')")
    assert conn.execute("select count(*) from lake.menzil.messages").fetchone() == (len(ROWS),)


def test_the_client_of_pyiceberg_reads_and_cannot_write(guarded: Browser, lake: Lake) -> None:
    catalog = load_catalog("rest", type="rest", uri=f"http://127.0.0.1:{guarded.port}/iceberg", token=TOKEN)
    assert catalog.list_namespaces() == [(NAMESPACE,)]
    assert sorted(catalog.list_tables(NAMESPACE)) == [(NAMESPACE, "events"), (NAMESPACE, MESSAGES)]
    table = catalog.load_table((NAMESPACE, MESSAGES))
    assert values(table.scan().to_arrow().to_pylist()) == EXPECTED
    with pytest.raises(NoSuchTableError):
        catalog.load_table((NAMESPACE, "nothing"))
    with pytest.raises(NotImplementedError):  # the catalog does not offer it
        table.append(table.scan().to_arrow())
    assert catalog.load_table((NAMESPACE, MESSAGES)).metadata_location == lake.pointer


def test_nothing_is_told_without_the_token_or_under_another_name(guarded: Browser, seat: Browser, lake: Lake) -> None:
    for path in ("/v1/config", "/v1/namespaces", ONE):
        refused = guarded.get(f"/iceberg{path}")
        assert (refused.status, refused.json["error"]["type"]) == (401, "NotAuthorizedException")
    assert guarded.get(f"/iceberg{ONE}", Authorization="Bearer wrong").status == 401
    other = Browser(seat.port, host="evil.example")
    assert other.get("/v1/config").status == 400
    with served(CatalogApp(lake.dsn)) as closed:
        assert closed.get("/v1/config").status == 403


def test_every_verb_that_writes_is_refused(seat: Browser) -> None:
    for verb in ("POST", "PUT", "PATCH", "DELETE"):
        for path in ("/v1/namespaces", ONE, "/v1/tables/rename"):
            assert seat.ask(verb, path, b"{}").status in (403, 405), (verb, path)
    assert seat.get(ONE).status == seat.ask("HEAD", ONE).status == 200
    assert seat.get("/v1/namespaces/other/tables").json["error"]["type"] == "NoSuchNamespaceException"


def test_a_pointer_to_another_file_is_not_read(lake: Lake, tmp_path: Any) -> None:
    secret = tmp_path / "secret.metadata.json"
    secret.write_text('{"password": "open-sesame"}')
    with (
        psycopg.connect(lake.dsn, autocommit=True) as conn,
        served(CatalogApp(lake.dsn, local=Access.viewer("a"))) as seat,
    ):
        for place in (f"file://{secret}", "file:///etc/hostname"):
            text = "insert into menzil_lake.iceberg_tables values ('menzil', 'menzil', 'odd', %s, null, 'TABLE')"
            conn.execute(text, (place,))
            try:
                answer = seat.get("/v1/namespaces/menzil/tables/odd")
                assert answer.status == 500
                assert "sesame" not in answer.text
            finally:
                conn.execute("delete from menzil_lake.iceberg_tables where table_name = 'odd'")
