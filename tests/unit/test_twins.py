"""The sync client is what tools/twins.py writes from the async one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools import twins

ASYNC = '''class AsyncThings(AsyncClient):
    """Await them: AsyncThings."""

    async def get(self, conn: AsyncBorrowed | None) -> int:
        # We await it, async.
        async with self.lock, self.other:
            return await (self._run(1) if await self.ready() else self._run("await"))
'''
SYNC = '''class Things(Client):
    """Await them: AsyncThings."""

    def get(self, conn: Borrowed | None) -> int:
        # We await it, async.
        with self.lock, self.other:
            return (self._run(1) if self.ready() else self._run("await"))
'''


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the client's folder inside a copy of the project, as far as the tool looks at it."""
    place = tmp_path / "src" / "menzil" / "client"
    shutil.copytree(twins.CLIENT, place)
    (place.parent / "__init__.py").touch()  # ruff tells a package of our own by it
    shutil.copy(twins.ROOT / "pyproject.toml", tmp_path)
    monkeypatch.setattr(twins, "CLIENT", place)
    monkeypatch.setattr(twins, "ROOT", tmp_path)
    return place


def test_code_becomes_sync_and_words_of_people_stay() -> None:
    assert twins.translate(ASYNC) == SYNC


def test_sync_client_is_what_the_tool_writes() -> None:
    assert twins.main(["--check"]) == 0


@pytest.mark.parametrize("what", ["changed", "missing", "stray"])
def test_a_twin_that_differs_is_named_and_written_anew(
    client: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    good = (client / "sync" / "sending.py").read_text()
    name = "stray.py" if what == "stray" else "sending.py"
    if what == "missing":
        (client / "sync" / name).unlink()
    else:
        (client / "sync" / name).write_text(f"{good}\n# by hand\n")
    assert twins.main(["--check"]) == 1
    told = capsys.readouterr().out
    assert f"src/menzil/client/sync/{name} is not what tools/twins.py writes" in told
    assert told.count("\n") == 1
    assert twins.main([]) == 0
    assert (client / "sync" / "sending.py").read_text() == good
    assert not (client / "sync" / "stray.py").exists()
    assert twins.main(["--check"]) == 0


def test_a_misspelled_option_writes_nothing(client: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (client / "sync" / "sending.py").write_text("")
    assert twins.main(["--chek"]) == 2
    assert "usage" in capsys.readouterr().err
    assert (client / "sync" / "sending.py").read_text() == ""
