"""What is published is cut out of one wheel: no file is lost, extras bring the parts, a missing part has a sentence."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from tools import release_check, wheels

ROOT = Path(__file__).resolve().parents[2]


class Published:
    """The wheels of this tree, and an environment of those that are unpacked."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "whole")]
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        (self.whole,) = (folder / "whole").glob("*.whl")
        self.folder = folder / "dist"
        self.folder.mkdir()
        self.house, *self.parts = wheels.split(self.whole, self.folder)

    def run(self, place: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """Python with what is unpacked in a folder, before the menzil of this environment."""
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("MENZIL_", "PG"))}
        return subprocess.run(
            [sys.executable, *words], env={**environ, "PYTHONPATH": str(place)}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return Published(tmp_path_factory.mktemp("wheels"))


def unpack(place: Path, *files: Path) -> Path:
    for one in files:
        with zipfile.ZipFile(one) as file:
            assert file.testzip() is None
            file.extractall(place)
    return place


def texts(*files: Path) -> Counter[tuple[str, bytes]]:
    """Names and contents, besides those about a distribution."""
    found: Counter[tuple[str, bytes]] = Counter()
    for one in files:
        with zipfile.ZipFile(one) as file:
            found.update((name, file.read(name)) for name in file.namelist() if ".dist-info/" not in name)
    return found


def test_the_parts_have_every_file_of_the_whole_wheel_once(published: Published) -> None:
    assert texts(published.house, *published.parts) == texts(published.whole)
    assert [path.name.split("-")[0] for path in published.parts] == ["menzil_console", "menzil_lake"]


def test_the_wheel_leaves_the_console_and_spark_out(published: Published) -> None:
    inside = {name for name, _ in texts(published.house)}
    assert {name for name in inside if name.startswith("menzil/console/")} == {"menzil/console/__init__.py"}
    doors = {"menzil/spark/__init__.py", "menzil/spark/extra.py"}
    assert {name for name in inside if "spark" in name.split("/")[1]} == doors
    assert published.house.stat().st_size < published.whole.stat().st_size


def test_extras_require_the_part_in_the_same_version_and_the_part_requires_menzil(published: Published) -> None:
    version = published.house.name.split("-")[1]
    with zipfile.ZipFile(published.house) as file:
        said = file.read(f"menzil-{version}.dist-info/METADATA").decode()
    needed = set(re.findall(rf"^Requires-Dist: (menzil-\w+)=={re.escape(version)}; extra == '(\w+)'$", said, re.M))
    assert needed == {
        ("menzil-console", "console"), ("menzil-console", "dev"),
        ("menzil-lake", "lake"), ("menzil-lake", "spark"), ("menzil-lake", "dev"),
    }  # fmt: skip
    for part in published.parts:
        with zipfile.ZipFile(part) as file:
            (name,) = (one for one in file.namelist() if one.endswith("/METADATA"))
            assert f"\nRequires-Dist: menzil=={version}\n" in file.read(name).decode()


def test_pip_finds_every_file_in_record_as_it_is(published: Published, tmp_path: Path) -> None:
    wanted = ("menzil", "menzil-console", "menzil-lake")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(tmp_path)]
    files = [str(published.house), *map(str, published.parts)]
    subprocess.run([*command, *files], check=True, capture_output=True)
    program = """
import base64, hashlib, sys
from importlib.metadata import distribution
for name in sys.argv[1:]:
    for file in distribution(name).files:
        if file.hash is not None and ".." not in file.parts:
            digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_binary()).digest()).rstrip(b"=").decode()
            assert file.hash.value == digest, file
    print(name, len(distribution(name).files) > 50)
"""
    said = published.run(tmp_path, "-c", program, *wanted)
    assert said.stdout == "".join(f"{name} True\n" for name in wanted), said.stderr


def test_without_its_part_a_command_says_what_to_install(published: Published, tmp_path: Path) -> None:
    place = unpack(tmp_path, published.house)
    for words, extra in (
        (["console"], "console"),
        (["lake", "serve"], "console"),
        (["lake", "register", "somewhere"], "spark"),
        (["up"], "console"),
    ):
        said = published.run(place, "-m", "menzil", *words)
        assert said.returncode == 2, said
        assert f"pip install 'menzil[{extra}]'" in said.stderr
        assert "Traceback" not in said.stderr
    assert published.run(place, "-m", "menzil", "--help").returncode == 0
    assert published.run(place, "-c", "import menzil.testing, pytest_menzil").returncode == 0


def test_with_its_part_the_command_answers(published: Published, tmp_path: Path) -> None:
    place = unpack(tmp_path, published.house, *published.parts)
    said = published.run(place, "-m", "menzil", "console", "--new-token", "ada:viewer")
    assert said.returncode == 0, said.stderr
    assert ":viewer:" in said.stdout
    said = published.run(place, "-c", "import menzil.spark; print(menzil.spark.read.__module__, menzil.spark.__file__)")
    assert said.stdout.split() == ["menzil.spark.read", str(place / "menzil" / "spark" / "__init__.py")], said.stderr


def test_a_part_of_another_version_is_refused(published: Published, tmp_path: Path) -> None:
    """pip upgrades menzil and leaves its parts where no extra is named."""
    place = unpack(tmp_path, published.house, *published.parts)
    version = published.house.name.split("-")[1]
    for part in wheels.PARTS:
        about = place / f"{part.name.replace('-', '_')}-{version}.dist-info" / "METADATA"
        about.write_text(about.read_text().replace(f"\nVersion: {version}\n", "\nVersion: 0.0.1\n"))
    said = published.run(place, "-m", "menzil", "console")
    assert f"menzil is {version} and menzil-console is 0.0.1" in said.stderr
    assert f"Hint: pip install 'menzil[console]=={version}'" in said.stderr
    assert said.returncode == 2
    assert "menzil-lake is 0.0.1" in published.run(place, "-c", "import menzil.spark.lake").stderr


def test_a_wheel_that_lost_a_door_is_not_cut(published: Published, tmp_path: Path) -> None:
    broken = tmp_path / published.whole.name
    with zipfile.ZipFile(published.whole) as old, zipfile.ZipFile(broken, "w") as new:
        for name in old.namelist():
            if name != "menzil/spark/extra.py":
                new.writestr(name, old.read(name))
    with pytest.raises(ValueError, match="menzil-lake"):
        wheels.split(broken, tmp_path)


def test_the_check_of_a_release_refuses_a_file_that_two_wheels_have(published: Published, tmp_path: Path) -> None:
    for one in (published.house, *published.parts):
        (tmp_path / one.name).write_bytes(one.read_bytes())
    with zipfile.ZipFile(tmp_path / published.parts[0].name, "a") as file:
        file.writestr("menzil/__init__.py", "")
    with pytest.raises(release_check.FailedError, match="Two wheels have the same file"):
        release_check.look_into(tmp_path / published.house.name)


def test_the_smallest_wheels_have_the_same_files(tmp_path: Path) -> None:
    pytest.importorskip("zopfli", reason="zopfli is not installed")
    whole = tmp_path / "menzil-1-py3-none-any.whl"
    extras = "".join(f"Provides-Extra: {one}\nRequires-Dist: {one}; extra == '{one}'\n" for one in ("console", "lake"))
    with zipfile.ZipFile(whole, "w") as file:
        for name in ("METADATA", "WHEEL", "licenses/LICENSE", "RECORD"):
            file.writestr(f"menzil-1.dist-info/{name}", f"Metadata-Version: 2.4\n{extras}")
        for name in ("console/__init__", "console/app", "spark/__init__", "spark/extra", "spark/read", "model/a"):
            file.writestr(f"menzil/{name}.py", "".join(f"{name} = {number}\n" for number in range(500)))
    sizes = {}
    for smallest in (False, True):
        place = tmp_path / str(smallest)
        place.mkdir()
        made = wheels.split(whole, place, smallest=smallest)
        assert texts(*made) == texts(whole)
        sizes[smallest] = sum(path.stat().st_size for path in made)
    assert sizes[True] < sizes[False]
