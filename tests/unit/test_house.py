"""The house keeps its own rules: the lock, the make targets, the size of files, the pages of the documentation."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from bench import measured
from menzil.install.script import script
from menzil.install.tree import load
from menzil.model.errors import BY_SQLSTATE

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if line]
MAKEFILE = (ROOT / "Makefile").read_text()
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def locked_versions() -> dict[str, str]:
    return dict(line.split(" ;")[0].split("==") for line in LOCK)


def kept_extras() -> set[str]:
    """The extras that a fresh clone installs: dev, and those it names."""
    named = [Requirement(entry) for entry in PROJECT["optional-dependencies"]["dev"]]
    return {"dev"}.union(*(requirement.extras for requirement in named if requirement.name == "menzil"))


def targets() -> list[str]:
    phony = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)
    assert phony is not None
    return phony[1].split()


def test_the_lock_holds_names_and_versions_and_nothing_else() -> None:
    pinned = re.compile(
        r"[a-z0-9][a-z0-9-]*==[0-9][0-9a-z.]*( ; MARK( and MARK)*)?".replace("MARK", "[a-z_]+ [!=<>]+ '[A-Za-z0-9.]+'")
    )
    assert [line for line in LOCK if not pinned.fullmatch(line)] == []


@pytest.mark.parametrize("extra", [None, *sorted(kept_extras())])
def test_every_fresh_clone_gets_what_the_project_asks_for(extra: str | None) -> None:
    asked = PROJECT["dependencies"] if extra is None else PROJECT["optional-dependencies"][extra]
    locked = locked_versions()
    for requirement in map(Requirement, asked):
        if requirement.name != "menzil":
            assert requirement.specifier.contains(locked[requirement.name]), requirement


#: Extras that another package of the same extra imports, not menzil itself.
IMPORTED_BY_OTHERS = {"pandas": "PySpark asks for it before it hands out Arrow batches"}

#: Packages whose module has another name.
IMPORTED_AS = {"opentelemetry-api": "opentelemetry"}


def test_every_extra_has_code_that_imports_it() -> None:
    source = "".join(file.read_text() for file in (ROOT / "src").rglob("*.py"))
    extras = {name: entries for name, entries in PROJECT["optional-dependencies"].items() if name != "dev"}
    names = {Requirement(entry).name for entries in extras.values() for entry in entries} - IMPORTED_BY_OTHERS.keys()
    modules = {IMPORTED_AS.get(name, name.replace("-", "_")) for name in names}
    assert {name for name in modules if not re.search(rf"(?:import|from) {name}\b|\"{name}\"", source)} == set()


def rooms() -> set[str]:
    """The packages and modules of the house; sql holds no Python."""
    found = {path.parent.name for path in (ROOT / "src" / "menzil").glob("*/__init__.py")}
    return found | {path.stem for path in (ROOT / "src" / "menzil").glob("*.py") if not path.stem.startswith("_")}


def test_the_plan_and_the_pages_name_the_rooms_there_are() -> None:
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    assert {room for layer in layers for room in re.findall(r"\w+", layer)} == rooms()
    table = (ROOT / "CONTRIBUTING.md").read_text().split("## Rooms")[1].split("## ")[0]
    assert {name.removesuffix(".py") for name in re.findall(r"`([a-z_]+)(?:/|\.py)`", table)} == rooms() | {"sql"}
    floors = (ROOT / "docs/explanation/rooms.md").read_text().split("## The floors")[1].split("\n\n")[2]
    named = {room for line in floors.splitlines()[2:] for room in re.findall(r"\w+", line.split("|")[2].split(":")[0])}
    assert named == rooms() | {"sql"}


def test_the_newest_part_of_the_changelog_is_the_version_of_the_package() -> None:
    parts = re.findall(r"^## \[(.+?)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert parts[0][0] == PROJECT["version"]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for _, date in parts[1:]), "only the newest may be unreleased"


def test_make_lists_every_target() -> None:
    # A make that runs these tests hands its flags down, and they would change what this one prints.
    quiet = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    listing = subprocess.run(["make", "-C", str(ROOT)], capture_output=True, text=True, check=True, env=quiet).stdout
    assert re.findall(r"^  make ([a-z-]+) +\S", listing, re.MULTILINE) == targets()


def test_every_target_makes_its_environment_first() -> None:
    needs = dict(re.findall(r"^([a-z-]+):[ ]?([a-z]*) ##", MAKEFILE, re.MULTILINE))
    assert needs.keys() == set(targets())
    for target in needs.keys() - {"help", "clean", "setup"}:
        assert needs[target] == "setup" or needs[needs[target]] == "setup", target


def test_the_check_before_a_merge_is_the_test_command() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().splitlines()[-1] == "make test"


def test_the_wheel_carries_the_engine(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        carried = set(file.namelist())
        file.extractall(tmp_path / "installed")
    own = {file.relative_to(ROOT / "src").as_posix() for file in (ROOT / "src" / "menzil").glob("*/sql/*.sql")}
    assert own | {"menzil/py.typed", "menzil/sql/roles.sql"} <= carried
    # The wheel joins the files of a folder. Equal paths, texts and order give an equal schema.
    sql = tmp_path / "installed" / "menzil" / "sql"
    assert not (sql / "functions").exists()
    assert load(sql) == load(ROOT / "src" / "menzil" / "sql")
    assert script("install", root=sql) == script("install", root=ROOT / "src" / "menzil" / "sql")
    assert [
        name for name in carried if not name.startswith(("menzil/", "menzil-", "pyspark_menzil/", "pytest_menzil/"))
    ] == []


def spoken(file: Path) -> str:
    """What a source file may say to a user: its texts, without comments and docstrings."""
    if file.suffix == ".sql":
        return re.sub("--.*", "", file.read_text())
    tree = ast.parse(file.read_text())
    bodies = (getattr(node, "body", None) for node in ast.walk(tree))
    first = (body[0] for body in bodies if body and isinstance(body, list))
    docstrings = {id(node.value) for node in first if isinstance(node, ast.Expr)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings)
    return "\n".join(node.value for node in texts if isinstance(node.value, str))


def test_no_hint_sends_a_user_to_a_page_that_a_wheel_does_not_carry() -> None:
    files = [file for file in (ROOT / "src").rglob("*") if file.suffix in (".py", ".sql")]
    named = {
        str(file.relative_to(ROOT)): re.findall(r"docs/[\w/.-]+|\w+\.md\b|examples/", spoken(file)) for file in files
    }
    assert {file: pages for file, pages in named.items() if pages} == {}
    assert "docs/reference" in (ROOT / "README.md").read_text(), "a page has moved, and this test looks for nothing"


def test_no_source_file_is_longer_than_400_lines() -> None:
    files = [file for file in (ROOT / "src").rglob("*") if file.suffix in (".py", ".sql")]
    lengths = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in files}
    assert lengths
    assert {file: length for file, length in lengths.items() if length > 400} == {}


def test_no_module_hides_behind_a_name_that_says_nothing() -> None:
    names = {"utils.py", "util.py", "common.py", "helpers.py", "manager.py", "misc.py"}
    assert [file for file in (ROOT / "src").rglob("*.py") if file.name in names] == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_index_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.name != "README.md"]
    assert [page for page in pages if f"({page})" not in index] == []


@pytest.mark.parametrize("mark", ["peers", "load"])
def test_the_page_of_figures_shows_the_table_that_was_measured(
    mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "bench" / "results" / f"{mark}.md").read_text()
    text, copy = measured.PAGE.read_text(), tmp_path / "measured.md"
    copy.write_text(text)
    monkeypatch.setattr(measured, "PAGE", copy)
    measured.show(mark, page)
    assert copy.read_text() == text
    measured.show(mark, page.replace("×", "?"))
    assert copy.read_text() != text


def test_the_reference_names_every_error_code_with_its_class() -> None:
    page = (ROOT / "docs" / "reference" / "error-codes.md").read_text()
    listed = dict(re.findall(r"^\| ([0-9A-Z]{5}) \|.*\| `(\w+)` \|$", page, re.MULTILINE))
    assert listed == {state: kind.__name__ for state, kind in BY_SQLSTATE.items()}


def test_hooks_before_a_commit_run_what_lint_runs() -> None:
    hooks = re.findall(r"entry: (\.venv/bin/.+)", (ROOT / ".pre-commit-config.yaml").read_text())
    lint = re.findall(r"^\t\$\(BIN\)/(.+)$", MAKEFILE.split("\nlint: ")[1].split("\n\n")[0], re.MULTILINE)

    def tool(words: str) -> str:
        return (
            words.removeprefix(".venv/bin/").replace(" --force-exclude", "").replace(" --check", "").removesuffix(" .")
        )

    assert sorted(map(tool, hooks)) == sorted(map(tool, lint))
