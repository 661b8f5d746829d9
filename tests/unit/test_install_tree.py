"""Reading the SQL tree: order, numbers and checksums; and that the package's own tree keeps the rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from menzil.install.errors import InstallError
from menzil.install.tree import PACKAGE_SQL, latest_version, load
from menzil.model.version import SCHEMA_VERSION_KNOWN


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_sql", ".sql")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return root


def test_code_comes_sorted_functions_before_views(tmp_path):
    files = {"views__a_sql": "", "functions__b_sql": "", "functions__a__z_sql": "", "roles_sql": ""}
    tree = load(write(tmp_path, **files))
    assert [source.path for source in tree.code] == ["functions/a/z.sql", "functions/b.sql", "views/a.sql"]
    assert tree.roles is not None
    assert tree.version == 0


def test_one_file_in_place_of_a_folder_gives_the_same_tree(tmp_path):
    folders = write(
        tmp_path / "folders", functions__a__z_sql="select 1;\n", functions__b_sql="--\n", views__a_sql="--\n"
    )
    whole = "-- menzil file: functions/a/z.sql\nselect 1;\n-- menzil file: functions/b.sql\n--\n"
    files = write(tmp_path / "files", functions_sql=whole, views_sql="-- menzil file: views/a.sql\n--\n")
    assert load(files) == load(folders)
    assert load(files).code_checksum == load(folders).code_checksum


@pytest.mark.parametrize(
    "files",
    [
        {"functions_sql": ""},
        {"functions_sql": "select 1;\n"},
        {"functions_sql": "select 1;\n-- menzil file: functions/a.sql\n"},
        {"functions_sql": "-- menzil file: functions/a.sql\n--\n", "functions__a_sql": "--\n"},
    ],
    ids=["empty", "without a name", "text before the first name", "beside its folder"],
)
def test_a_joined_file_that_cannot_be_trusted_is_refused(tmp_path, files):
    with pytest.raises(InstallError):
        load(write(tmp_path, **files))


def test_line_ends_do_not_change_a_checksum(tmp_path):
    unix = load(write(tmp_path / "unix", migrations__0001_a_sql="select 1;\nselect 2;\n", functions__a_sql="--\n"))
    windows = load(
        write(tmp_path / "windows", migrations__0001_a_sql="select 1;\r\nselect 2;\r\n", functions__a_sql="--\r\n")
    )
    assert unix.migrations == windows.migrations
    assert unix.code_checksum == windows.code_checksum


@pytest.mark.parametrize("change", [{"functions__a_sql": "--"}, {"views__b_sql": ""}, {"roles_sql": "--"}])
def test_code_checksum_covers_functions_views_and_roles(tmp_path, change):
    before = load(write(tmp_path, functions__a_sql="", views__a_sql="", roles_sql="")).code_checksum
    assert load(write(tmp_path, **change)).code_checksum != before


@pytest.mark.parametrize(
    "names", [["0002_a"], ["0001_a", "0001_b"], ["0001_a", "0003_b"], ["1_a"], ["0001_A"], ["first"]]
)
def test_migrations_without_a_clear_order_are_refused(tmp_path, names):
    for name in names:
        write(tmp_path, **{f"migrations__{name}_sql": ""})
    with pytest.raises(InstallError):
        load(tmp_path)
    with pytest.raises(InstallError):
        latest_version(tmp_path)


def test_package_without_its_sql_says_so(tmp_path):
    with pytest.raises(InstallError, match="no SQL"):
        load(tmp_path / "nowhere")


def test_client_and_migrations_agree_on_the_schema_version():
    assert load().version == latest_version() == SCHEMA_VERSION_KNOWN


@pytest.mark.parametrize(
    "path", sorted(PACKAGE_SQL.rglob("*.sql")), ids=lambda path: path.relative_to(PACKAGE_SQL).as_posix()
)
def test_sql_file_can_be_installed_anywhere(path):
    text = path.read_text(encoding="utf-8")
    # A database in another encoding may not know our quotation marks.
    assert text.isascii()
    # Every file becomes a part of a larger transaction. A procedure may commit when it is called, not when it is made.
    made = re.sub(r"create or replace procedure .*?\$(\w*)\$.*?\$\1\$", "", text, flags=re.IGNORECASE | re.DOTALL)
    assert not re.search(r"^\s*(begin|commit|rollback|start transaction)\s*;", made, re.IGNORECASE | re.MULTILINE)
    assert not re.search(r"^\\", text, re.MULTILINE), "psql commands need psql"
    assert text.endswith("\n")
