"""Which files to look at when the rows of a month are not those that were exported, although every file is whole.

The fingerprint that proves rows is that of a month. Three things tell files apart: the fingerprint that the footer of
each has, the bounds that its manifest gives of it, and the snapshot that added it, which names the run of menzil that
made it. Files of earlier versions have no fingerprint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.types import PrimitiveType

from menzil.spark.lake.fingerprint import ROW_FIELDS, TRY_FIELDS, from_task
from menzil.spark.lake.place import file_system, inside, shown
from menzil.spark.lake.table import Lake
from menzil.spark.lake.write import difference
from menzil.spark.parquet.hash import of_file
from menzil.spark.parquet.proof import in_footer

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

#: What every snapshot of ours says in its summary.
OURS = ("menzil.run", "menzil.compact", "menzil.adopted")


def suspects(lake: Lake, name: str, files: Sequence[DataFile]) -> list[str]:
    """A sentence for each file that is not as its manifest says, or that another program added; driver, few files."""
    table = lake.table(name)
    if table is None:
        return []
    foreign = {snapshot.snapshot_id: snapshot for snapshot in table.snapshots() if not _is_ours(snapshot)}
    added = _added(table) if foreign else {}
    told = []
    for file in files:
        wrong = _bounds(lake, table, file) or _rows(lake, name, file)
        snapshot = foreign.get(added.get(file.file_path, -1))
        if wrong is not None:
            told.append(f"{shown(file.file_path)} {wrong}")
        elif snapshot is not None:
            about = f"{shown(file.file_path)} ({file.record_count:,} rows)"
            told.append(f"{about} was added by {_named(snapshot)}, which menzil did not make.")
    if not told:
        told = [f"Look at {_named(each)}, which menzil did not make." for each in foreign.values()]
    return told


def _is_ours(snapshot: Snapshot) -> bool:
    summary = snapshot.summary
    return summary is not None and any(key in summary.additional_properties for key in OURS)


def _named(snapshot: Snapshot) -> str:
    parent = f", after snapshot {snapshot.parent_snapshot_id}" if snapshot.parent_snapshot_id is not None else ""
    return f"snapshot {snapshot.snapshot_id}{parent}"


def _added(table: Table) -> dict[str, int]:
    """The snapshot that added each file of the current state."""
    current = table.current_snapshot()
    if current is None:
        return {}
    return {
        entry.data_file.file_path: entry.snapshot_id
        for manifest in current.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
        if entry.snapshot_id is not None
    }


def _rows(lake: Lake, name: str, file: DataFile) -> str | None:
    """What the rows of a file are otherwise than its footer says, as the end of a sentence."""
    with file_system(lake.root, lake.options).open_input_file(inside(file.file_path)) as stream:
        stored = pq.ParquetFile(stream)
        said = in_footer(stored)
        found = None if said is None else of_file(stored, ROW_FIELDS[name], TRY_FIELDS[name])
    if said is None or found is None or said == found:
        return None
    differs = difference(from_task(said), from_task(found))
    return f"holds other rows than were written to it: {differs}."


def _bounds(lake: Lake, table: Table, file: DataFile) -> str | None:
    """What the footer of a file says otherwise than its manifest, as the end of a sentence."""
    shape = table.schema()
    with file_system(lake.root, lake.options).open_input_file(inside(file.file_path)) as stream:
        footer = pq.ParquetFile(stream).metadata
    plan, ids = compute_statistics_plan(shape, table.metadata.properties), parquet_path_to_id_mapping(shape)
    found = data_file_statistics_from_parquet_metadata(footer, plan, ids).to_serialized_dict()
    for side in ("lower_bounds", "upper_bounds"):
        expected: dict[int, Any] = getattr(file, side) or {}
        seen: dict[int, Any] = found.get(side) or {}
        for number in sorted(expected):
            field = shape.find_field(number)
            assert isinstance(field.field_type, PrimitiveType), "bounds are of plain columns"
            if seen.get(number) != expected[number]:
                word = "lowest" if side == "lower_bounds" else "highest"
                texts = [
                    "missing" if value is None else repr(from_bytes(field.field_type, value))
                    for value in (seen.get(number), expected[number])
                ]
                differs = f"its {word} {field.name} is {texts[0]}, not {texts[1]}"
                return f"is another file than the one that was committed: {differs}."
    return None
