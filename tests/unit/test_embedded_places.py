"""Where the embedded PostgreSQL lives, decided without starting it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from menzil.embedded import EmbeddedError, places
from menzil.embedded.home import SOCKET_PATH_LIMIT, Home, read, socket_dir, write


@pytest.fixture(autouse=True)
def no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MENZIL_PG_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def ordinary_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.mark.usefixtures("ordinary_user")
def test_an_ordinary_user_gets_the_data_directory_of_the_desktop_rules(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert places.data_dir() == tmp_path / ".local/share/menzil/pg"
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    assert places.data_dir() == tmp_path / ".local/share/menzil/pg"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert places.data_dir() == tmp_path / "xdg/menzil/pg"
    monkeypatch.setenv("MENZIL_PG_DIR", str(tmp_path / "chosen"))
    assert places.data_dir() == tmp_path / "chosen"
    assert places.data_dir(tmp_path / "given") == tmp_path / "given"
    assert list(tmp_path.iterdir()) == []


def test_an_empty_home_is_not_the_root_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    without = places._user_default()
    monkeypatch.setenv("HOME", "")
    assert places._user_default() == without
    assert without.parts[1] != ".local"


def test_two_names_of_one_directory_mean_one_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    assert places.data_dir("link/../real/pg") == places.data_dir(Path("link") / "pg") == tmp_path / "real" / "pg"


def test_a_line_break_in_the_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match="line break"):
        places.data_dir(tmp_path / "a\nb")


def test_the_socket_lies_in_the_data_directory_as_long_as_the_kernel_can_name_it() -> None:
    room = SOCKET_PATH_LIMIT - len("/.s.PGSQL.65535")
    longest = Path("/" + "d" * (room - 1))
    assert socket_dir(longest) == longest
    assert socket_dir(Path(f"{longest}d")).parent == Path("/tmp")
    assert socket_dir(Path("/" + "ü" * (room // 2))).parent == Path("/tmp")  # it counts bytes
    assert socket_dir(Path("/a,b")).parent == Path("/tmp")
    assert socket_dir(Path("/a,b")) != socket_dir(Path("/a,c"))


def test_directories_get_their_mode_whatever_the_umask_says(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        places.make_directories(tmp_path / "a" / "b", 0o711)
    finally:
        os.umask(old)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a", tmp_path / "a" / "b")] == [0o711] * 2


def test_a_home_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o775)
    with pytest.raises(EmbeddedError, match="Others may write"):
        places.check_ours(tmp_path)
    tmp_path.chmod(0o755)
    places.check_ours(tmp_path)


def test_homes_are_listed_newest_first(tmp_path: Path) -> None:
    for name in ("9", "18", "17", "backup", "17.old"):
        (tmp_path / name).mkdir()
    assert [home.path.name for home in places.homes(tmp_path)] == ["18", "17", "9"]
    assert places.homes(tmp_path / "missing") == []


def test_a_small_file_is_replaced_whole_and_never_through_a_link(tmp_path: Path) -> None:
    write(tmp_path / "file", "one")
    write(tmp_path / "file", "two")
    assert read(tmp_path / "file") == "two"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(OSError, match="link"):
        read(tmp_path / "link")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["file", "link"]


@pytest.mark.parametrize("text", ["", "12", "12\n/data\nnow", "no\nnumbers\nat\nall"])
def test_half_a_pid_file_says_nothing(tmp_path: Path, text: str) -> None:
    home = Home(tmp_path)
    home.data.mkdir()
    home.postmaster_pid.write_text(text)
    assert home.recorded() is None
    assert home.ready() is None
