"""The catalog of the lake: which metadata file of an Iceberg table counts. By default in the queue's database.

The pointer of a table is then a row beside the archive, so one transaction can hold the pointer still and drop a month.
Other catalogs (REST, Glue, Hive) are those that a `.pyiceberg.yaml` names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import psycopg

from menzil.model.errors import MenzilError, UsageError, unreachable
from menzil.ops.connecting import connect, options
from menzil.ops.lake import table_pointer
from menzil.ops.run import run

try:
    from pyiceberg.catalog import Catalog, load_catalog
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.utils.config import Config
    from sqlalchemy import create_engine
    from sqlalchemy.pool import ConnectionPoolEntry, NullPool
except ImportError as error:
    raise MenzilError("pyiceberg is not installed.", hint="run `pip install 'menzil[lake]'`") from error

#: Name of the default catalog, and of the namespace of menzil's tables in every catalog.
NAME = NAMESPACE = "menzil"
MESSAGES, EVENTS = "messages", "events"
SCHEMA = "menzil_lake"

_NO_TABLES = (
    f"a dump of the schema menzil alone leaves {SCHEMA} out: run `menzil migrate`, then `menzil lake register LAKE`"
)
#: What a `.pyiceberg.yaml` must not say of the default catalog, which is in the queue's database.
_OF_CATALOG = ("type", "uri", "py-catalog-impl", "credential", "token", "warehouse")


#: How URLs begin at which pyarrow finds files, and how Hadoop calls one of them.
_SCHEMES = frozenset(["file", "s3", "oss", "gs", "gcs", "abfs", "abfss", "wasb", "wasbs", "hdfs", "viewfs"])
_SAME = {"s3a": "s3", "s3n": "s3"}
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_WHOLE = "write file:/// and the path, or the path"
#: What no URL holds.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class _Sparing(NullPool):
    """A connection serves one call, or all calls of a with block; then it is asked first whether it is still there."""

    _keeping = 0

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self._free: list[ConnectionPoolEntry] = []

    @contextmanager
    def keep(self) -> Iterator[None]:
        self._keeping += 1
        try:
            yield
        finally:
            self._keeping -= 1
            while not self._keeping and self._free:
                self._free.pop().close()

    def _do_get(self) -> ConnectionPoolEntry:
        with suppress(IndexError):  # without a look at the list first: another thread may take the last one meanwhile
            return self._free.pop()
        return super()._do_get()

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        if self._keeping and not self._free:
            self._free.append(record)
        else:
            super()._do_return_conn(record)


class QueueCatalog(SqlCatalog):
    """The catalog in the queue's database. Its properties hold no connection string, and it never makes tables."""

    def __init__(self, dsn: str, properties: Mapping[str, str]) -> None:
        self._dsn = dsn
        fixed = {"uri": "postgresql+psycopg://", "init_catalog_tables": "false"}
        super().__init__(NAME, **(dict(properties) | fixed))

    def _init_catalog(self) -> None:
        """Instead of pyiceberg's: `menzil migrate` has made the tables, in a schema that is on no search path."""
        given = options(self._dsn, prepare=False) | {"autocommit": False}
        engine = create_engine(
            self.properties["uri"],
            creator=lambda: connect(self._dsn, given),
            isolation_level="READ COMMITTED",
            use_native_hstore=False,
            # An export takes hours, in which a server or a pooler may close an idle connection.
            poolclass=_Sparing,
            pool_pre_ping=True,
        )
        self.engine = engine.execution_options(schema_translate_map={None: SCHEMA})
        self._schema_version = "v1"

    def kept(self) -> AbstractContextManager[None]:
        """Calls in here share a connection. A small export makes two dozen of them."""
        pool = self.engine.pool
        assert isinstance(pool, _Sparing)
        return pool.keep()

    def pointer(self, namespace: str, table: str) -> str | None:
        """Where the metadata of a table should be, also when it is not there; None when there is no such table."""
        with connect(self._dsn, options(self._dsn, prepare=False)) as conn:
            return run(conn, table_pointer(NAME, namespace, table))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a catalog stays with the driver: it knows how to reach the database")


def kept(catalog: Catalog | None) -> AbstractContextManager[None]:
    """While this is open, the catalog in the queue's database takes one connection for all that it is asked."""
    return catalog.kept() if isinstance(catalog, QueueCatalog) else nullcontext()


def open_catalog(dsn: str, name: str | None = None) -> Catalog:
    """The catalog in this database, or the one of that name in `.pyiceberg.yaml`."""
    if name is not None:
        return _named(name)
    given = _configured(NAME) or {}
    said = [key for key in given if key in _OF_CATALOG]
    if said:
        sentence = f"The catalog {NAME} is in the queue's database, but .pyiceberg.yaml gives it {', '.join(said)}."
        raise UsageError(sentence, hint="give that catalog another name, and name it with --catalog")
    _demand_tables(dsn)
    return QueueCatalog(dsn, {key: str(value) for key, value in given.items()})


def location(lake: str, table: str) -> str:
    """Where a table of a lake lies, always as a URI: two spellings of one place would not compare equal."""
    return f"{place(lake)}/{table}"


def place(lake: str) -> str:
    """A lake as a URI, spelled in one way only. A path without a scheme is one of this machine."""
    said = _URL.fullmatch(lake)
    scheme = _SAME.get(said["scheme"].lower(), said["scheme"].lower()) if said else "file"
    if scheme not in _SCHEMES:
        hint = "a lake is a directory, or a URL: s3://, gs://, abfs://, hdfs://"
        raise UsageError(f"A lake cannot be at a URL that begins with {scheme}://.", hint=hint)
    if said is None:
        found = f"file://{_path(lake)}"
    elif scheme == "file":
        if not said["rest"].startswith("/"):
            raise UsageError(f"{lake} is not a path of this machine.", hint=_WHOLE)
        found = f"file://{_resolved(Path(said['rest']))}"
    elif said["rest"].strip("/"):
        found = f"{scheme}://{said['rest'].rstrip('/')}"
    else:
        raise UsageError(f"{lake} names no bucket.", hint=f"write {scheme}://BUCKET/DIRECTORY")
    odd = sorted(set(found) & set("?#%"))
    if odd:
        raise UsageError(
            f"The path of a lake cannot hold {' or '.join(odd)}.", hint="readers take it for part of a URL"
        )
    if _CONTROL.search(found):
        raise UsageError("The path of a lake cannot hold control characters.", hint="readers leave them out of a URL")
    return found


def _path(lake: str) -> Path:
    if not lake.strip():
        raise UsageError("The path of the lake is empty.", hint="name a directory; perhaps a variable is not set")
    scheme, colon, rest = lake.partition(":")
    if scheme.lower() == "file" and colon:
        raise UsageError(f"{lake} is not a path of this machine.", hint=_WHOLE)
    if scheme.lower() in _SCHEMES and rest.startswith("/"):
        raise UsageError(f"{lake} is not a URL.", hint=f"write {scheme.lower()}:// with two slashes")
    try:
        return _resolved(Path(lake).expanduser())
    except RuntimeError as error:  # ~name of an account that is not there
        raise UsageError(f"The path {lake} cannot be found: {error}", hint="write the whole path") from None


def _resolved(path: Path) -> Path:
    """The one name of a directory: no link, no dots."""
    found = path.resolve()
    if found == found.parent:
        raise UsageError("The root directory cannot be a lake.", hint="name a directory in it")
    return found


def second(root: str) -> str:
    """The namespace of a lake whose database already has another one under the usual name."""
    return f"{NAMESPACE}_{hashlib.md5(root.encode(), usedforsecurity=False).hexdigest()[:12]}"


def _configured(name: str) -> Mapping[str, Any] | None:
    try:
        return Config().get_catalog_config(name)
    except ValueError as error:
        raise UsageError(f"The configuration of pyiceberg is not valid: {error}.") from None


def _named(name: str) -> Catalog:
    given = _configured(name)
    if given is None:
        known = ", ".join(sorted(Config().get_known_catalogs())) or "none"
        hint = f"it names: {known}. pyiceberg looks for the file in PYICEBERG_HOME, your home and the current directory"
        raise UsageError(f"There is no catalog {name} in .pyiceberg.yaml.", hint=hint)
    try:
        # pyiceberg itself reads the file once, when it is imported; a notebook may have named it later.
        return load_catalog(name, **given)
    except (ValueError, ImportError) as error:
        # The sentence of pyiceberg may repeat the properties, and a property may be a password.
        raise UsageError(f"The catalog {name} of .pyiceberg.yaml cannot be opened.", hint=_plain(error)) from None


def _plain(error: Exception) -> str:
    return (
        str(error) if isinstance(error, ImportError) else "look at its type, uri and the extras of pyiceberg it needs"
    )


def _demand_tables(dsn: str) -> None:
    """Say in one sentence what pyiceberg would say in forty lines: no tables, or no right to read them."""
    with connect(dsn, options(dsn, prepare=False)) as conn:
        try:
            conn.execute(f"select 1 from {SCHEMA}.iceberg_tables limit 0")
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
            raise MenzilError("This database has no catalog of a lake.", hint=_NO_TABLES) from error
        except psycopg.errors.InsufficientPrivilege as error:
            sentence = f"The role {conn.info.user} may not read the catalog of the lake."
            raise MenzilError(sentence, hint="grant it menzil_pipeline, or menzil_monitor to read only") from error
        except psycopg.OperationalError as error:
            raise unreachable(error) from error
