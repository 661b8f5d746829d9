"""The source in a Spark that is not ours: a program given to spark-submit, on a cluster with executors of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from menzil.spark.session.java import find_java, home_for_scripts
from menzil.spark.session.launch import spark_home
from tests.spark import pipeline_program, stock

pytestmark = pytest.mark.slow

#: A session of ours first, then one of Spark alone: each is an application of the cluster, with executors of its own.
PROGRAM = """
    from menzil.spark import get_session
    spark = get_session()
    print("master:", spark.sparkContext.master, "name:", spark.sparkContext.appName)
    print("shuffle:", spark.conf.get("spark.sql.shuffle.partitions"), "rows:", spark.range(10).count(), flush=True)
    spark.stop()

    from pyspark.sql import SparkSession
    spark = SparkSession.builder.getOrCreate()
    print("pushdown:", spark.conf.get("spark.sql.python.filterPushdown.enabled"))
    reader = spark.read.format("menzil").schema("id bigint, status string").option("numPartitions", "4")
    frame = reader.load().where("status = 'failed'")
    frame.explain("extended")
    print("failed:", frame.count(), "tasks:", frame.rdd.getNumPartitions())
    """


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


def submit(program: Path, *options: str, text: str = PROGRAM, **more: str) -> str:
    program.write_text(textwrap.dedent(text))
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


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def master(place: Path) -> Iterator[str]:
    """The address of a cluster, whose logs and work lie in `place`."""
    with cluster(place) as address:
        yield address


def test_a_program_of_spark_submit_runs_where_submit_says_and_reads_there_and_shows_the_password_nowhere(
    db_with_history: str, master: str, place: Path, tmp_path: Path
) -> None:
    password = conninfo_to_dict(db_with_history)["password"]
    logs = tmp_path / "logs"
    logs.mkdir()
    said = submit(
        tmp_path / "program.py",
        *("--master", master, "--name", "nightly", "--executor-memory", "512m"),
        *("--conf", "spark.sql.shuffle.partitions=7"),
        *("--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir=file://{logs}"),
        MENZIL_DSN=db_with_history,
    )
    assert f"master: {master} name: nightly\nshuffle: 7 rows: 10\n" in said
    assert "pushdown: false\n" in said, "the second session has a setting of ours"
    assert "failed: 300 tasks: 3" in said
    assert "Executor" in (place / "cluster.log").read_text()  # it ran there, not in the driver
    assert password not in said
    written = [*logs.rglob("*"), *place.glob("work*/**/std*"), place / "cluster.log"]
    files = [file for file in written if file.is_file()]
    assert len([file for file in files if file.is_relative_to(logs) and file.stat().st_size]) >= 2
    works = [file.relative_to(place).parts[0] for file in files if file.is_relative_to(place) and "work" in str(file)]
    assert len(set(works)) == 2
    for file in files:
        assert password.encode() not in file.read_bytes(), file.name


def test_a_program_of_spark_submit_sends_exports_verifies_replays_and_audits_on_a_cluster(
    db: str, master: str, place: Path, tmp_path: Path
) -> None:
    options = ["--conf", "spark.sql.shuffle.partitions=2", "--executor-memory", "512m"]
    where = {"MENZIL_DSN": db, "LAKE": str(tmp_path / "lake")}
    text = Path(pipeline_program.__file__).read_text()
    said = submit(tmp_path / "pipeline.py", "--master", master, *options, text=text, **where)
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
    newest = max(place.glob("work*/app-*"), key=lambda path: path.name).name
    assert len(list(place.glob(f"work*/{newest}/*/stderr"))) >= 2, "tasks ran in the executors of both workers"
