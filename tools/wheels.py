#!/usr/bin/env python3
"""Build what is published: the sdist, the wheel `menzil`, and a wheel for each part that only an extra needs.

A checkout builds one wheel with the whole house in it, and so does the sdist. Published, the console and the lake are
distributions of their own, so that a program which only sends does not download them: each is cut out of that one
wheel, and the extras of `menzil` then require them in the same version. zopfli, of the extra `dev`, packs the published
files: 3 % smaller than the best of zlib, in a minute. Emits a line per file on stdout.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

try:
    from zopfli.zlib import compress as zopfli
except ImportError:
    zopfli = None

ROOT = Path(__file__).resolve().parent.parent
#: Seconds that a build may take.
LONGEST = 600
_REQUIRED = re.compile(r"^Requires-Dist: (.+?); .*?extra == '([a-z-]+)'$", re.MULTILINE)


class Part(NamedTuple):
    """A distribution of its own. What `stays` is its door in `menzil`: there a missing part has a sentence."""

    name: str
    extra: str
    summary: str
    folders: tuple[str, ...]
    stays: tuple[str, ...]

    def has(self, name: str) -> bool:
        return name.startswith(self.folders) and name not in self.stays


PARTS = (
    Part(
        "menzil-console",
        "console",
        "The web console of menzil. Install it with the extra: pip install 'menzil[console]'",
        ("menzil/console/",),
        ("menzil/console/__init__.py",),
    ),
    Part(
        "menzil-lake",
        "lake",
        "The lake and the Spark jobs of menzil. Install it with an extra: pip install 'menzil[spark]'",
        ("menzil/spark/", "pyspark_menzil/"),
        ("menzil/spark/__init__.py", "menzil/spark/extra.py"),
    ),
)


class _Smallest:
    """Packs a file as zopfli does: what a compressor of zlib answers, all of it at the end."""

    def __init__(self) -> None:
        self._data = b""

    def compress(self, data: bytes) -> bytes:
        self._data += data
        return b""

    def flush(self) -> bytes:
        # zlib puts two bytes in front of the deflated data and four behind it.
        return bytes(zopfli(self._data, numiterations=5)[2:-4])


def build(into: Path, *, smallest: bool = False) -> tuple[Path, Path]:
    """Write sdist and wheels into a folder; return the wheel `menzil` and the sdist."""
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="menzil-wheel-") as folder:
        command = [sys.executable, "-m", "hatchling", "build", "-d", folder]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=LONGEST)
        (whole,), (made,) = Path(folder).glob("*.whl"), Path(folder).glob("*.tar.gz")
        sdist = into / made.name
        sdist.write_bytes(made.read_bytes())
        return split(whole, into, smallest=smallest)[0], sdist


def split(whole: Path, into: Path, *, smallest: bool = False) -> list[Path]:
    """Cut a wheel into `menzil` and its parts, in this order."""
    with zipfile.ZipFile(whole) as file:
        contents = {one.filename: file.read(one) for one in file.infolist()}
    version = whole.name.split("-")[1]
    house = f"menzil-{version}.dist-info"
    about = {name: text for name, text in contents.items() if name.startswith(f"{house}/")}
    inside = {name: text for name, text in contents.items() if name not in about}
    metadata = about[f"{house}/METADATA"].decode()
    made = []
    for part in PARTS:
        mine = {name: inside.pop(name) for name in list(inside) if part.has(name)}
        if not mine or not inside.keys() >= set(part.stays):
            raise ValueError(f"{whole.name} has nothing of {part.name}, or not what stays of it: {part.stays}.")
        texts = {
            "METADATA": _described(part, version, metadata).encode(),
            "WHEEL": about[f"{house}/WHEEL"],
            "licenses/LICENSE": about[f"{house}/licenses/LICENSE"],
        }
        made.append(_written(into / _name(part.name, version), mine, texts, smallest))
        metadata = _requiring(part, version, metadata)
    own = {name.removeprefix(f"{house}/"): text for name, text in about.items()}
    own["METADATA"] = metadata.encode()
    return [_written(into / _name("menzil", version), inside, own, smallest), *made]


def _name(distribution: str, version: str) -> str:
    return f"{distribution.replace('-', '_')}-{version}-py3-none-any.whl"


def _described(part: Part, version: str, metadata: str) -> str:
    """Metadata of a part: it requires the house it belongs to, in its own version."""
    kept = re.findall(r"^(?:Metadata-Version|License-Expression|License-File|Requires-Python): .+$", metadata, re.M)
    lines = [kept[0], f"Name: {part.name}", f"Version: {version}", f"Summary: {part.summary}", *kept[1:]]
    return "\n".join([*lines, f"Requires-Dist: menzil=={version}"]) + "\n"


def _requiring(part: Part, version: str, metadata: str) -> str:
    """Let each extra require the part that requires everything the part's own extra does: hatchling writes extras of
    extras out."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for requirement, extra in _REQUIRED.findall(metadata):
        wanted[extra].add(requirement)
    if part.extra not in wanted:
        raise ValueError(f"menzil has no extra {part.extra}, which {part.name} belongs to.")
    for extra, requirements in wanted.items():
        if requirements >= wanted[part.extra]:
            head = f"Provides-Extra: {extra}\n"
            metadata = metadata.replace(head, f"{head}Requires-Dist: {part.name}=={version}; extra == '{extra}'\n")
    return metadata


def _written(path: Path, inside: Mapping[str, bytes], about: Mapping[str, bytes], smallest: bool) -> Path:
    stem = path.name.removesuffix("-py3-none-any.whl")
    texts = {**inside, **{f"{stem}.dist-info/{key}": text for key, text in about.items() if key != "RECORD"}}
    texts[f"{stem}.dist-info/RECORD"] = _record(texts.items(), f"{stem}.dist-info/RECORD")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for key, text in texts.items():
            one = zipfile.ZipInfo(key, (2020, 2, 2, 0, 0, 0))  # as hatchling: equal sources give equal files
            one.external_attr, one.compress_type = 0o100644 << 16, zipfile.ZIP_DEFLATED
            with file.open(one, "w") as out:
                writing: Any = out
                # zipfile has no public way to name a compressor.
                writing._compressor = _Smallest() if smallest and zopfli else zlib.compressobj(9, zlib.DEFLATED, -15)
                out.write(text)
    return path


def _record(texts: Iterable[tuple[str, bytes]], own: str) -> bytes:
    lines = []
    for name, text in texts:
        digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(text)}\n")
    return "".join([*lines, f"{own},,\n"]).encode()


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("folder", type=Path, nargs="?", default=ROOT / "dist", help="where to write  [default: dist]")
    folder: Path = given.parse_args().folder
    if zopfli is None:
        print("zopfli is not installed, so the wheels are 3 % larger than they could be.", file=sys.stderr)
    build(folder, smallest=True)
    for path in sorted(folder.iterdir()):
        print(f"{path.stat().st_size / 1e6:.3f} MB  {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
