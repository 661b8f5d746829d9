"""Several databases as people write them: names that may be shown, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from menzil.model.errors import UsageError
from menzil.ops.databases import name_of, read_file, several


@pytest.fixture(autouse=True)
def _no_libpq_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE", "PGHOSTADDR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("dsn", "name"),
    [
        ("postgresql://ada:secret@db1/shop", "shop@db1:5432"),
        ("host=db1 port=6000 dbname=shop password=secret", "shop@db1:6000"),
        ("postgresql://ada:secret@db1,db2/shop", "shop@db1,db2:5432"),
        ("service=shop", "shop@shop:5432"),
        ("user=ada", "ada@local:5432"),
        ("host=db1 dbname='host=db2 password=secret'", "default@db1:5432"),
    ],
)
def test_a_name_is_made_of_database_host_and_port(dsn: str, name: str) -> None:
    assert name_of(dsn) == name
    assert "secret" not in name_of(dsn)


def test_a_name_stands_before_its_connection_string(tmp_path: Path) -> None:
    file = tmp_path / "databases"
    file.write_text(
        "# ours\n\nshop postgresql://db1/a\nhost=db1 dbname=b\n  crm   host = db1 dbname = c\nhost = db2 \n"
    )
    assert [one.name for one in read_file(file)] == ["shop", "b@db1:5432", "crm", "default@db2:5432"]
    assert read_file(file)[2].dsn == "host = db1 dbname = c"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["postgresql://db1/a", "host=db1 dbname=a"], "The database a@db1:5432 is given twice."),
        (
            {"x": "postgresql://ada:secret@db1/a", "y": "host=db1 dbname=a port=5432"},
            "The database a@db1:5432 is given twice, as x and as y.",
        ),
        (["x postgresql://db1/a", "x postgresql://db1/b"], "Two databases have the name x."),
        ([], "No database is named."),
        (["postgresql://db1/a", "postgresql://db1/b?sslmod=require"], "it has no parameter sslmod, but sslmode"),
        ({"a b": "postgresql://db1/a"}, "The name of a database in the argument dsn, 'a b' is not valid."),
        ({"a": 7}, "The DSN must be text, not int."),
    ],
)
def test_what_cannot_be_meant_is_refused(given: object, sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        several(given)  # type: ignore[arg-type]
    assert sentence in refused.value.message
    assert "secret" not in str(refused.value)


def test_a_refusal_names_the_line_and_not_the_password(tmp_path: Path) -> None:
    file = tmp_path / "databases"
    file.write_text("shop postgresql://db1/a\nbad/name postgresql://ada:secret@db1/b\n")
    with pytest.raises(UsageError) as refused:
        read_file(file)
    assert f"line 2 of {file}" in refused.value.message
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(("content", "word"), [(b"", "names no database"), (b"\xff\xfe", "is not UTF-8")])
def test_a_file_without_databases_is_refused(tmp_path: Path, content: bytes, word: str) -> None:
    (tmp_path / "databases").write_bytes(content)
    with pytest.raises(UsageError, match=word):
        read_file(tmp_path / "databases")
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_file(tmp_path / "nothing")
