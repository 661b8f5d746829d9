"""How answers are read: values that Python cannot always hold stay bytes until a caller looks at them."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg.types import array, numeric, string
from psycopg.types import bool as boolean

# jsonb, uuid and timestamptz (and their like) stay bytes: menzil.model.wire decodes them when they are looked at.
_LOADERS = (
    ("bool", boolean.BoolBinaryLoader),
    ("bytea", string.ByteaBinaryLoader),
    ("int4", numeric.Int4BinaryLoader),
    ("int8", numeric.Int8BinaryLoader),
    ("text", string.TextBinaryLoader),
    ("jsonb", string.ByteaBinaryLoader),
    ("timestamptz", string.ByteaBinaryLoader),
    ("uuid", string.ByteaBinaryLoader),
)
_ARRAY_OF_INT8 = psycopg.adapters.types["int8"].array_oid


class _JsonInUtf8(Loader):
    """jsonb from a connection that speaks another encoding: what decodes it later expects UTF-8."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        assert self.connection is not None
        return bytes(data).decode(self.connection.info.encoding).encode()


def read_plainly_from(conn: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], cursor: AdaptContext) -> None:
    """Set up a cursor on the caller's connection."""
    read_plainly(cursor)
    if conn.info.encoding not in ("utf-8", "ascii"):
        cursor.adapters.register_loader("jsonb", _JsonInUtf8)


def read_plainly(context: AdaptContext) -> None:
    """Set up how answers are read. On a connection of our own, once; on the caller's, on each cursor."""
    for name, loader in _LOADERS:
        context.adapters.register_loader(name, loader)
    context.adapters.register_loader(_ARRAY_OF_INT8, array.ArrayBinaryLoader)
