"""A session that works wherever pip works."""

from __future__ import annotations

import gc
import io
import os
import socket
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa
import pytest

from menzil.model.errors import ConnectionFailedError, UsageError
from menzil.spark import frozen, get_session, read
from menzil.spark.session import archive, cache, explain, java, launch
from menzil.spark.session.defaults import settings
from menzil.spark.session.home import must_fit
from menzil.spark.session.launch import command, ordinary, spark_home
from menzil.spark.session.master import asked_for, elsewhere, must_be_there
from menzil.spark.session.outside import configured
from menzil.spark.session.progress import Progress, line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_python(code: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own; None takes a variable away."""
    given = {name: value for name, value in (os.environ | environment).items() if value is not None}
    program = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(program, env=given, capture_output=True, text=True, timeout=200)


@pytest.mark.slow
def test_a_machine_without_java_runs_a_job_with_what_pip_installed_and_reads_no_pandas(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "env", "dirname", "bash"):
        (tools / name).symlink_to(f"/bin/{name}" if name in ("sh", "bash") else f"/usr/bin/{name}")
    code = """
        import shutil, sys
        assert shutil.which("java") is None
        import menzil.spark
        assert not {"pyspark", "psycopg", "numpy"} & set(sys.modules), "read before a JVM was started"
        spark = menzil.spark.get_session(master="local[1]", quick=True)
        version = spark.sparkContext._jvm.java.lang.System.getProperty("java.version")
        print(version.split(".")[0], spark.range(5).rdd.map(lambda row: row.id).sum())
        assert spark.range(3).selectExpr("sum(id)").collect()[0][0] == 3
        assert not {"pandas", "numpy"} & set(sys.modules), "read for nothing"
        # Arrays of NumPy still go to Java.
        import numpy
        from pyspark.sql import functions as F
        row = spark.range(1).select(F.lit(numpy.int16(7)), F.lit(numpy.array([1.5, 2.5]))).collect()[0]
        print(row[0], list(row[1]), spark.createDataFrame(numpy.array([[1, 2]])).collect()[0][1])
        """
    # One start: an archive of its classes would be made for no process, beside the other tests.
    done = run_python(code, PATH=str(tools), JAVA_HOME=None, MENZIL_CLASS_ARCHIVE="off")
    assert done.stdout.splitlines() == ["25 10", "7 [1.5, 2.5] 2"], done.stderr
    assert done.stderr == ""


def test_a_pyspark_without_data_sources_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from menzil.spark.read import ensure_source

    monkeypatch.delitem(sys.modules, "menzil.spark.source.datasource", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark.sql.datasource", None)
    with pytest.raises(UsageError, match=r"^PySpark [\d.]+ knows no data sources written in Python\."):
        ensure_source(None)  # type: ignore[arg-type]


def test_a_thread_that_did_not_make_the_session_sends_with_it(spark: SparkSession, db: str) -> None:
    from menzil.spark.jobs.door import write

    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('billing')")
    frame = spark.createDataFrame([("{}", "billing")], "payload string, endpoint string")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(write, frame, db, "from-a-thread", what="send").result() == 1


def test_the_stand_in_for_java_drops_the_module_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    real = tmp_path / "a home" / "bin" / "java"
    real.parent.mkdir(parents=True)
    real.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    real.chmod(0o755)
    home = java.home_for_scripts(java.Java(real.parent.parent, "25", frozenset({"java.base"})))
    said = subprocess.run(
        [home / "bin" / "java", "-Da=b c", "--add-modules=jdk.incubator.vector", "--add-modules=other", "Main", "*"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "<-Da=b c><--add-modules=other><Main><*>"
    whole = java.Java(real.parent.parent, "25", frozenset({"jdk.incubator.vector"}))
    assert java.home_for_scripts(whole) == whole.home


def test_a_java_that_is_too_old_or_missing_is_named_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(java.JavaMissingError, match=r"JAVA_HOME is .*, and there is no Java"):
        java.find_java()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="1.8.0_452"\nMODULES=""\n')
    with pytest.raises(java.JavaMissingError, match=r"JAVA_HOME is a Java 1\.8\.0_452, and Spark needs 17") as caught:
        java.find_java()
    assert "pip install" in str(caught.value.hint)


def test_a_session_is_set_up_for_postgresql_and_for_secrets(spark: SparkSession) -> None:
    assert get_session() is spark
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"
    assert spark.sparkContext.uiWebUrl is None
    workers = spark.range(1).rdd.map(lambda _: sys.executable).collect()
    assert workers == [sys.executable]


def test_the_command_line_holds_no_setting_that_others_may_not_read() -> None:
    settings = {"spark.master": "local[1]", "spark.hadoop.fs.s3a.secret.key": "canary"}
    words = command(java.find_java(), settings, quick=True)
    assert "canary" not in " ".join(words)
    assert "-XX:TieredStopAtLevel=1" in words


def test_in_python_processes_of_spark_the_collector_leaves_loaded_modules_alone(spark: SparkSession) -> None:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            before = gc.get_freeze_count()
            frozen.freeze_modules()
            yield pa.record_batch({"pid": [os.getpid()], "before": [before], "after": [gc.get_freeze_count()]})

    frame = spark.range(1).coalesce(1).mapInArrow(work, "pid bigint, before bigint, after bigint")
    row = frame.collect()[0]
    assert row.after > 10_000
    tasks: Counter[int] = Counter([row.pid])
    while tasks[row.pid] <= frozen.TIMES:  # earlier tests left several processes, and Spark chooses among them
        row = frame.collect()[0]
        tasks[row.pid] += 1
        assert tasks.total() < 300, tasks
    assert row.before == row.after, "a process that freezes objects at every task grows"
    unfrozen = gc.get_freeze_count()
    frozen.freeze_modules()
    assert gc.get_freeze_count() == unfrozen, "other processes are left alone"


def test_a_master_that_is_none_or_does_not_answer_is_refused_before_java_starts() -> None:
    for fine in ("local", "local[*]", "local[2,3]", "local-cluster[2,1,1024]", "yarn", "k8s://https://host:6443"):
        must_be_there(fine)
    for none in ("nonsense", "spark://", "spark://host", "local[two]", "http://127.0.0.1:7077", ""):
        with pytest.raises(UsageError, match="is not a Spark master"):
            must_be_there(none)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        must_be_there(f"spark://127.0.0.1:{port}")
        must_be_there(f"spark://127.0.0.1:1,127.0.0.1:{port}")  # a standby, and the one that is up
    with pytest.raises(ConnectionFailedError, match=f"No Spark master answers at spark://127.0.0.1:{port}"):
        must_be_there(f"spark://127.0.0.1:{port}")


def test_the_master_that_a_program_names_wins_over_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER", "local[7]")
    assert elsewhere() == "local[7]"
    monkeypatch.delenv("MASTER")
    assert elsewhere() == "local[*]"
    assert asked_for(None, {}) is None
    assert asked_for("local[2]", {}) == asked_for(None, {"spark.master": "local[2]"}) == "local[2]"
    with pytest.raises(UsageError, match=r"Two masters are given, local\[2\] and, in conf, yarn\."):
        asked_for("local[2]", {"spark.master": "yarn"})


def test_a_master_that_cannot_be_had_any_more_is_refused(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="Spark is already running in this process with the master local"):
        get_session(master="spark://127.0.0.1:7077")
    assert get_session(master=spark.sparkContext.master) is spark


def test_what_spark_submit_sets_stays_and_secrets_stay_hidden() -> None:
    theirs = {"spark.sql.shuffle.partitions": "400", "spark.redaction.regex": "pin", "spark.ui.enabled": "true"}
    ours = settings("local[*]", theirs)
    assert not {"spark.sql.shuffle.partitions", "spark.ui.enabled"} & set(ours)
    assert ours["spark.redaction.regex"].startswith("pin|")
    assert "dsn" in ours["spark.redaction.regex"]


def test_a_spark_home_that_pyspark_cannot_use_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(UsageError, match=r"SPARK_HOME is .*, and there is no Spark\."):
        must_fit()
    for name in ("bin", "jars"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin" / "spark-submit").touch()
    must_fit()  # a Spark that is put together otherwise may be as good
    (tmp_path / "jars" / "spark-core_2.12-3.5.1-amzn-0.jar").touch()
    with pytest.raises(UsageError, match=r"SPARK_HOME is .*, a Spark 3\.5, and PySpark here is \d+\.\d+\.") as caught:
        must_fit()
    assert caught.value.hint == "unset it: PySpark brings a Spark along; or install pyspark==3.5.*"
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    must_fit()  # spark-submit has started it
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT")
    monkeypatch.setenv("SPARK_HOME", spark_home())
    must_fit()


def test_a_spark_home_fits_the_pyspark_that_is_imported_whichever_pip_has_beside_it(tmp_path: Path) -> None:
    for place in ("bin/spark-submit", "jars/spark-core_2.13-4.0.1.jar", "python/pyspark/__init__.py"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    (tmp_path / "python" / "pyspark" / "__init__.py").write_text('__version__ = "4.0.1"')
    home, code = str(tmp_path), "from menzil.spark.session.home import must_fit; must_fit()"
    ran = run_python(code, SPARK_HOME=home, PYTHONPATH=str(tmp_path / "python"), PYSPARK_GATEWAY_PORT=None)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.slow
def test_a_spark_home_is_not_asked_for_where_java_of_the_program_runs(tmp_path: Path) -> None:
    code = """
        import os
        from menzil.spark.session.launch import set_java_home
        set_java_home()
        from pyspark import SparkContext
        SparkContext("local[1]", "mine")
        os.environ["SPARK_HOME"] = HOME
        from menzil.spark import get_session
        print(get_session().range(3).count())
    """
    ran = run_python(code.replace("= HOME", "= " + repr(str(tmp_path))), SPARK_HOME=None, PYSPARK_GATEWAY_PORT=None)
    assert (ran.returncode, ran.stdout) == (0, "3\n"), ran.stderr


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (  # both as Spark 4.3 says it
            'Lost task 0.0: java.io.IOException: Cannot run program "/opt/python9": error=2, No such file\n\tat x',
            'Cannot run program "/opt/python9": error=2, No such file',
        ),
        (
            "(localhost executor driver): org.apache.spark.SparkException: \nError from python worker:\n"
            "  /usr/bin/python3: No module named 'pyspark'\nPYTHONPATH was:\n  /x\n\tat x.y",
            "/usr/bin/python3: No module named 'pyspark'",
        ),
    ],
)
def test_a_python_of_tasks_that_does_not_start_is_named_with_the_variable(told: str, why: str) -> None:
    error = explain(RuntimeError(f"Job aborted due to stage failure: {told}"))
    assert error.message == f"The Python of Spark's tasks does not start: {why}."
    assert error.hint is not None
    assert error.hint.startswith("unset PYSPARK_PYTHON")


def test_a_connect_server_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    with pytest.raises(UsageError, match="SPARK_REMOTE names a Spark Connect server"):
        configured({}, None)


def test_the_source_is_registered_where_spark_did_not_find_it_and_nowhere_else(spark: SparkSession) -> None:
    from menzil.spark.read import ensure_source

    class Once:
        """Spark's own says WARN when a source takes the place of the same one."""

        register = staticmethod(lambda _: pytest.fail("it was there"))

    ensure_source(spark)
    assert spark._jsparkSession.sessionState().dataSourceManager().dataSourceExists("menzil")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(spark), "dataSource", Once())
        ensure_source(spark)


def test_whoever_configures_spark_gets_sparks_own_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "HADOOP_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert ordinary({})
    assert not ordinary({"spark.driver.extraJavaOptions": "-Dx=y"})
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages a:b:1 pyspark-shell")
    assert not ordinary({})


def test_an_archive_that_was_cut_off_is_never_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = java.find_java()
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"")
    (first, *_) = archive.flags(found, str(jar), True)
    flag, _, place = first.partition("=")
    growing = Path(place)
    growing.write_bytes(b"half an archive")
    os.utime(growing, (time.time() - 700,) * 2)
    (second, *_) = archive.flags(found, str(jar), True)
    assert second.partition("=")[0] == flag
    assert not growing.exists()


def test_archives_that_nobody_uses_any_more_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"")
    ages = {"classes-a.jsa": 31 * 86400, "classes-b.jsa": 29 * 86400, "classes-c.12ab": 7200, "classes-d.34cd": 60}
    for name, age in ages.items():
        (cache.cache_dir() / name).write_bytes(b"")
        os.utime(cache.cache_dir() / name, (time.time() - age,) * 2)
    archive.flags(java.find_java(), str(jar), True)
    assert {path.name for path in cache.cache_dir().glob("classes-*")} == {"classes-b.jsa", "classes-d.34cd"}


def test_a_java_without_an_archive_to_build_on_writes_a_cache_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"")
    flags = {
        version: archive.flags(java.Java(tmp_path, version, frozenset()), str(jar), True)[0].partition("=")[0]
        for version in ("17.0.15", "25.0.2")
    }
    assert flags == {"17.0.15": "-XX:ArchiveClassesAtExit", "25.0.2": "-XX:AOTMode"}
    monkeypatch.setenv("MENZIL_CLASS_ARCHIVE", "off")
    assert archive.flags(java.find_java(), str(jar), True) == []


def test_a_cache_that_others_may_write_to_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ours = cache.cache_dir()
    assert ours == tmp_path / "menzil"
    ours.chmod(0o777)
    assert cache.cache_dir() != ours


def test_errors_of_spark_become_one_sentence(spark: SparkSession) -> None:
    def fail(row: object) -> int:
        raise ValueError("the order has no customer")

    with pytest.raises(Exception, match="Traceback") as caught:
        spark.range(1).rdd.map(fail).collect()
    assert str(explain(caught.value)) == "ValueError: the order has no customer"
    with pytest.raises(Exception, match="colour") as caught:
        spark.range(1).select("colour")
    told = explain(caught.value)
    assert isinstance(told, UsageError)
    assert "\n" not in told.message
    assert "colour" in told.message
    with pytest.raises(Exception, match="no relation") as caught:
        spark.read.format("menzil").option("dsn", "host=127.0.0.1").option("table", "letters").load()
    assert explain(caught.value).message == "There is no relation letters."
    with pytest.raises(Exception, match="onnect") as caught:
        read(spark, "host=127.0.0.1 port=1 dbname=x connect_timeout=2", "channels").collect()
    assert "refused" in explain(caught.value).message
    assert "\tat org.apache" not in str(explain(caught.value))
    memory = explain(RuntimeError("Job aborted: java.lang.OutOfMemoryError: Java heap space\n\tat x.y"))
    assert memory.message == "Spark ran out of memory."


@pytest.mark.parametrize(
    ("last_act", "told"),
    [
        ("import os; os.kill(os.getpid(), 9)", "it was killed by signal 9"),
        ("raise SystemExit(52)", "it ran out of memory"),
        ("raise SystemExit(50)", "it ended with exit code 50"),
    ],
)
def test_a_java_process_that_is_gone_leaves_a_word_of_how_it_ended(
    last_act: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = subprocess.Popen([sys.executable, "-c", last_act])
    monkeypatch.setattr(launch, "_running", [process])
    gone = explain(ConnectionRefusedError(111, "Connection refused"))
    assert gone.message == f"Spark's Java process is gone: {told}."
    assert "spark.driver.memory" in str(gone.hint)


class Terminal(io.StringIO):
    """Makes a file when it has shown tasks."""

    def __init__(self, shown: Path) -> None:
        super().__init__()
        self._shown = shown

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if " tasks" in text:
            self._shown.touch()
        return super().write(text)


def test_a_terminal_shows_how_far_a_job_is(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("menzil.spark.session.progress.PATIENCE", 0)
    monkeypatch.setattr("menzil.spark.session.progress.PAUSE", 0.02)
    shown = tmp_path / "shown"
    screen, file = Terminal(shown), io.StringIO()

    def work(row: object) -> object:
        import time

        deadline = time.monotonic() + 60
        while not shown.exists():
            assert time.monotonic() < deadline, "nothing is shown"
            time.sleep(0.01)
        return row

    with Progress(spark, "counting", stream=screen), Progress(spark, "counting", stream=file):
        spark.sparkContext.parallelize(range(4), 4).map(work).count()
    assert "counting [" in screen.getvalue()
    assert "of 4 tasks" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")
    assert file.getvalue() == ""
    assert line("sending", 3, 12, 1, 14.2) == "sending [######------------------] 3 of 12 tasks, 1 tried again, 14 s"
