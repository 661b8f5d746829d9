"""The source in a Spark that is not ours: a program given to spark-submit, on a cluster with executors of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from menzil.embedded import Embedded
from menzil.spark.session.java import find_java, home_for_scripts
from menzil.spark.session.launch import spark_home
from tests.conftest import database
from tests.spark import mapped, pipeline_program, stock
from tests.spark.conftest import INTERPRETED

pytestmark = pytest.mark.slow


@pytest.fixture
def db_with_history(server: Embedded, _installed: str) -> Iterator[str]:
    with database(server, "elsewhere", _installed) as dsn:
        with psycopg.connect(dsn, autocommit=True) as conn:
            stock.archive(conn, 3000)
        yield dsn


def environment(**more: str) -> dict[str, str]:
    """That of Spark's own scripts. Each of its many Javas is short-lived: none of them compiles twice."""
    java = str(home_for_scripts(find_java()))
    return os.environ | {
        "JAVA_HOME": java,
        "JDK_JAVA_OPTIONS": mapped.options(),
        "SPARK_HOME": spark_home(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        **more,
    }


def submit(program: Path, *options: str, **more: str) -> str:
    jars = mapped.class_path()
    confs = {"spark.driver.extraClassPath": jars, "spark.executor.extraClassPath": jars, "spark.ui.enabled": "false"}
    confs |= INTERPRETED
    words = [word for name, value in confs.items() for word in ("--conf", f"{name}={value}")]
    done = subprocess.run(
        [f"{spark_home()}/bin/spark-submit", *words, "--driver-memory", "512m", *options, str(program)],
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


@contextmanager
def cluster(place: Path) -> Iterator[str]:
    """A master and two workers, each a Java process of the pip install."""
    started: list[subprocess.Popen[bytes]] = []
    log = place / "cluster.log"
    # As bin/spark-class starts them, which would start another Java for each command line.
    java, scala = mapped.words(), next(Path(spark_home(), "jars").glob("scala-library-*.jar")).stem.split("-")[-1]
    env = environment(SPARK_SCALA_VERSION=scala.rpartition(".")[0])

    def start(*words: str) -> None:
        with log.open("ab") as file:
            started.append(subprocess.Popen([*java, *words], env=env, stdout=file, stderr=file, cwd=place))

    def wait(text: str, count: int = 1) -> str:
        deadline = time.monotonic() + 100
        while (said := log.read_text()).count(text) < count:
            assert time.monotonic() < deadline, said[-3000:]
            assert all(process.poll() is None for process in started), said[-3000:]
            time.sleep(0.1)
        return said

    try:
        start("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        said = wait("Starting Spark master at ")
        master = said.partition("Starting Spark master at ")[2].split()[0]
        for number in (1, 2):
            work = str(place / f"work{number}")
            start(
                "org.apache.spark.deploy.worker.Worker",
                "--host",
                "127.0.0.1",
                "--webui-port",
                "0",
                "--cores",
                "1",
                "--memory",
                "600m",
                "--work-dir",
                work,
                master,
            )
        wait("Successfully registered with master", 2)
        yield master
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(30)


@pytest.mark.timeout(400)
def test_a_program_of_spark_submit_runs_the_pipeline_where_submit_says_and_shows_the_password_nowhere(
    db: str, db_with_history: str, tmp_path: Path
) -> None:
    password = str(conninfo_to_dict(db)["password"])
    assert password == conninfo_to_dict(db_with_history)["password"]
    place, logs = tmp_path / "cluster", tmp_path / "logs"
    for each in (place, logs):
        each.mkdir()
    program = tmp_path / "program.py"
    program.write_text(Path(pipeline_program.__file__).read_text())
    with cluster(place) as master:
        said = submit(
            program,
            *("--master", master, "--name", "nightly", "--executor-memory", "512m"),
            *("--conf", "spark.sql.shuffle.partitions=3"),
            *("--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir=file://{logs}"),
            MENZIL_DSN=db_with_history,
            SHOP=db,
            LAKE=str(tmp_path / "lake"),
        )
    assert f"master: {master} name: nightly\nshuffle: 3\n" in said
    steps = re.findall(r"^(?:sent|exported|verified|replayed|audited): .+$", said, re.MULTILINE)
    assert steps == [
        "sent: 400, repeated: False",
        "sent: 400, repeated: True",
        "exported: 400",
        "exported: 0",
        "verified: 400, problems: ()",
        "replayed: 40, repeated: False",
        "replayed: 40, repeated: True",
        "exported: 40",
        "audited: True, ended: 440, violations: []",
    ]
    assert "pushdown: false\n" in said, "the second session has a setting of ours"
    assert "failed: 300 tasks: 3" in said
    assert "Executor" in (place / "cluster.log").read_text()  # it ran there, not in the driver
    applications = sorted({path.name for path in place.glob("work*/app-*")})
    assert len(applications) == 2, "a session of ours, then one of Spark alone"
    for application in applications:
        ran = {path.relative_to(place).parts[0] for path in place.glob(f"work*/{application}/*/stderr")}
        assert ran == {"work1", "work2"}, "tasks ran in the executors of both workers"
    assert password not in said
    written = [*logs.rglob("*"), *place.glob("work*/**/std*"), place / "cluster.log"]
    files = [file for file in written if file.is_file()]
    assert len([file for file in files if file.is_relative_to(logs) and file.stat().st_size]) >= 2
    for file in files:
        assert password.encode() not in file.read_bytes(), file.name
