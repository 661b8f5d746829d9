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
from tests.spark import pipeline_program, stock

pytestmark = pytest.mark.slow

#: A session of ours first, then one of Spark alone: each is an application of the cluster, with executors of its own.
PROGRAM = (
    Path(pipeline_program.__file__).read_text()
    + """
    spark = get_session()
    print("master:", spark.sparkContext.master, "name:", spark.sparkContext.appName)
    print("shuffle:", spark.conf.get("spark.sql.shuffle.partitions"), flush=True)
    spark.stop()

    from pyspark.sql import SparkSession
    spark = SparkSession.builder.getOrCreate()
    print("pushdown:", spark.conf.get("spark.sql.python.filterPushdown.enabled"))
    reader = spark.read.format("menzil").schema("id bigint, status string").option("numPartitions", "4")
    frame = reader.load().where("status = 'failed'")
    frame.explain("extended")
    print("failed:", frame.count(), "tasks:", frame.rdd.getNumPartitions())
"""
)


@pytest.fixture
def db_with_history(db: str) -> str:
    with psycopg.connect(db, autocommit=True) as conn:
        stock.archive(conn, 3000)
    return db


def environment(**more: str) -> dict[str, str]:
    """That of Spark's own scripts. Each of its many Javas is short-lived: none of them compiles twice."""
    java = str(home_for_scripts(find_java()))
    return os.environ | {
        "JAVA_HOME": java,
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_HOME": spark_home(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        **more,
    }


def submit(program: Path, *options: str, **more: str) -> str:
    program.write_text(PROGRAM)
    command = [f"{spark_home()}/bin/spark-submit"]
    done = subprocess.run(
        [*command, "--conf", "spark.ui.enabled=false", "--driver-memory", "512m", *options, str(program)],
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=220,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


@contextmanager
def cluster(place: Path) -> Iterator[str]:
    """A master and two workers, each a Java process of the pip install."""
    started: list[subprocess.Popen[bytes]] = []
    log = place / "cluster.log"

    def start(*words: str) -> None:
        run = [f"{spark_home()}/bin/spark-class", *words]
        with log.open("ab") as file:
            started.append(
                subprocess.Popen(run, env=environment(SPARK_DAEMON_MEMORY="256m"), stdout=file, stderr=file, cwd=place)
            )

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


@pytest.fixture
def second_db(server: Embedded, _installed: str) -> Iterator[str]:
    with database(server, "worked", _installed) as dsn:
        yield dsn


def test_a_program_of_spark_submit_runs_the_whole_pipeline_on_a_cluster_and_reads_there_without_a_session_of_ours(
    db_with_history: str, second_db: str, tmp_path: Path
) -> None:
    """One program for all, since each application of a cluster starts two more Javas. No password is seen anywhere."""
    passwords = {conninfo_to_dict(dsn)["password"] for dsn in (db_with_history, second_db)}
    logs, place = tmp_path / "logs", tmp_path / "cluster"
    logs.mkdir()
    place.mkdir()
    with cluster(place) as master:
        said = submit(
            tmp_path / "program.py",
            *("--master", master, "--name", "nightly", "--executor-memory", "512m"),
            *("--conf", "spark.sql.shuffle.partitions=3"),
            *("--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir=file://{logs}"),
            MENZIL_DSN=db_with_history,
            PIPELINE_DSN=second_db,
            LAKE=str(tmp_path / "lake"),
        )
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
    assert f"master: {master} name: nightly\nshuffle: 3\n" in said
    assert "pushdown: false\n" in said, "the second session has a setting of ours"
    assert "failed: 300 tasks: 3" in said

    # Tasks ran in the executors of both workers, not in the driver: of our session, and of that of Spark alone.
    applications = sorted({path.name for path in place.glob("work*/app-*")})
    assert len(applications) == 2
    for name in applications:
        assert {path.parents[2].name for path in place.glob(f"work*/{name}/*/stderr")} == {"work1", "work2"}
    written = [*logs.rglob("*"), *place.glob("work*/**/std*"), place / "cluster.log"]
    files = [file for file in written if file.is_file()]
    assert len([file for file in files if file.is_relative_to(logs) and file.stat().st_size]) >= 2
    for password in passwords:
        assert password not in said
        for file in files:
            assert password.encode() not in file.read_bytes(), file.name
