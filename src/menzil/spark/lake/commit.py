"""Commits: files, and what the table remembers of them, in one step. All of it or nothing, and never blindly again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table, Transaction
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER_ID
from pyiceberg.table.update import AssertRefSnapshotId
from pyiceberg.transforms import BucketTransform
from pyiceberg.typedef import Record
from pyiceberg.types import StringType

from menzil.spark.lake import layout
from menzil.spark.lake.hint import write_hint
from menzil.spark.lake.schema import BUCKETS, iceberg_type

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

    from menzil.spark.lake.table import Lake
    from menzil.spark.parquet.write import Written

#: Another process committed first, and nothing of this commit counts.
CONFLICT = (CommitFailedException, ValidationException)


def begin(table: Table, columns: Mapping[str, str], *, many: bool = False) -> Transaction:
    """A transaction on the table as it was loaded, in which it has these columns. Files are written for its schema."""
    tx = table.transaction()
    known = {field.name for field in table.schema().fields}
    new = {name: kind for name, kind in columns.items() if name not in known}
    if new:
        with tx.update_schema() as update:
            for name, kind in new.items():
                update.add_column(name, iceberg_type(kind))
    if many and any(field.name == "channel" for field in table.spec().fields):
        with tx.update_spec() as spec:
            spec.remove_field("channel")
            spec.add_field("channel", BucketTransform(BUCKETS), "channel_bucket")
    return tx


def is_bucketed(tx: Transaction) -> bool:
    """Whether files are parted by a hash of the channel."""
    return any(field.name == "channel_bucket" for field in tx.table_metadata.spec().fields)


def bucket(channel: str) -> int:
    """Which of the parts a channel belongs to."""
    found = BucketTransform(BUCKETS).transform(StringType())(channel)
    assert found is not None
    return found


def data_files(tx: Transaction, written: Iterable[Written], root: str) -> list[DataFile]:
    """What a manifest says of files. The key of each is month/part, where the part may hold anything."""
    about = tx.table_metadata
    shape, spec, hashed = about.schema(), about.spec(), is_bucketed(tx)  # once: pyiceberg copies all of it each time
    plan, ids = compute_statistics_plan(shape, about.properties), parquet_path_to_id_mapping(shape)
    found = []
    for file in written:
        month, _, part = file.key.partition("/")
        values: list[Any] = [layout.month_number(month)]
        if len(spec.fields) > 1:
            values.append(int(part) if hashed else part)
        statistics = data_file_statistics_from_parquet_metadata(file.footer, plan, ids)
        found.append(
            DataFile.from_args(
                content=DataFileContent.DATA,
                file_format=FileFormat.PARQUET,
                file_path=spelled(root, file.path),
                file_size_in_bytes=file.size,
                partition=Record(*values),
                sort_order_id=about.default_sort_order_id if file.ordered else UNSORTED_SORT_ORDER_ID,
                spec_id=about.default_spec_id,
                equality_ids=None,
                key_metadata=None,
                **statistics.to_serialized_dict(),
            )
        )
    return found


def spelled(root: str, path: str) -> str:
    """A path in a file system as a URL like that of the lake."""
    scheme = root.split("://", 1)[0]
    return f"{scheme}://{path}"


def finish(
    lake: Lake, name: str, tx: Transaction, added: Sequence[DataFile], properties: Mapping[str, str],
    replaced: Sequence[DataFile] = (), summary: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Commit the files with these properties. Raises one of CONFLICT when the table is not as it was at begin()."""
    update = tx.update_snapshot(snapshot_properties=dict(summary or {}))
    with update.overwrite() if replaced else update.fast_append() as snapshot:
        for file in added:
            snapshot.append_data_file(file)
        for file in replaced:
            snapshot.delete_data_file(file)
    if properties:
        tx.set_properties(dict(properties))
    _commit(lake, name, tx)


def remember(
    lake: Lake, name: str, properties: Mapping[str, str], *, columns: Mapping[str, str] | None = None,
    gone: Sequence[str] = (), tag: str | None = None,
) -> None:  # fmt: skip
    """Commit properties, and columns, without a file.

    With a tag, for the snapshot that is current now, whose name is moved to it.
    """
    table = lake.tables[name]
    tx = begin(table, columns or {})
    if tag is not None:
        current = table.metadata.current_snapshot_id
        assert current is not None
        updates, _ = tx._set_ref_snapshot(snapshot_id=current, ref_name=tag, type=SnapshotRefType.TAG)
        base = AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": current})
        tx._apply(updates, (base,))
    if properties:
        tx.set_properties(dict(properties))
    if gone:
        tx.remove_properties(*gone)
    _commit(lake, name, tx)


def _commit(lake: Lake, name: str, tx: Transaction) -> None:
    lake.tables[name] = tx.commit_transaction()
    write_hint(lake.tables[name])


def schema_of(tx: Transaction) -> Schema:
    """The columns that files of this transaction have."""
    return tx.table_metadata.schema()
