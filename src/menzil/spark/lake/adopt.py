"""A lake of menzil 0.1, with manifests of its own, becomes Iceberg tables. No byte of data is written again.

All that is left of the old format is here, for one release: manifests, taken in order, say which files count.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from pyarrow.fs import FileSelector

from menzil.spark.lake import commit, schema
from menzil.spark.lake.catalog import open_catalog
from menzil.spark.lake.cover import Part
from menzil.spark.lake.errors import LakeDamagedError, LakeError
from menzil.spark.lake.fingerprint import LEAN_EVENTS, Fingerprint, by_month, of_frame
from menzil.spark.lake.memory import Slice, cover, promoted_property, run_property, source_property, total
from menzil.spark.lake.place import address, file_system, inside, storage_options
from menzil.spark.lake.promote import Promoted, columns_of
from menzil.spark.lake.read import frame_of
from menzil.spark.lake.schema import EVENTS, MESSAGES
from menzil.spark.lake.table import Lake, through
from menzil.spark.lake.write import difference
from menzil.spark.parquet.write import Written

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
    from pyspark.sql import SparkSession

_MANIFEST = re.compile(r"\d{20}\.json")


@dataclass(frozen=True)
class AdoptReport:
    """What the tables have now; `repeated` says that it was done before."""

    files: int
    rows: int
    months: int
    repeated: bool


@dataclass
class _Old:
    """What all manifests say: month and size of each file by its path, and the rest."""

    files: dict[str, dict[str, tuple[str, int]]] = field(default_factory=lambda: {MESSAGES: {}, EVENTS: {}})
    slices: dict[str, list[Slice]] = field(default_factory=lambda: {MESSAGES: [], EVENTS: []})
    promoted: dict[str, Promoted] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)
    source: str | None = None

    def take(self, given: dict[str, Any]) -> None:
        if given["format"] != 1:
            raise LakeError(f"This lake has format {given['format']}, and only 1 can be adopted.")
        table = given["table"]
        for path in given["replaces"]:
            self.files[table].pop(path, None)
        self.files[table].update({file["path"]: (file["month"], file["size"]) for file in given["files"]})
        if given["slice"] is not None:
            about = given["slice"]
            parts = tuple(Part.from_json(part) for part in about["parts"])
            print_ = Fingerprint.from_json(about["fingerprint"])
            # Months may have been dropped after any of them.
            self.slices[table].append(Slice(about["run"], about["month"], parts, print_, True, table == EVENTS))
        for each in given["promoted"]:
            self.promoted[f"{each['event_type']}\x1f{each['field']}"] = Promoted(**each)
        if given["kind"] == "run":
            self.runs[given["run"]] = given["at"]
        self.source = given.get("source") or self.source


def adopt(spark: SparkSession, lake: str | os.PathLike[str], dsn: str, *, catalog: str | None = None) -> AdoptReport:
    """Read the manifests, prove every file, and commit exactly the files that count. Driver.

    Interrupted anywhere, it may be repeated: a table that is there already is left alone.
    """
    root = address(lake, spark)
    found = through(root, open_catalog(dsn, catalog))
    system = file_system(root, storage_options(dict(found.options)))
    place = f"{inside(root)}/_manifest"
    if system.get_file_info(place).type.name != "Directory":
        if found.tables:
            return AdoptReport(0, 0, 0, repeated=True)
        raise LakeError(f"There is no lake of menzil 0.1 in {root}.", hint="it would have a directory _manifest")
    old = _manifests(system, place)
    files = rows = 0
    for name in (EVENTS, MESSAGES):  # messages last: their table is what makes a lake one
        if old.slices[name] and not found.memory(name).labels:
            made = _table(spark, found, system, name, old)
            files, rows = files + len(made), rows + (sum(file.rows for file in made) if name == MESSAGES else 0)
    found.make(MESSAGES)
    system.move(place, f"{place}.adopted")
    return AdoptReport(files, rows, len({each.month for each in old.slices[MESSAGES]}), repeated=False)


def _manifests(system: FileSystem, place: str) -> _Old:
    old = _Old()
    names = sorted(info.base_name for info in system.get_file_info(FileSelector(place)))
    for name in names:
        if _MANIFEST.fullmatch(name):
            with system.open_input_file(f"{place}/{name}") as stream:
                old.take(json.loads(stream.read()))
    return old


def _table(spark: SparkSession, lake: Lake, system: FileSystem, name: str, old: _Old) -> list[Written]:
    promotions = list(old.promoted.values()) if name == MESSAGES else []
    columns = schema.with_promoted(schema.TABLES[name], columns_of(promotions).items())
    slices = _proved(spark, lake, name, old, columns)
    written = [
        _footer(system, inside(lake.root), name, path, *about) for path, about in sorted(old.files[name].items())
    ]
    tx = commit.begin(lake.make(name), columns)
    properties = cover(slices) | source_property(old.source) | promoted_property(promotions)
    if name == MESSAGES:
        for run, at in list(old.runs.items())[-1000:]:
            properties |= run_property(run, at)
    # These files have no field ids, so readers find their columns by name.
    properties["schema.name-mapping.default"] = commit.schema_of(tx).name_mapping.model_dump_json()
    added = commit.data_files(tx, written, lake.root)
    commit.finish(lake, name, tx, added, properties, summary={"menzil.adopted": datetime.now(UTC).isoformat()})
    return written


def _proved(spark: SparkSession, lake: Lake, name: str, old: _Old, columns: dict[str, str]) -> list[Slice]:
    """The slices, once every value of the files is what they say. Lines get the fingerprint that has all columns."""
    slices = old.slices[name]
    frame = frame_of(spark, lake, [f"{lake.root}/{path}" for path in old.files[name]], columns)
    if name == EVENTS:
        expected, found = total(slices), of_frame(frame, EVENTS, LEAN_EVENTS)
        _demand(expected, found, "the event log")
        parts = tuple(part for each in slices for part in each.parts)
        return [Slice(slices[-1].run, EVENTS, parts, of_frame(frame, EVENTS), True, True)]
    months = by_month(frame)
    for month in sorted({each.month for each in slices} | set(months)):
        mine = total(each for each in slices if each.month == month)
        _demand(mine, months.get(month, Fingerprint()), month)
    return slices


def _demand(expected: Fingerprint, found: Fingerprint, label: str) -> None:
    if expected != found:
        sentence = f"The files of {label} hold other rows than were exported: {difference(expected, found)}."
        raise LakeDamagedError(sentence, hint="nothing was adopted")


def _footer(system: FileSystem, root: str, name: str, path: str, month: str, size: int) -> Written:
    with system.open_input_file(f"{root}/{path}") as stream:
        file = pq.ParquetFile(stream)
        channels = file.read(columns=["channel"])["channel"].unique().to_pylist() if name == MESSAGES else [""]
        if len(channels) != 1:
            raise LakeDamagedError(f"{path} has rows of {len(channels)} channels.", hint="nothing was adopted")
        key = f"{month}/{channels[0]}" if name == MESSAGES else month
        return Written(key, f"{root}/{path}", size, file.metadata.num_rows, file.metadata)
