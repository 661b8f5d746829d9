"""What the reader of a page has before its first block, where that is more than a text of SQL."""

from __future__ import annotations

import base64
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, SimpleUser
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection

import menzil
from menzil.console.tokens import make
from tests.conftest import adopt, drop_database
from tests.console.seat import served
from tests.docs.brokers import to_kafka, to_mqtt, to_nats, to_redis, working
from tests.docs.parts import rows
from tests.docs.running import Run
from tests.integration.cli.user import User
from tests.memory import MEMORY
from tests.sql.clock import until
from tests.telemetry.sdk import installed

_TASKS = """
import menzil

app = menzil.Worker()


@app.handler("emails", "orders")
async def handle(message):
    print(message.payload)
"""


def tasks(run: Run) -> None:
    """The program that pages call shop.tasks. Four processes would only share the two cores of a small machine."""
    (run.folder / "shop").mkdir()
    (run.folder / "shop" / "tasks.py").write_text(_TASKS)
    run.stand_ins["--processes 4"] = "--processes 2"


@contextmanager
def embedded(run: Run) -> Iterator[None]:
    # Not below pytest's own directory: under root another account runs the server and may not pass through it.
    with tempfile.TemporaryDirectory(prefix="mz-", dir=MEMORY, ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        run.environ["MENZIL_PG_DIR"] = f"{place}/pg"
        yield
        assert "127.0.0.1" in run.said
        until(lambda: not list(Path(place).rglob("postmaster.pid")))


@contextmanager
def deployed_console(run: Run) -> Iterator[None]:
    place = run.folder / "etc"
    place.mkdir()
    (place / "tokens").write_text(make("ada", "operator")[1])
    parts = conninfo_to_dict(run.dsn)
    run.stand_ins |= {"/etc/menzil": str(place), "@db/shop": "@{host}:{port}/{dbname}".format(**parts)}
    run.environ["PGPASSWORD"] = "…"  # as the page says
    yield


@contextmanager
def keys(run: Run) -> Iterator[None]:
    old, new = (base64.b64encode(secrets.token_bytes(32)).decode() for _ in range(2))
    run.stand_ins |= {"'…'": f"'{old}'", "'new…,old…'": f"'{new},{old}'"}
    run.names["key"] = old
    yield
    assert "$encrypted" in str(rows(run, "select secrets from menzil.endpoint_secret"))
    assert run.environ["MENZIL_SECRET_KEY"] == f"{new},{old}"


@contextmanager
def waiting(run: Run) -> Iterator[None]:
    app = menzil.Worker(run.dsn, janitors=False)
    app.handler("billing")(print)
    User(run.dsn).gets("--actor", "ada", "channel", "pause", "billing")
    with working(app):
        until(lambda: rows(run, "select * from menzil.get_worker_status()"))
        yield
    assert (run.folder / "message-42.html").exists()


@contextmanager
def measured(run: Run) -> Iterator[None]:
    tasks(run)
    run.stand_ins["5e884898da28…"] = "5e" * 32
    yield


@contextmanager
def several(run: Run) -> Iterator[None]:
    tasks(run)
    name = conninfo_to_dict(run.dsn)["dbname"]
    crm = make_conninfo(run.dsn, dbname=f"{name}_crm")
    (run.folder / "databases").write_text(f"shop {run.dsn}\ncrm {crm}\n")
    run.names |= {"shop_dsn": run.dsn, "crm_dsn": crm}
    run.stand_ins |= {
        "/etc/menzil/databases": str(run.folder / "databases"),
        "shop postgresql://db1/shop": f"shop {run.dsn}",
        "crm postgresql://db2/crm": f"crm {crm}",
        "postgresql://worker@db1/shop": run.dsn,
        "host=db2 dbname=crm user=worker": crm,
    }
    with psycopg.connect(make_conninfo(run.dsn, dbname="postgres"), autocommit=True) as conn:
        conn.execute(f"create database {name}_crm template installed")
        try:
            adopt(crm)
            with menzil.Menzil(crm) as mq:
                mq.channel_set("orders")
            yield
        finally:
            drop_database(conn, f"{name}_crm")


@contextmanager
def traced(run: Run) -> Iterator[None]:
    run.names["handle"] = str
    with installed() as sdk:
        yield
        assert set(sdk.names()) == {"send billing", "receive billing", "complete billing", "process billing"}
    assert "00-" in run.said


class Everyone(AuthenticationBackend):
    """The login of the program that the console is mounted in."""

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, SimpleUser]:
        return AuthCredentials(), SimpleUser("ada")


@contextmanager
def mounted(run: Run) -> Iterator[None]:
    app: Any = Starlette(middleware=[Middleware(AuthenticationMiddleware, backend=Everyone())])
    run.names["app"] = app
    yield
    with served(app) as seat:
        assert "ada" in seat.get("/queue/").words


@contextmanager
def worker(run: Run) -> Iterator[None]:
    tasks(run)
    yield


STAGES: dict[str, Callable[[Run], AbstractContextManager[None]]] = {
    "docs/explanation/embedded.md": embedded,
    "docs/how-to/deliver-to-kafka.md": to_kafka,
    "docs/how-to/deliver-to-mqtt.md": to_mqtt,
    "docs/how-to/deliver-to-nats.md": to_nats,
    "docs/how-to/deliver-to-redis.md": to_redis,
    "docs/how-to/deploy-the-console.md": deployed_console,
    "docs/how-to/encrypt-secrets.md": keys,
    "docs/how-to/find-out-why-a-message-waits.md": waiting,
    "docs/how-to/monitor-with-prometheus.md": measured,
    "docs/how-to/serve-several-databases.md": several,
    "docs/how-to/trace-through-the-queue.md": traced,
    "docs/reference/console.md": mounted,
    "docs/reference/worker.md": worker,
}
