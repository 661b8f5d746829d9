"""menzil.contrib.django on a real Django: 5.2 with the backport in this environment, 6 where there is a Python with it.

One process for each Django runs `manage.py test`: the tests of the example, and those of `behaviours`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from menzil.embedded import Embedded
from menzil.install.tree import latest_version

ROOT = Path(__file__).resolve().parents[3]
SHOP = ROOT / "examples" / "django_shop"
PAGE = (ROOT / "docs" / "how-to" / "use-django.md").read_text()
#: Where a Python with Django 6 may be, besides MENZIL_TEST_DJANGO6.
PLACES = (
    *(str(ROOT / name / "bin" / "python") for name in ("build/django6", ".venv-django6")),
    "python3.12",
    "python3.13",
    "python3.14",
)


@cache
def django_6() -> str | None:
    """A Python that has Django 6, psycopg and what menzil needs."""
    for python in filter(None, (os.environ.get("MENZIL_TEST_DJANGO6"), *PLACES)):
        if shutil.which(python):
            asked = "import click, django, httptools, psycopg_pool; print(django.VERSION[0])"
            done = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
            if done.stdout.strip() == "6":
                return python
    return None


def run(python: str, tmp_path: Path, dsn: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run manage.py of the shop with this tree's menzil, which says its version as an installed one does."""
    note = tmp_path / f"menzil-{metadata.version('menzil')}.dist-info" / "METADATA"
    note.parent.mkdir(exist_ok=True)
    note.write_text(f"Metadata-Version: 2.1\nName: menzil\nVersion: {metadata.version('menzil')}\n")
    path = os.pathsep.join(map(str, (ROOT / "src", Path(__file__).parent, SHOP, tmp_path)))
    env = {**os.environ, "PYTHONPATH": path, "SHOP_DSN": dsn, "DJANGO_SETTINGS_MODULE": "behaviours_settings"}
    env.pop("MENZIL_DSN", None)
    return subprocess.run(
        [python, "manage.py", *words], cwd=SHOP, env=env, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("line", ["5.2", "6"])
def test_the_shop_and_every_behaviour_work_on_this_django(line: str, server: Embedded, tmp_path: Path) -> None:
    python = sys.executable if line == "5.2" else django_6()
    if python is None:
        pytest.skip("no Python with Django 6: set MENZIL_TEST_DJANGO6 to one that has it")
    dsn = make_conninfo(server.dsn, dbname=f"shop_{line[0]}")
    done = run(python, tmp_path, dsn, "test", "--noinput", "shop", "behaviours")
    ran = re.search(r"^Ran (\d+) tests", done.stderr, re.MULTILINE)
    assert done.returncode == 0, done.stderr
    assert ran is not None
    assert int(ran[1]) >= 30, "the tests were not found"
    assert (re.findall(r"skipped=(\d+)", done.stderr) or ["0"]) == ["3" if line == "6" else "0"]


@pytest.mark.slow
@pytest.mark.parametrize("line", ["5.2", "6"])
def test_manage_check_finds_misspelled_options_of_tasks(line: str, server: Embedded, tmp_path: Path) -> None:
    """In a process of its own: the checks of Django 6 are only run if they are imported."""
    python = sys.executable if line == "5.2" else django_6()
    if python is None:
        pytest.skip("no Python with Django 6: set MENZIL_TEST_DJANGO6 to one that has it")
    text = "from behaviours_settings import *\n\nTASKS['default'].setdefault('OPTIONS', {})['max_retrys'] = 3\n"
    (tmp_path / "misspelled_settings.py").write_text(text)
    done = run(python, tmp_path, server.dsn, "check", "--settings", "misspelled_settings")
    assert done.returncode == 1, done.stdout
    assert "TASKS['default'] has the unknown option 'max_retrys'." in done.stderr
    assert "Did you mean 'max_retries'?" in done.stderr


def test_the_page_shows_the_files_of_the_shop() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    files = [re.sub(r"\s+", " ", path.read_text()) for path in sorted(SHOP.rglob("*.py"))]
    assert len(blocks) >= 5
    for block in blocks:
        pieces = [re.sub(r"\s+", " ", piece).strip() for piece in block.split("\n\n\n")]
        assert any(all(piece in text for piece in pieces) for text in files), block


def test_the_newest_schema_has_a_migration_of_django() -> None:
    """Without one `manage.py migrate` would only apply functions that need tables which are not there."""
    places = (ROOT / "src/menzil/contrib/django/migrations").glob("*_schema_*.py")
    versions = sorted(int(place.stem.rpartition("_")[2]) for place in places)
    assert versions[-1] == latest_version()
    texts = [place.read_text() for place in (ROOT / "src/menzil/contrib/django/migrations").glob("*_schema_*.py")]
    assert all("atomic = False" in text for text in texts)
