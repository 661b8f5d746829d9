"""Program, worker, command and library agree on the database, and say which one it is when that may be wrong."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import menzil
from menzil.cli import main
from menzil.embedded import Embedded
from menzil.embedded.places import homes, shared_places
from menzil.install import migrate
from menzil.model.errors import unreachable
from menzil.ops.choosing import LIBPQ_VARIABLES
from tests.conftest import database
from tests.memory import MEMORY

_NAMES = {"host": "PGHOST", "port": "PGPORT", "dbname": "PGDATABASE", "user": "PGUSER", "password": "PGPASSWORD"}


@pytest.fixture(scope="module")
def db(server: Embedded, _installed: str) -> Iterator[str]:
    """One database for all tests here: none of them minds what the others left."""
    with database(server, "which", _installed) as dsn:
        yield dsn


@pytest.fixture(autouse=True)
def _nothing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No answer but those of the test: the machine that runs it may have some."""
    for name in ("MENZIL_DSN", "PGPASSWORD", *LIBPQ_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MENZIL_PG_DIR", "/nonexistent/embedded")  # starting it would fail


def _say(way: str, dsn: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if way == "MENZIL_DSN":
        monkeypatch.setenv("MENZIL_DSN", dsn)
    elif way == "menzil.toml":
        (tmp_path / "menzil.toml").write_text(f'dsn = "{dsn}"\n')
        (tmp_path / "below").mkdir()
        monkeypatch.chdir(tmp_path / "below")
    else:
        for name, value in conninfo_to_dict(dsn).items():
            monkeypatch.setenv(_NAMES[name], str(value))


@pytest.mark.parametrize("way", ["MENZIL_DSN", "menzil.toml", "PG*"])
def test_a_program_its_worker_and_the_command_meet_in_one_database(
    db: str, way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _say(way, db, monkeypatch, tmp_path)
    handled = []
    app = menzil.Worker(endpoints=False, janitors=False)

    @app.handler("billing")
    async def bill(message: menzil.Message) -> None:
        handled.append(message.payload)

    async def awaited() -> None:
        async with menzil.AsyncMenzil() as mq:
            await mq.send("billing", 2)
        await app.serve(once=True)

    with menzil.Menzil() as mq:
        mq.channel_set("billing")
        mq.send("billing", 1)
        assert CliRunner().invoke(main, ["send", "billing", "3"]).exit_code == 0
    asyncio.run(awaited())
    assert {1, 2, 3} <= set(handled)

    told = CliRunner().invoke(main, ["doctor"]).output.splitlines()[0]
    chosen_by = {
        "MENZIL_DSN": "the variable MENZIL_DSN",
        "menzil.toml": f"dsn in {tmp_path / 'menzil.toml'}",
        "PG*": "the variables PGHOST, PGPORT, PGDATABASE, PGUSER",
    }[way]
    assert str(conninfo_to_dict(db)["dbname"]) in told
    assert told.endswith(f"chosen by {chosen_by}.")


def test_an_argument_outweighs_what_the_environment_says(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MENZIL_DSN", "postgresql://127.0.0.1:1/elsewhere")
    with menzil.Menzil(db) as mq:
        assert mq.dsn == db
        mq.channel_set("billing")
    assert CliRunner().invoke(main, ["send", "--dsn", db, "billing", "1"]).exit_code == 0
    assert menzil.Worker(db).dsn == db


def test_a_client_that_was_made_before_the_environment_was_loaded_obeys_it(
    db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with menzil.Menzil() as mq:
        worker = menzil.Worker()
        monkeypatch.setenv("MENZIL_DSN", db)
        mq.channel_set("billing")
        assert worker.dsn == db


def test_a_daemon_that_changes_its_directory_keeps_its_menzil_toml(
    db: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "menzil.toml").write_text(f'dsn = "{db}"\n')
    mq, worker = menzil.Menzil(), menzil.Worker()
    monkeypatch.chdir("/")
    assert (mq.dsn, worker.dsn) == (db, db)


def test_a_directory_that_was_removed_is_no_reason_to_fail(
    db: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setenv("MENZIL_DSN", db)
    with menzil.Menzil() as mq:
        mq.channel_set("billing")


def test_the_url_of_an_sqlalchemy_engine_serves_program_worker_and_command(
    db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = conninfo_to_dict(db)
    for driver in ("psycopg", "psycopg2", "asyncpg"):
        url = f"postgresql+{driver}://{at['user']}:{at['password']}@{at['host']}:{at['port']}/{at['dbname']}"
        monkeypatch.setenv("MENZIL_DSN", url)
        with menzil.Menzil() as mq, psycopg.connect(mq.dsn) as conn:
            mq.channel_set("billing", conn=conn)
        assert CliRunner().invoke(main, ["send", "billing", "1"]).exit_code == 0
        assert _work(url) >= 1
        assert not migrate(url).changed


def _work(dsn: str) -> int:
    """How many messages a worker finds there."""
    handled: list[menzil.Message] = []
    app = menzil.Worker(dsn, endpoints=False, janitors=False)
    app.handler("billing")(handled.append)
    asyncio.run(app.serve(once=True))
    return len(handled)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_dsn_with_several_servers_finds_the_one_that_takes_writes(db: str) -> None:
    at, dead = conninfo_to_dict(db), _free_port()
    several = make_conninfo(
        db, host=f"127.0.0.1,{at['host']}", port=f"{dead},{at['port']}", target_session_attrs="read-write"
    )
    url = (
        f"postgresql://{at['user']}:{at['password']}@127.0.0.1:{dead},{at['host']}:{at['port']}/{at['dbname']}"
        "?target_session_attrs=read-write"
    )
    for dsn in (several, url):
        with menzil.Menzil(dsn) as mq:
            mq.channel_set("billing")
            mq.send("billing", 1)
        assert _work(dsn) >= 1
        assert "chosen by the option --dsn" in CliRunner().invoke(main, ["doctor", "--dsn", dsn]).output
        assert not migrate(dsn).changed


def test_a_dsn_with_several_servers_of_which_none_takes_writes_says_so(db: str) -> None:
    wrong = make_conninfo(db, target_session_attrs="standby")
    with menzil.Menzil(wrong) as mq, pytest.raises(menzil.ConnectionFailedError, match="target_session_attrs"):
        mq.send("billing", 1)


def test_what_went_wrong_names_the_answer_that_led_there(
    server: Embedded, fresh_db: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MENZIL_DSN", fresh_db)
    by_variable = "chosen by the variable MENZIL_DSN"
    with menzil.Menzil() as mq, pytest.raises(menzil.SchemaMissingError, match=by_variable) as missing:
        mq.send("billing", 1)
    assert "run `menzil migrate`" in str(missing.value)
    assert by_variable in CliRunner().invoke(main, ["send", "billing", "1"]).stderr
    assert by_variable in CliRunner().invoke(main, ["doctor"]).stderr
    assert by_variable in CliRunner().invoke(main, ["worker", "--once"]).stderr

    monkeypatch.setenv("MENZIL_DSN", make_conninfo(server.dsn, dbname="shop"))
    with menzil.Menzil() as mq, pytest.raises(menzil.ConnectionFailedError, match="run `createdb shop`"):
        mq.send("billing", 1)
    for words in (["migrate"], ["send", "billing", "1"], ["worker", "--once"]):
        said = CliRunner().invoke(main, words).stderr
        assert "run `createdb shop`" in said
        assert by_variable in said

    monkeypatch.delenv("MENZIL_DSN")
    (tmp_path / "menzil.toml").write_text(f'dsn = "postgresql://127.0.0.1:{_free_port()}/shop"\n')
    with menzil.Menzil() as mq, pytest.raises(menzil.ConnectionFailedError, match=r"chosen by dsn in .*menzil\.toml"):
        mq.send("billing", 1)


# --- the embedded server ----------------------------------------------------------------------------------------------

_PROGRAM = """
import menzil
with menzil.Menzil() as one, menzil.Menzil() as two:
    one.channel_set("billing")
    two.send("billing", 1)
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A data directory that the account of the server may enter; its server is gone before it is."""
    with tempfile.TemporaryDirectory(prefix="mz-", dir=MEMORY, ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o755)
        yield Path(made)
        Embedded(Path(made) / "menzil" / "pg").start().close(wait=30)


@pytest.mark.slow
def test_one_line_tells_a_program_without_logging_that_the_embedded_server_is_used(
    place: Path, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a crontab: no HOME, no directory of one's own, nothing that names a database.
    source = str(Path(__file__).resolve().parents[2] / "src")
    bare = {"PATH": os.defpath, "PYTHONPATH": source, "XDG_DATA_HOME": str(place)}
    if os.geteuid() == 0 and any(home.has_cluster() for one in shared_places() for home in homes(one / "pg")):
        bare["MENZIL_PG_DIR"] = str(place / "menzil" / "pg")  # root has a server here, which would be taken

    def runs(*words: str) -> str:
        done = subprocess.run([sys.executable, *words], env=bare, cwd="/", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stderr

    line = (
        f"The embedded PostgreSQL in {place}/menzil/pg is used: "
        "no argument, MENZIL_DSN, menzil.toml or PG* variable names a database.\n"
    )
    assert runs("-c", _PROGRAM) == line
    with Embedded(place / "menzil" / "pg"):
        assert runs("-m", "menzil", "send", "billing", "2") == line
        # The doctor of another database says that this one runs, and who uses it.
        monkeypatch.setenv("MENZIL_PG_DIR", str(place / "menzil" / "pg"))
        told = CliRunner().invoke(main, ["doctor", "--dsn", db]).output
    assert f"An embedded PostgreSQL runs, too, in {place}/menzil/pg, used by " in told
    assert f"(pid {os.getpid()})." in told


def test_a_server_that_cannot_be_embedded_is_no_riddle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MENZIL_PG_DIR", str(tmp_path / "file"))
    with menzil.Menzil() as mq, pytest.raises(menzil.MenzilError, match="or set MENZIL_DSN: no argument, MENZIL_DSN"):
        mq.send("billing", 1)


def test_a_command_in_a_crontab_without_a_home_finds_its_database(db: str) -> None:
    source = str(Path(__file__).resolve().parents[2] / "src")
    bare = {"PATH": os.defpath, "PYTHONPATH": source, "MENZIL_DSN": db}
    done = subprocess.run(
        [sys.executable, "-m", "menzil", "doctor"], env=bare, cwd="/", capture_output=True, text=True, check=False
    )
    assert "chosen by the variable MENZIL_DSN." in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ({"sslmode": "require"}, "turn ssl on"),
        ({"options": "-c nonsense=1"}, "PGOPTIONS"),
        ({"options": "-c timezone=Mars"}, "PGTZ"),
    ],
)
def test_what_a_server_refuses_comes_with_a_hint(server: Embedded, option: dict[str, str], hint: str) -> None:
    with pytest.raises(psycopg.Error) as failed:
        psycopg.connect(make_conninfo(server.dsn, **option))
    assert hint in (unreachable(failed.value).hint or "")
