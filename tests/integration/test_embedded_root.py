"""The embedded PostgreSQL started by root, which PostgreSQL itself refuses to run as."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from menzil.embedded import EmbeddedError, account, binaries, places, publish
from menzil.embedded.control import status, stop
from tests.integration.embedded_room import Room, reaches

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has these worries")


@pytest.fixture
def room() -> Iterator[Room]:
    with Room() as made:
        yield made


@pytest.fixture
def closed(room: Room) -> Path:
    """A directory like /root: closed to everybody else."""
    path = room.path / "closed"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def shared(room: Room, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Instead of /var/lib/menzil."""
    path = room.path / "shared"
    for module in (places, publish):
        monkeypatch.setattr(module, "shared_places", lambda: [path])
    return path


def test_the_server_runs_as_a_system_account_that_owns_only_the_data(room: Room) -> None:
    with room.embedded() as server:
        lent = account.server_account()
        assert lent is not None
        assert Path(f"/proc/{server.pid}").stat().st_uid == lent.uid
        owners = {path.name: path.stat().st_uid for path in room.home().iterdir()}
        assert {name for name, uid in owners.items() if uid != 0} == {"data"}


def test_a_directory_the_account_cannot_reach_is_named_in_the_error(room: Room, closed: Path) -> None:
    with pytest.raises(EmbeddedError, match=str(closed)) as caught:
        room.embedded(closed / "deep" / "pg").start()
    assert "MENZIL_PG_DIR" in (caught.value.hint or "")
    assert list(closed.iterdir()) == []
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_without_a_choice_root_gets_a_directory_that_works(
    room: Room, closed: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MENZIL_PG_DIR", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(closed))
    assert places.data_dir() == shared / "pg"
    with room.embedded(places.data_dir()) as server:
        assert reaches(server.dsn)
    closed.chmod(0o711)  # an existing server is not forgotten because a nearer place opened up
    assert places.data_dir() == shared / "pg"


def test_root_keeps_out_of_the_home_of_another_user(room: Room, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = room.path / "somebody"
    home.mkdir(mode=0o755)
    os.chown(home, 12345, 12345)
    monkeypatch.delenv("MENZIL_PG_DIR", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(home))  # as sudo leaves it on many systems
    assert places.data_dir() == shared / "pg"


def test_a_home_that_belongs_to_somebody_else_is_refused(room: Room) -> None:
    os.chown(room.home(), 12345, 12345)
    for attempt in (room.embedded().start, lambda: status(room.data_dir), lambda: stop(room.data_dir)):
        with pytest.raises(EmbeddedError, match="belongs to another user"):
            attempt()
    os.chown(room.home(), 0, 0)


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> binaries.Binaries:
    """The binaries of this machine in a place that only root can read, as in a virtual environment below /root."""
    closed = tmp_path_factory.mktemp("closed")
    found = binaries.find()
    root, parts = publish._extent(found.bin)
    for part in parts:
        (closed / part).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", root / part, closed / part], check=True)
    return found._replace(bin=closed / found.bin.relative_to(root))


def test_hidden_binaries_are_copied_once_and_run(
    room: Room, hidden: binaries.Binaries, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGBIN", str(hidden.bin))
    with room.embedded() as server:
        assert reaches(server.dsn)
        assert Path(f"/proc/{server.pid}/exe").readlink().is_relative_to(shared)
    [copy] = (path for path in (shared / "postgresql").iterdir() if path.is_dir())
    for path in (shared, shared / "postgresql", copy, *copy.rglob("*")):
        there = path.lstat()
        assert there.st_uid == 0
        assert path.is_symlink() or not there.st_mode & 0o022
    made = copy.stat().st_mtime_ns
    publish.reachable(hidden, account.server_account())
    assert copy.stat().st_mtime_ns == made


def test_many_who_copy_at_once_end_up_with_one_copy(room: Room, hidden: binaries.Binaries, shared: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from menzil.embedded import account, binaries, places, publish;"
        "publish.shared_places = lambda: [Path(sys.argv[1])];"
        "print(publish.reachable(binaries.inspect(Path(sys.argv[2])), account.server_account()).bin)"
    )
    command = [sys.executable, "-c", script, str(shared), str(hidden.bin)]
    (shared / "postgresql").mkdir(parents=True)
    (shared / "postgresql" / "new-killed").mkdir()
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    answers = {process.communicate(timeout=60)[0].strip() for process in running}
    assert len(answers) == 1
    assert Path(answers.pop()).is_relative_to(shared)
    assert len([path for path in (shared / "postgresql").iterdir() if path.is_dir()]) == 1


def test_a_copy_that_others_could_have_changed_is_not_trusted(
    room: Room, hidden: binaries.Binaries, shared: Path
) -> None:
    lent = account.server_account()
    copy = publish.reachable(hidden, lent)
    target = shared / "postgresql" / copy.bin.relative_to(shared / "postgresql").parts[0]
    os.chown(target, 12345, 12345)
    with pytest.raises(EmbeddedError, match="another account"):
        publish.reachable(hidden, lent)
    os.chown(target, 0, 0)
    target.chmod(0o777)
    with pytest.raises(EmbeddedError, match="others may write"):
        publish.reachable(hidden, lent)
    target.chmod(0o755)
    assert publish.reachable(hidden, lent) == copy
