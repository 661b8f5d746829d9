"""A lake: its two Iceberg tables, found through the catalog or, without a database, by the hints that lie there."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.table import StaticTable, Table

from menzil.model.errors import UsageError
from menzil.spark.database import asking
from menzil.spark.lake import schema
from menzil.spark.lake.catalog import NAMESPACE, QueueCatalog, kept, open_catalog, second
from menzil.spark.lake.errors import LakeBusyError, LakeDamagedError, LakeError, LakeForeignError
from menzil.spark.lake.hint import hinted, write_hint
from menzil.spark.lake.memory import Memory, catalog_property
from menzil.spark.lake.original import must_not_be_a_copy
from menzil.spark.lake.place import DURABLE, address, local, shown, storage_options
from menzil.spark.lake.schema import EVENTS, MESSAGES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Lake:
    """One lake. Tables are those of the moment when they were loaded; without a catalog they can only be read."""

    root: str
    options: dict[str, str]
    catalog: Catalog | None = None
    namespace: str = NAMESPACE
    tables: dict[str, Table] = field(default_factory=dict)

    def table(self, name: str) -> Table | None:
        """A table; None when no export has made it yet."""
        return self.tables.get(name)

    def memory(self, name: str) -> Memory:
        """What it remembers."""
        found = self.table(name)
        return Memory({} if found is None else found.properties)

    def identifier(self, name: str) -> tuple[str, str]:
        """Its name in the catalog."""
        return (self.namespace, name)

    def refresh(self, name: str) -> Table | None:
        """Load it again, through the catalog."""
        if self.catalog is None:
            return self.table(name)
        try:
            self.tables[name] = self.catalog.load_table(self.identifier(name))
        except NoSuchTableError:
            self.tables.pop(name, None)
        found = self.table(name)
        if found is not None and found.location().rstrip("/") != f"{self.root}/{name}":
            raise LakeBusyError(f"Another lake was made at the same moment: {found.location()}.")
        return found

    def make(self, name: str) -> Table:
        """The table, made when it is not there."""
        found = self.refresh(name)
        if found is not None:
            return found
        assert self.catalog is not None
        shape = schema.iceberg(name)
        elsewhere = None if isinstance(self.catalog, QueueCatalog) else self.catalog.name
        self.catalog.create_namespace_if_not_exists(self.namespace)
        try:
            made = self.catalog.create_table(
                self.identifier(name),
                shape,
                location=f"{self.root}/{name}",
                partition_spec=schema.spec(name, shape),
                sort_order=schema.order(shape),
                properties=schema.properties(name) | catalog_property(elsewhere),
            )
        except TableAlreadyExistsError:  # another process made it meanwhile
            return self.make(name)
        write_hint(made)
        self.tables[name] = made
        return made


def open_lake(
    lake: str | os.PathLike[str],
    dsn: str | None = None,
    *,
    catalog: str | None = None,
    spark: SparkSession | None = None,
) -> Lake:
    """A lake to read: by the catalog of this database when it knows the lake, else by the hints. Driver.

    A folder that is there and empty is a lake without tables. A place that is not there is refused: its name is wrong.
    """
    root = address(lake, spark)
    if dsn is not None or catalog is not None:
        try:
            found = through(root, open_catalog(dsn or "", catalog))
        except LakeDamagedError:
            alone = _alone(root)
            if alone.tables:
                return alone
            raise
        if found.tables:
            return found
    alone = _alone(root)
    path = local(root)
    if path is None or not Path(path).is_dir():
        demand(alone)
    return alone


def open_for_writing(
    lake: str | os.PathLike[str], dsn: str, *, catalog: str | None = None, spark: SparkSession | None = None
) -> tuple[Lake, bool]:
    """A lake that can be committed to, and whether it is new to the catalog although it is there. Driver.

    A hint that is ahead of the catalog tells that the database was set back to an earlier time, or that another one
    exports to the same lake: then nothing is written.
    """
    root = address(lake, spark)
    known = _alone(root)  # before the catalog is asked, so that the catalog is never behind
    found = through(root, open_catalog(dsn, catalog))
    if known.tables and not found.tables:
        _demand_catalog(known, catalog)
        found.tables = known.tables
        return found, True
    for name, ahead in known.tables.items():
        table = found.table(name)
        if table is None or ahead.metadata.last_updated_ms > table.metadata.last_updated_ms:
            raise LakeForeignError(
                f"The lake is newer than the catalog of this database says: {ahead.metadata_location}.",
                hint="the database was set back in time, or another one exports to this lake: export to a new lake",
            )
        if ahead.metadata_location != table.metadata_location:
            write_hint(table)  # a process was killed before it could
    return found, False


def _demand_catalog(lake: Lake, name: str | None) -> None:
    """Refuse a catalog that would become a second one of this lake: each would count files that the other does not."""
    made_in = lake.memory(MESSAGES).catalog
    if made_in != name:
        where, said = f"the catalog {made_in} of .pyiceberg.yaml", f"add --catalog {made_in}"
        if made_in is None:
            where, said = "the catalog of the queue's database", "leave --catalog out"
        registered = "`menzil lake register`" if name is None else f"`menzil lake register --catalog {name}`"
        raise LakeForeignError(
            f"The lake in {shown(lake.root)} is in {where}.", hint=f"{said}, or move it for good with {registered}"
        )


def open_own(
    lake: str | os.PathLike[str], dsn: str, *, catalog: str | None = None, spark: SparkSession | None = None
) -> Lake:
    """A lake whose files may be replaced or removed. Driver.

    What a hint names, or a database of before, may lack files that count: only the catalog that commits to it knows.
    """
    found, unknown = open_for_writing(lake, dsn, catalog=catalog, spark=spark)
    if unknown:
        raise LakeForeignError(
            f"The catalog does not know the lake in {shown(found.root)}, so which of its files count cannot be told.",
            hint="name the database that exports to it with --dsn, or its catalog with --catalog; a database made anew "
            "learns of it by `menzil lake register`",
        )
    demand(found)
    with asking(dsn, "menzil lake") as conn:
        must_not_be_a_copy(conn, found)
    return found


def through(root: str, catalog: Catalog) -> Lake:
    """The lake at this address as a catalog knows it; without tables when it does not.

    Refuses one that the catalog knows at this address and that is not there: a new lake in its place would begin with
    what the database still has, and an export with drop would take that for all.
    """
    catalog.properties.update(DURABLE)
    lake = Lake(root, storage_options(catalog.properties), catalog)
    with kept(catalog):
        return _found(lake, catalog)


def _found(lake: Lake, catalog: Catalog) -> Lake:
    root = lake.root
    for namespace in (NAMESPACE, second(root)):
        lake.namespace = namespace
        try:
            found = catalog.load_table((namespace, MESSAGES))
        except NoSuchTableError:
            break
        except OSError as error:
            pointer = str(error)
            if isinstance(catalog, QueueCatalog):
                pointer = catalog.pointer(namespace, MESSAGES) or ""
            if f"{root}/{MESSAGES}/" in pointer:
                raise LakeDamagedError(
                    f"The database knows a lake at {shown(root)}, and its metadata is not there: {shown(pointer)}.",
                    hint="mount its disk or bring its files back to this place; a new lake needs another --lake",
                ) from None
            continue  # of another lake, which is gone
        if found.location().rstrip("/") == f"{root}/{MESSAGES}":
            lake.tables[MESSAGES] = found
            lake.refresh(EVENTS)
            break
    return lake


def _alone(root: str) -> Lake:
    from pyiceberg.utils.config import Config

    options = storage_options(dict(Config().get_catalog_config(NAMESPACE) or {}))
    lake = Lake(root, options)
    for name in (MESSAGES, EVENTS):
        metadata = hinted(f"{root}/{name}", options)
        if metadata is not None:
            table = lake.tables[name] = StaticTable.from_metadata(metadata, options)
            if table.location().rstrip("/") != f"{root}/{name}":
                raise LakeError(
                    f"The lake in {shown(root)} was moved or copied: its files are named by paths in "
                    f"{shown(table.location())}.",
                    hint="bring it back to that place; an Iceberg table names its files by their full path",
                )
    if not lake.tables and _is_old(root):
        raise LakeError(
            f"{root} is a lake of menzil 0.1, with manifests of its own.", hint=f"run `menzil lake adopt {root}` once"
        )
    return lake


def _is_old(root: str) -> bool:
    path = local(root)
    return path is not None and Path(path, "_manifest").is_dir()


def register(lake: Lake) -> None:
    """Give the catalog the pointers of a lake that is there. The caller has made sure that it is this database's."""
    assert lake.catalog is not None
    lake.catalog.create_namespace_if_not_exists(lake.namespace)
    for name, table in list(lake.tables.items()):
        lake.tables[name] = lake.catalog.register_table(lake.identifier(name), table.metadata_location)


def demand(lake: Lake, name: str = MESSAGES) -> Table:
    """The table of a lake that must be there."""
    found = lake.table(name)
    if found is None:
        raise UsageError(f"There is no lake in {shown(lake.root)}.", hint="`menzil pipeline export` makes one")
    return found
