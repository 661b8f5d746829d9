"""What the operator's seat says to the database before it asks: the limits of one transaction.

They end with the transaction, so a pooler in transaction mode may stand between.
"""

from __future__ import annotations

import re

from menzil.ops import op
from menzil.ops.op import Op

_LIMITS = """
select set_config('statement_timeout', %s::text, true), set_config('lock_timeout', %s::text, true),
       set_config('idle_in_transaction_session_timeout', %s::text, true)"""


def limits(statement: float, lock: float, idle: float) -> Op[None]:
    """Bound the statements of this transaction; all times in seconds."""
    params = tuple(f"{max(round(seconds * 1000), 1)}ms" for seconds in (statement, lock, idle))
    return Op(_LIMITS, params, op.nothing)


_PLACE = re.compile(r"%([sb%])")


def shown(asked: Op[object]) -> str:
    """The statement as a person would type it into psql: the text of the Op with its values in place."""
    given = iter(asked.params)
    text = " ".join(asked.text.split())  # before the values are in place: theirs are left alone
    return _PLACE.sub(lambda found: "%" if found[1] == "%" else _literal(next(given)), text) + ";"


def _literal(value: str | bytes | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'"
    quoted = value.replace("'", "''")
    return f"E'{quoted}'".replace("\\", "\\\\") if "\\" in value else f"'{quoted}'"
