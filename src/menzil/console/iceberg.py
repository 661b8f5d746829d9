"""A read-only Iceberg REST catalog: engines attach to the lake by one address, and read its files by themselves.

It answers GET and HEAD, from the pointers in the database and the metadata files that they name. It serves no data file
and hands out no credentials. The console has it below /iceberg; `menzil lake serve` serves it alone.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from menzil.console.database import Database
from menzil.console.door import Door, LoginNeededError
from menzil.console.guards import RefusedRequestError
from menzil.model.errors import MenzilError
from menzil.ops import lake

CATALOG = "menzil"
#: Seconds for one answer, and metadata files that are kept: a file never changes, and some have megabytes.
PATIENCE, KEPT = 10.0, 8

_NAMESPACE = "/v1/namespaces/{namespace}"
_PATHS = {
    "/v1/namespaces": "namespaces",
    _NAMESPACE: "namespace",
    f"{_NAMESPACE}/tables": "tables",
    f"{_NAMESPACE}/tables/{{table}}": "table",
}
#: What the catalog tells clients that it can do, in the words of the specification.
_CAN = [f"GET {path.replace('/v1/', '/v1/{prefix}/')}" for path in _PATHS]
_CAN += [line.replace("GET", "HEAD") for line in _CAN if line.endswith("}")]

_VERBS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
_TYPES = {401: "NotAuthorizedException", 403: "ForbiddenException", 404: "NoSuchTableException"}

Tables = list[tuple[str, str, str]]


class Iceberg:
    """The routes of the catalog, behind a door."""

    def __init__(self, database: Database, door: Door) -> None:
        self._database, self._door = database, door
        self._known: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def routes(self, prefix: str = "") -> list[Route]:
        """The routes, below a prefix."""
        found = [Route(f"{prefix}/v1/config", self._handler(self._config))]
        for path, name in _PATHS.items():
            found.append(Route(prefix + path, self._handler(getattr(self, f"_{name}"))))
        return [*found, Route(f"{prefix}/{{rest:path}}", self._handler(self._nothing), methods=_VERBS)]

    def _handler(self, answer: Callable[[Request], bytes]) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            try:
                await self._door.enter(request)
                work = self._database.submit(lambda: answer(request))
                body = await asyncio.wait_for(asyncio.wrap_future(work), PATIENCE)
                return Response(body, media_type="application/json")
            except LoginNeededError:
                return refusal(401, "Send the token as Authorization: Bearer.")
            except RefusedRequestError as refused:
                return refusal(refused.status, refused.sentence)
            except TimeoutError:
                return refusal(503, f"The lake did not answer within {PATIENCE:g} seconds.")
            except MenzilError as error:
                return refusal(503, error.message)

        return serve

    def _config(self, request: Request) -> bytes:
        del request
        return _json({"defaults": {}, "overrides": {}, "endpoints": _CAN})

    def _namespaces(self, request: Request) -> bytes:
        if request.query_params.get("parent"):
            return _json({"namespaces": []})
        names = {namespace for namespace, _, _ in self._read()} | {CATALOG}
        return _json({"namespaces": [name.split(".") for name in sorted(names)]})

    def _namespace(self, request: Request) -> bytes:
        name, _ = self._named(request)
        return _json({"namespace": name.split("."), "properties": {}})

    def _tables(self, request: Request) -> bytes:
        name, tables = self._named(request)
        found = [{"namespace": name.split("."), "name": table} for space, table, _ in tables if space == name]
        return _json({"identifiers": found})

    def _table(self, request: Request) -> bytes:
        name, tables = self._named(request)
        wanted = request.path_params["table"]
        for space, table, pointer in tables:
            if (space, table) == (name, wanted):
                said = _json({"metadata-location": pointer, "config": {}})
                return said[:-1] + b',"metadata":' + self._metadata(pointer) + b"}"
        raise RefusedRequestError(404, f"There is no table {name}.{wanted}.")

    def _nothing(self, request: Request) -> bytes:
        if request.method not in ("GET", "HEAD"):
            raise RefusedRequestError(403, "This catalog is read-only.")
        raise RefusedRequestError(404, "This catalog has nothing at this path.")

    def _named(self, request: Request) -> tuple[str, Tables]:
        """The namespace that a request names, its levels with dots between as in the database, and all tables."""
        name = request.path_params["namespace"].replace("\x1f", ".")
        tables = self._read()
        if name != CATALOG and name not in {space for space, _, _ in tables}:
            raise RefusedRequestError(404, f"There is no namespace {name}.")
        return name, tables

    def _read(self) -> Tables:
        deadline = time.monotonic() + PATIENCE
        return self._database.read(lambda run: run(lake.lake_tables(CATALOG)), deadline)

    def _metadata(self, pointer: str) -> bytes:
        with self._lock:
            known = self._known.get(pointer)
        if known is None:
            known = read_metadata(pointer)
            with self._lock:
                self._known[pointer] = known
                while len(self._known) > KEPT:
                    self._known.popitem(last=False)
        return known


def read_metadata(pointer: str) -> bytes:
    """A metadata file as it is. A role that may move a pointer must not make this catalog read another kind of file."""
    try:
        from pyiceberg.io import load_file_io
        from pyiceberg.utils.config import Config
    except ImportError:
        raise MenzilError("pyiceberg is not installed.", hint="run `pip install 'menzil[lake]'`") from None
    if not pointer.endswith(".metadata.json"):
        raise RefusedRequestError(500, "The pointer of this table names no metadata file.")
    given = {key: str(value) for key, value in (Config().get_catalog_config(CATALOG) or {}).items()}
    try:
        with load_file_io(given, pointer).new_input(pointer).open() as stream:
            data = bytes(stream.read())
        text = gzip.decompress(data) if pointer.endswith(".gz.metadata.json") else data
        if "table-uuid" in json.loads(text):
            return text
    except (OSError, ValueError, TypeError):
        pass
    raise RefusedRequestError(500, "The metadata file of this table cannot be read from here.")


def refusal(status: int, sentence: str) -> Response:
    """An error in the words of the specification."""
    error = {"message": sentence, "type": _TYPES.get(status, "ServiceFailureException"), "code": status}
    if status == 404 and "namespace" in sentence:
        error["type"] = "NoSuchNamespaceException"
    return Response(_json({"error": error}), status, media_type="application/json")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
