"""Give a database the pointers of a lake that lies elsewhere: after a move to a new database, or a restored backup."""

from __future__ import annotations

from typing import Any

import psycopg
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.serializers import FromInputFile

from menzil.model.errors import UsageError
from menzil.ops.lake import move_pointer
from menzil.ops.run import run
from menzil.spark.lake.catalog import EVENTS, MESSAGES, NAME, NAMESPACE, QueueCatalog, location, place, second
from menzil.spark.lake.errors import LakeError
from menzil.spark.lake.hint import latest


def register(catalog: Catalog, lake: str, metadata: str | None = None, *, beside: bool = False) -> dict[str, str]:
    """Register the tables of a lake; return table: metadata file. `metadata` names the file of one table.

    A table that the catalog already has at this very metadata is left alone; at another it is refused: see replace().
    With `beside` a lake that the catalog has under the usual name stays, and this one gets a name of its own, as an
    export to a second lake would give it.
    """
    found = _found(catalog, lake, metadata)
    namespace = namespace_of(catalog, lake, beside=beside)
    catalog.create_namespace_if_not_exists(namespace)
    for table, pointer in found.items():
        known = _pointer(catalog, namespace, table)
        if known is not None and known != pointer:
            hint = "if that lake is the one that counts from now on, add --replace"
            if namespace == NAMESPACE and not known.startswith(f"{location(lake, table)}/"):
                hint = f"{hint}; to keep both lakes, add --beside"
            raise LakeError(f"The catalog has {namespace}.{table} at {known}.", hint=hint)
    for table, pointer in found.items():
        if _pointer(catalog, namespace, table) is None:
            try:
                catalog.register_table((namespace, table), pointer)
            except TableAlreadyExistsError:
                raise LakeError(f"Another process has just registered {namespace}.{table}.") from None
    return found


def replace(catalog: Catalog, conn: psycopg.Connection[Any], lake: str, metadata: str | None = None) -> dict[str, str]:
    """Point the tables that the database already has to this lake, and register those that it has not."""
    if not isinstance(catalog, QueueCatalog):
        raise UsageError("--replace works only with the catalog in the queue's database.")
    found = _found(catalog, lake, metadata)
    namespace = namespace_of(catalog, lake)
    with conn.transaction():
        for table, pointer in found.items():
            run(conn, move_pointer(NAME, namespace, table, pointer), own=True)
    return register(catalog, lake, metadata)


def namespace_of(catalog: Catalog, lake: str, *, beside: bool = False) -> str:
    """Under which name the catalog has this lake, or will have it."""
    own = second(place(lake))
    known = _pointer(catalog, NAMESPACE, MESSAGES)
    elsewhere = known is not None and not known.startswith(f"{location(lake, MESSAGES)}/")
    return own if elsewhere and (beside or _pointer(catalog, own, MESSAGES) is not None) else NAMESPACE


def _pointer(catalog: Catalog, namespace: str, table: str) -> str | None:
    try:
        return catalog.load_table((namespace, table)).metadata_location
    except NoSuchTableError:
        return None
    except OSError:  # of a lake that was moved or removed
        return "a metadata file that is gone"


def _found(catalog: Catalog, lake: str, metadata: str | None) -> dict[str, str]:
    """The tables that lie in this lake, each with the metadata file that counts. All are read first."""
    found = {}
    if metadata is not None:
        table = next((name for name in (MESSAGES, EVENTS) if metadata.startswith(location(lake, name) + "/")), None)
        if table is None:
            hint = f"it begins with {location(lake, MESSAGES)}/metadata/"
            raise UsageError(f"{metadata} is not a metadata file of this lake.", hint=hint)
        found[table] = metadata
    else:
        found[MESSAGES] = latest(location(lake, MESSAGES), catalog.properties)
        try:
            found[EVENTS] = latest(location(lake, EVENTS), catalog.properties)
        except LakeError as error:
            if "has no metadata" not in error.message:
                raise
    for table, pointer in found.items():
        read = FromInputFile.table_metadata(catalog._load_file_io(location=pointer).new_input(pointer))
        if read.location.rstrip("/") != location(lake, table):
            hint = "an Iceberg table names its files by their full path, so it cannot be moved"
            raise LakeError(f"The files of {pointer} lie in {read.location}.", hint=hint)
    return found
