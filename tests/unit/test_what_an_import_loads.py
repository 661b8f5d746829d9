"""What `import menzil` loads: a program that sends waits for no module of the worker, and none that it does not use.

tools/release_check.py measures how long the imports take.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Libraries of extras, and modules of the standard library that only some calls need.
NEVER = (
    "alembic", "asyncpg", "click", "confluent_kafka", "cryptography", "difflib", "django", "fastapi", "hashlib",
    "html", "http", "httptools", "jinja2", "opentelemetry", "pamqp", "prometheus_client", "pyarrow", "pyiceberg",
    "pyspark", "secrets", "shlex", "sqlalchemy", "starlette", "textual", "tomllib", "uvicorn", "uvloop",
    "menzil.bridge", "menzil.cli", "menzil.console", "menzil.contrib", "menzil.deliver", "menzil.embedded",
    "menzil.install", "menzil.report", "menzil.spark", "menzil.testing", "menzil.watch",
)  # fmt: skip
#: What the worker loads when it runs.
AT_WORK = ("menzil.model.redact", "menzil.telemetry.serving", "menzil.worker.company", "menzil.worker.shift")


@pytest.mark.parametrize(
    ("words", "others"),
    [
        ("import menzil", ("asyncio", "psycopg", "psycopg_pool", "menzil.client", "menzil.ops", "menzil.worker")),
        ("from menzil import Menzil", ("menzil.client.aio", "menzil.client.awaited", "menzil.worker")),
        ("from menzil import AsyncMenzil", ("menzil.client.blocking", "menzil.client.sync", "menzil.worker")),
        ("from menzil import Worker", ("menzil.client", *AT_WORK)),
        ("import menzil; menzil.Worker('postgresql://localhost/x')", ("menzil.client", *AT_WORK)),
    ],
)
def test_an_import_loads_only_what_it_names(words: str, others: tuple[str, ...]) -> None:
    # psycopg loads modules of its own; what is there after it is not menzil's doing.
    before = "" if "psycopg" in others else "import psycopg; "
    code = f"import sys; {before}there = set(sys.modules); {words}; print(*sorted(set(sys.modules) - there))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert "menzil.model.errors" in loaded
    assert loaded.isdisjoint({*NEVER, *others})


def test_both_clients_are_found_where_they_always_were() -> None:
    code = "import menzil.client as c, menzil; print(c.Menzil is menzil.Menzil, c.AsyncMenzil is menzil.AsyncMenzil)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "True True\n"
    from menzil import client

    with pytest.raises(AttributeError, match=r"'menzil\.client' has no attribute 'Nothing'"):
        client.Nothing  # noqa: B018
