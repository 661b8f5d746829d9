"""How answers are read: values that Python cannot always hold stay bytes until somebody looks at them."""

from __future__ import annotations

import psycopg
from psycopg.abc import AdaptContext
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


def read_plainly(context: AdaptContext) -> None:
    """Set up how answers are read. On a connection of our own, once; on the caller's, on each cursor."""
    for name, loader in _LOADERS:
        context.adapters.register_loader(name, loader)
    context.adapters.register_loader(_ARRAY_OF_INT8, array.ArrayBinaryLoader)
