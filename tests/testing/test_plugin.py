"""The plugin in a project of strangers: the files of the page "Test your handlers", in processes of their own."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil.embedded import Embedded
from menzil.model.errors import UsageError
from menzil.testing.server import Server

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "test-your-handlers.md").read_text()


def files_of_the_page() -> dict[str, str]:
    """The blocks whose first line names a file; several blocks of one name are one file."""
    files: dict[str, str] = {}
    for name, text in re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        files[name] = files.get(name, "") + ("\n\n" if name in files else "") + text
    assert PAGE.count("```python") == len(re.findall(r"^```python\n# \w+\.py$", PAGE, re.MULTILINE))
    return files


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A directory in which the plugin is installed as pip would: by the entry point of our project."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    info = pytester.mkdir("installed") / "strangers-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strangers\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[pytest11]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(info.parent)]))
    monkeypatch.delenv("MENZIL_DSN", raising=False)
    return pytester


@pytest.fixture
def creator(server: Embedded) -> Iterator[str]:
    """The DSN of a user that may create databases and nothing else."""
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        conn.execute("create role tester login createdb password 'tester'")
        yield make_conninfo(server.dsn, user="tester", password="tester")
        conn.execute("drop role tester")


def databases(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as conn:
        return [name for (name,) in conn.execute("select datname from pg_database where datname like 'menzil\\_%'")]


def test_the_page_is_a_project_whose_tests_pass_in_parallel_without_a_superuser(
    project: pytest.Pytester, creator: str
) -> None:
    for name, text in files_of_the_page().items():
        (project.path / name).write_text(text)
    with psycopg.connect(creator, autocommit=True) as conn:
        conn.execute("create database menzil_test_killed_1_1")  # a run that could not drop it
        conn.execute("create database menzil_test_living_1_1")
    with psycopg.connect(creator, application_name="menzil_test living"):
        options = ["-n", "2", "-W", "error", "--strict-markers", "--menzil-dsn", creator, "-p", "no:cacheprovider"]
        done = project.runpytest_subprocess(*options)
        left = databases(creator)
    with psycopg.connect(creator, autocommit=True) as conn:
        conn.execute("drop database menzil_test_living_1_1")
    done.assert_outcomes(passed=PAGE.count("\ndef test_") + PAGE.count("\nasync def test_"))
    assert left == ["menzil_test_living_1_1"]


@pytest.mark.slow
def test_without_a_server_an_embedded_one_is_started_and_its_template_serves_the_next_run(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    monkeypatch.setenv("MENZIL_PG_DIR", str(place))
    monkeypatch.delenv("MENZIL_TEST_DSN", raising=False)
    project.makepyfile(
        """
        import psycopg
        from menzil.testing import refute_sent
        import pytest

        @pytest.mark.menzil(channels=["billing"])
        def test_a_database(menzil_db):
            refute_sent("billing")
            with psycopg.connect(menzil_db) as conn:
                names = conn.execute("select datname from pg_database where datname like 'menzil%' order by 1")
                print("FOUND", *(name for (name,) in names))
        """
    )
    found = []
    for _ in range(2):
        done = project.runpytest_subprocess("-s", "-p", "no:cacheprovider")
        done.assert_outcomes(passed=1)
        found += [line.partition("FOUND ")[2].split() for line in done.outlines if "FOUND " in line]
    first, second = found
    assert [len(first), len(second)] == [2, 2], "a template that stays, and the database of the test"
    assert first[0] == second[0]
    assert first[0].startswith("menzil_base_")


def test_a_misspelled_variable_does_not_lead_to_an_embedded_server(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, creator: str
) -> None:
    monkeypatch.delenv("MENZIL_TEST_DSN", raising=False)
    monkeypatch.setenv("MENZIL_TEST_DNS", creator)
    project.makepyfile("def test_a_database(menzil_db): pass")
    done = project.runpytest_subprocess("-p", "no:cacheprovider")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*The variable MENZIL_TEST_DNS is set*", "*did you mean MENZIL_TEST_DSN?*"])
    done = project.runpytest_subprocess("-p", "no:cacheprovider", "--menzil-dsn", creator)
    done.assert_outcomes(passed=1)


def test_a_longer_variable_of_the_project_is_not_refused(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MENZIL_TEST_DSN", raising=False)
    monkeypatch.setenv("MENZIL_TEST_DSN2", "host=elsewhere")
    project.makepyfile("def test_the_server_of_the_tests(menzil_dsn): assert menzil_dsn is None")
    project.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_hints_about_marks_and_schedules_can_be_followed(project: pytest.Pytester, creator: str) -> None:
    project.makepyfile(
        """
        import pytest
        from menzil.testing import fire

        @pytest.mark.menzil(["mails", "bills"])
        def test_a_list(mq): pass

        @pytest.mark.menzil("mails")
        def test_a_name(mq): pass

        def test_a_schedule(mq):
            fire("nightly")
        """
    )
    done = project.runpytest_subprocess("-p", "no:cacheprovider", "--menzil-dsn", creator)
    done.assert_outcomes(errors=2, failed=1)
    said = done.stdout.str()
    assert "write channels=['mails', 'bills']" in said
    assert "write channels=['mails']" in said
    assert "Hint: make it first: mq.schedule_create" in said


@pytest.fixture
def place() -> Iterator[Path]:
    # Not below pytest's own directory: under root another account runs the server and may not pass through it.
    made = Path(tempfile.mkdtemp(prefix="mzt-"))
    made.chmod(0o755)
    yield made / "pg"
    shutil.rmtree(made, ignore_errors=True)


def test_a_run_that_uses_none_of_it_imports_nothing_of_menzil(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import sys

        def test_nothing(pytestconfig):
            assert pytestconfig.pluginmanager.hasplugin("pytest_menzil")
            assert {name.split(".")[0] for name in sys.modules} & {"menzil", "psycopg"} == set()
        """
    )
    project.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_a_user_without_the_right_to_create_databases_is_told_so(server: Embedded) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        conn.execute("create role poor login password 'poor'")
        poor = Server(make_conninfo(server.dsn, user="poor", password="poor"), "poor")
        with pytest.raises(UsageError, match="may not create databases"), poor.database(None):
            pass
        poor.close()
        conn.execute("drop role poor")


def test_a_database_of_the_project_is_that_of_the_test(project: pytest.Pytester, db: str) -> None:
    project.makeconftest(f"import pytest\n\n@pytest.fixture\ndef menzil_db():\n    return {db!r}\n")
    project.makepyfile(
        """
        import os

        import psycopg
        import pytest

        from menzil.testing import assert_sent, refute_sent


        @pytest.mark.menzil(channels=["letters"])
        def test_the_fixture_alone_is_enough(menzil_db):
            with psycopg.connect(menzil_db) as conn:
                conn.execute("select menzil.send('letters', '{}')")
            assert_sent("letters", count=1)
            assert os.environ["MENZIL_DSN"] == menzil_db


        def test_it_is_given_back():
            assert "MENZIL_DSN" not in os.environ
            with pytest.raises(Exception, match="does not know the database"):
                refute_sent("letters")


        def test_a_client_uses_it(mq):
            mq.send("letters", {})
            assert_sent("letters", count=2)
        """
    )
    project.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:randomly").assert_outcomes(passed=3)
