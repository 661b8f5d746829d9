"""What we show people runs: the examples, the README's tour, the tutorial; and prints what we say it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from menzil.embedded.binaries import find

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
TUTORIAL = (ROOT / "docs" / "tutorials" / "first-message.md").read_text()

PRINTS = {
    "outbox.py": "attempt 1 {'order': 1}\ncompleted\n",
    "consumer.py": (
        "small.png: settled\nlarge.png: retry\nbroken.png: dead\nlarge.png: settled\n"
        "dead letter: broken.png [PERMANENT] not a picture\n"
    ),
    "long_task.py": (
        "catalogue, page 1 of 3\nlogo, page 1 of 1\nposter, page 1 of 1\n"
        "catalogue, page 2 of 3\ncatalogue, page 3 of 3\n"
    ),
    "worker.py": (
        "mail to anna, attempt 1\nmail to bert, attempt 2\nbooked order 42\nmail to dora, attempt 1\ndelivered 2\n"
    ),
    "fastapi_shop.py": (
        '422 There is no such order.\n200 {"order":"accepted"}\nbilling {\'order\': 42}\nconsole 200\n'
    ),
    "sqlalchemy_outbox.py": "ada pending\nbert pending\n",
    "webhooks.py": (
        'attempt 1: {"product": "tea"}, verified, answered 503\n'
        'attempt 2: {"product": "tea"}, verified, answered 204\n'
        "completed after 2 attempts\n"
    ),
}


def run_example(name: str, dsn: str) -> str:
    command = [sys.executable, str(ROOT / "examples" / name)]
    environ = {**os.environ, "MENZIL_DSN": dsn}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def psql(dsn: str, *arguments: str, script: str | None = None) -> str:
    """What psql prints, without the spaces it fills columns with."""
    program = find().bin / "psql"
    if not program.exists():
        pytest.skip("there is no psql beside these binaries")
    command = [str(program), dsn, "-X", "-q", "-v", "ON_ERROR_STOP=1", *arguments]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return bare(done.stdout)


def bare(text: str) -> str:
    """With one space for many, and with every time the same: no two runs have the same, nor of the same length."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*\+00", "TIME", text)
    return "\n".join(re.sub(r" +", " ", re.sub(r"-{10,}", "--", line)).rstrip() for line in text.strip().splitlines())


def test_every_example_is_run_here() -> None:
    # tests/spark/test_tutorial.py runs the one that needs Spark, tests/acceptance/test_newcomer.py the one that waits.
    elsewhere = {"spark_tutorial.py", "receiver.py"}
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == PRINTS.keys() | elsewhere


@pytest.mark.parametrize("name", PRINTS)
def test_an_example_prints_what_it_should_and_can_be_run_again(name: str, db: str) -> None:
    assert run_example(name, db) == PRINTS[name]
    again = run_example(name, db)
    assert len(again.splitlines()) == len(PRINTS[name].splitlines())


def test_the_readme_shows_the_outbox_as_it_is_and_what_it_prints() -> None:
    program = (ROOT / "examples" / "outbox.py").read_text().split('"""\n\n', 1)[1].rstrip()
    assert f"```python\n{program}\n```\n\n```\n{PRINTS['outbox.py']}```" in README


def test_the_tour_in_psql_shows_what_psql_answers(db: str) -> None:
    said = psql(db, "-a", "-f", str(ROOT / "examples" / "tour.sql"))
    shown = said.partition("\n")[2]  # the first line says how to run it
    assert shown in bare((ROOT / "docs" / "tutorials" / "sql-tour.md").read_text())


def test_the_tutorial_runs_as_it_is_written(db: str) -> None:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks].count("sql") >= 8
    answer = ""
    for kind, text in blocks:
        if kind == "sql":
            answer = psql(db, "-P", "footer=off", script=text)
        elif not kind:
            assert answer.endswith(bare(text))


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md"])
def test_every_link_of_the_front_door_leads_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_page_of_figures_has_a_place_for_the_long_table() -> None:
    page = (ROOT / "docs" / "explanation" / "measured.md").read_text()
    assert re.search(r"<!-- figures -->.*<!-- /figures -->", page, re.DOTALL)


def test_the_readme_can_be_read_in_one_sitting() -> None:
    shown = [line for line in README.splitlines() if not line.startswith("<!-- ")]
    assert len(shown) <= 275
