"""The five answers to which database, their order, and what each of them may look like."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.engine import make_url

import menzil
from menzil.model.errors import MenzilError, UsageError, unreachable
from menzil.ops.choosing import choose, variable_set, why_embedded
from menzil.ops.dsn import Dsn, explained, understood


def test_the_first_of_five_answers_decides_which_database(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / "menzil.toml").write_text('dsn = "dbname=file"\n')
    everything = {"MENZIL_DSN": "dbname=variable", "PGHOST": "libpq", "PGUSER": "ada"}
    libpq = {"PGHOST": "libpq", "PGUSER": "ada"}

    def answer(dsn: str | None, environ: dict[str, str]) -> tuple[str, str] | None:
        chosen = choose(dsn, environ=environ, directory=below)
        return None if chosen is None else (str(chosen), chosen.chosen_by)

    assert answer("dbname=argument", everything) == ("dbname=argument", "the argument dsn")
    assert answer(None, everything) == ("dbname=variable", "the variable MENZIL_DSN")
    assert answer(None, libpq) == ("dbname=file", f"dsn in {tmp_path / 'menzil.toml'}")
    (tmp_path / "menzil.toml").write_text("# nothing is said here\n")
    assert answer(None, libpq) == ("", "the variables PGHOST, PGUSER")
    assert answer(None, {"PGSSLMODE": "require"}) is None


@pytest.mark.parametrize("empty", ["", " ", "\n"])
def test_an_empty_variable_counts_as_not_set_and_an_empty_argument_as_the_defaults_of_libpq(
    tmp_path: Path, empty: str
) -> None:
    assert choose(None, environ={"MENZIL_DSN": empty}, directory=tmp_path) is None
    assert why_embedded({"MENZIL_DSN": empty}).startswith("MENZIL_DSN is set and empty, and no argument")
    assert why_embedded({}).startswith("no argument, MENZIL_DSN, menzil.toml")
    chosen = choose(empty, environ={}, directory=tmp_path)
    assert chosen == ""
    assert chosen is not None
    assert chosen.chosen_by == "the argument dsn, which is empty, so libpq's defaults"


def test_a_variable_that_was_read_from_a_file_may_end_with_a_line_break(tmp_path: Path) -> None:
    assert choose(None, environ={"MENZIL_DSN": "postgresql://h/shop\n"}, directory=tmp_path) == "postgresql://h/shop"


@pytest.mark.parametrize(
    "text", ["dsn = 5", "dsn = ", "dsn = '\x00'", "dns = 'dbname=x'", "DSN = 'dbname=x'", "[menzil]\ndsn = 'dbname=x'"]
)
def test_a_file_that_says_something_else_is_refused_rather_than_skipped(tmp_path: Path, text: str) -> None:
    (tmp_path / "menzil.toml").write_text(text)
    with pytest.raises(UsageError, match=r"menzil\.toml") as refused:
        choose(None, environ={}, directory=tmp_path)
    assert refused.value.hint


def test_a_link_that_leads_nowhere_is_refused_rather_than_skipped(tmp_path: Path) -> None:
    (tmp_path / "menzil.toml").symlink_to(tmp_path / "not mounted")
    with pytest.raises(UsageError, match=r"menzil\.toml cannot be read"):
        choose(None, environ={}, directory=tmp_path)


def test_a_directory_that_cannot_be_looked_into_is_refused_rather_than_skipped(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be looked for"):
        choose(None, environ={}, directory=tmp_path / ("x" * 300))


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "asyncpg", "psycopg_async", "pg8000"])
def test_the_url_of_an_sqlalchemy_engine_is_understood(driver: str) -> None:
    url = f"postgresql+{driver}://ada:s%40crt@db.example:5433/shop?application_name=web"
    told = conninfo_to_dict(understood(url))
    assert told == conninfo_to_dict("postgresql://ada:s%40crt@db.example:5433/shop?application_name=web")
    assert conninfo_to_dict(choose(make_url(url)) or "")["password"] == "s@crt"


def test_what_only_sqlalchemy_and_asyncpg_write_into_a_url_is_understood() -> None:
    ssl = "postgresql+asyncpg://ada@db/shop?ssl=require&prepared_statement_cache_size=0"
    assert conninfo_to_dict(understood(ssl)) == {"user": "ada", "host": "db", "dbname": "shop", "sslmode": "require"}
    hosts = {"user": "ada", "dbname": "shop", "host": "a,b", "port": "5433,5434"}
    for scheme in ("postgresql", "postgresql+psycopg2"):
        url = f"{scheme}://ada@/shop?host=a:5433&host=b:5434&target_session_attrs=read-write"
        assert conninfo_to_dict(understood(url)) == {**hosts, "target_session_attrs": "read-write"}
    told = conninfo_to_dict(understood("postgresql+psycopg://a:p?w@h/shop?options=-c+jit%3Doff"))
    assert (told["password"], told["options"]) == ("p?w", "-c jit=off")
    assert conninfo_to_dict(understood("postgresql+psycopg:///shop?host=/run/pg"))["host"] == "/run/pg"


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://a:5433,b:5434/shop?target_session_attrs=read-write",
        "host=a,b port=5433,5434 dbname=shop target_session_attrs=read-write",
        "postgres://ada@h/shop",
        "service=shop",
    ],
)
def test_what_libpq_understands_stays_as_it_is(dsn: str) -> None:
    assert understood(dsn) == dsn


@pytest.mark.parametrize(
    "name", ["MENZIL_DNS", "menzil_dsn", "MENZILDSN", "MENZIL_DATABASE_URL", "MENZIL_DNS_", "MENZI_DSN"]
)
def test_a_misspelled_variable_is_refused_rather_than_skipped(tmp_path: Path, name: str) -> None:
    environ = {name: "dbname=canary", "PGHOST": "h"}
    with pytest.raises(UsageError, match=f"The variable {name} is set, and menzil does not read it") as refused:
        choose(None, environ=environ, directory=tmp_path)
    assert refused.value.hint == "did you mean MENZIL_DSN?"
    for dsn, more in (("dbname=x", {}), (None, {"MENZIL_DSN": "dbname=x"})):
        assert choose(dsn, environ=environ | more, directory=tmp_path) == "dbname=x", "another answer comes first"


@pytest.mark.parametrize(
    "name", ["MENZIL_PG_DIR", "MENZIL_SECRET_KEY", "MENZIL_DSN_REPLICA", "MENZIL_DSN2", "DATABASE_URL"]
)
def test_variables_of_another_meaning_are_left_alone(tmp_path: Path, name: str) -> None:
    assert choose(None, environ={name: "x"}, directory=tmp_path) is None


@pytest.mark.parametrize(
    ("dsn", "said"),
    [
        ("postgresql://u:ca@nary@h/shop", "write @ : / # ? and % of a user or password as %40"),
        ("postgresql+asyncpg://u:ca@nary@h/shop", "write @ : / # ? and % of a user or password as %40"),
        ("postgresql://u:ca/nary@h:1/shop", "write @ : / # ? and % of a user or password as %40"),
        ("postgresql://u:ca%nary@h/shop", "write @ : / # ? and % of a user or password as %40"),
        ("postgresql://u:canary@h/shop?sslmod=require", "it has no parameter sslmod, but sslmode"),
        ("postgresql://u:canary@h/shop?schema=public", "it has no parameter schema"),
        ('"postgresql://u:canary@h/shop"', "leave out the quotation marks"),
        ("jdbc:postgresql://h/shop?password=canary", 'leave out "jdbc:"'),
        ("password=x canary=1", "understands."),
        ("canary", "understands."),
    ],
)
def test_a_dsn_that_is_refused_says_why_and_which_answer_it_is_but_not_what_it_holds(dsn: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        choose(None, environ={"MENZIL_DSN": dsn})
    assert said in str(refused.value)
    assert "chosen by the variable MENZIL_DSN" in str(refused.value)
    assert "nary" not in str(refused.value)
    with pytest.raises(UsageError, match="chosen by the argument dsn"):
        menzil.Menzil(dsn)
    with pytest.raises(UsageError, match=r"chosen by the argument dsn of Worker\(\)"):
        menzil.Worker(dsn)


def test_a_dsn_knows_its_answer_in_another_process() -> None:
    there = pickle.loads(pickle.dumps(Dsn("dbname=shop", "the variable MENZIL_DSN")))
    assert explained(MenzilError("No."), there).hint == "the database was chosen by the variable MENZIL_DSN"
    asked = explained(MenzilError("No.", hint="is it there?"), there)
    assert asked.hint == "is it there? The database was chosen by the variable MENZIL_DSN"


def test_every_server_that_was_tried_is_named() -> None:
    with pytest.raises(psycopg.OperationalError) as failed:
        psycopg.connect("host=127.0.0.1,127.0.0.1 port=1,2 connect_timeout=5")
    assert "port 1 failed" in unreachable(failed.value).message
    assert "port 2 failed" in unreachable(failed.value).message


@pytest.mark.parametrize(
    ("dsn", "hint"),
    [
        ("host=127.0.0.1 port=abc", "a port is a number"),
        ("service=nowhere", "PGSERVICEFILE"),
    ],
)
def test_what_libpq_refuses_comes_with_a_hint(dsn: str, hint: str) -> None:
    with pytest.raises(psycopg.Error) as failed:
        psycopg.connect(dsn)
    assert hint in (unreachable(failed.value).hint or "")


@pytest.mark.parametrize("before", [None, "dbname=another"])
def test_a_framework_that_sets_the_variable_is_named_in_its_place(
    monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    monkeypatch.delenv("MENZIL_DSN", raising=False)
    if before is not None:
        monkeypatch.setenv("MENZIL_DSN", before)
    with variable_set("dbname=shop", "DATABASES['default'] of Django"):
        chosen = choose(None)
        assert chosen is not None
        assert (chosen, chosen.chosen_by) == ("dbname=shop", "DATABASES['default'] of Django")
    assert os.environ.get("MENZIL_DSN") == before
    if before is not None:
        assert choose(None).chosen_by == "the variable MENZIL_DSN"
