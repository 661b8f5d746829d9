"""A lake without its database: `metadata/version-hint.text` names the metadata file that counts.

The hint is written after each commit, and before anything leaves the database, so a process that is killed in between
leaves it one commit behind: a reader of the lake alone then sees a whole state of a moment before. A program that goes
on from there, as register does, must not take it for the newest: a metadata file with a later number forbids that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from pyarrow import ArrowException
from pyarrow.fs import FileSelector
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import StaticTable

from menzil.spark.lake.catalog import location
from menzil.spark.lake.errors import LakeDamagedError, LakeError
from menzil.spark.lake.place import local

if TYPE_CHECKING:
    from pyiceberg.table import Table

FILE = "version-hint.text"
_ENDING = ".metadata.json"
_NUMBERED = re.compile(r"v?(\d+)(?:-[0-9a-f-]+)?(?:\.gz)?\.metadata\.json")


def write_hint(table: Table) -> None:
    """Name the metadata of this table, unless the hint already names a later one."""
    root, _, name = table.metadata_location.rpartition("/")
    path = f"{root}/{FILE}"
    known = _read(table.io, path)
    if known is None or _number(known + _ENDING) < _number(name):
        _put(table.io, path, name.removesuffix(_ENDING).encode())


def _put(io: FileIO, path: str, text: bytes) -> None:
    """No reader sees half of it: object stores show what is whole, and here a rename does that."""
    here = local(path)
    target = path if here is None else f"{path}.{uuid4().hex}"
    with io.new_output(target).create(overwrite=True) as stream:
        stream.write(text)
    if here is not None:
        Path(f"{here}{target[len(path) :]}").replace(here)


def hinted(table: str, properties: Mapping[str, str] | None = None) -> str | None:
    """The metadata file that the hint of the table at this URI names; None where there is none."""
    root = f"{table}/metadata"
    known = _read(load_file_io(dict(properties or {}), root), f"{root}/{FILE}")
    return None if known is None else f"{root}/{known}{_ENDING}"


def open_alone(lake: str, name: str, properties: Mapping[str, str] | None = None) -> StaticTable:
    """A table of a lake, read only, without any catalog. `properties` say how to reach an object store."""
    return StaticTable.from_metadata(latest(location(lake, name), properties), dict(properties or {}))


def latest(table: str, properties: Mapping[str, str] | None = None) -> str:
    """The metadata file that the hint of the table at this URI names; refuse it if a later one is there."""
    root = f"{table}/metadata"
    io = load_file_io(dict(properties or {}), root)
    known = _read(io, f"{root}/{FILE}")
    if known is None:
        hint = f"a lake of an earlier release is taken over with `menzil lake adopt`; else look for {FILE}"
        raise LakeError(f"There is no table of a lake at {table}: it has no metadata/{FILE}.", hint=hint)
    chosen = known + _ENDING
    later = [other for other in _names(io, root) if _number(other) > _number(chosen)]
    if later:
        sentence = f"{root}/{FILE} names {chosen}, but {max(later, key=_number)} is later, and may count or not."
        hint = "the database knows: open the lake with --dsn once, or register that file with --metadata"
        raise LakeDamagedError(sentence, hint=hint)
    return f"{root}/{chosen}"


def _read(io: FileIO, path: str) -> str | None:
    try:
        with io.new_input(path).open() as stream:
            text = bytes(stream.read()).decode("utf-8", "replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if text.isdecimal():
        text = f"v{text}"  # as Hadoop's catalog writes it
    if _NUMBERED.fullmatch(text.removesuffix(_ENDING) + _ENDING) is None:
        raise LakeDamagedError(f"{path} names no metadata file.", hint="register the table with --metadata")
    return text.removesuffix(_ENDING)


def _number(name: str) -> int:
    found = _NUMBERED.fullmatch(name)
    return int(found[1]) if found else -1


def _names(io: FileIO, root: str) -> list[str]:
    """Names of metadata files. Only pyarrow's file systems can list."""
    if not isinstance(io, PyArrowFileIO):
        return []
    scheme, netloc, path = PyArrowFileIO.parse_location(root, io.properties)
    try:
        found = io.fs_by_scheme(scheme, netloc).get_file_info(FileSelector(path))
    except (OSError, ArrowException) as error:
        raise LakeError(f"{root} cannot be listed: {error}.") from error
    return [info.base_name for info in found if _NUMBERED.fullmatch(info.base_name)]
