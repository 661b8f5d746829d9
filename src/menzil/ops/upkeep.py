"""Settings, housekeeping, and the handshake."""

from __future__ import annotations

from dataclasses import dataclass

from menzil.model.errors import UsageError
from menzil.ops import op, values
from menzil.ops.op import Op, Rows


def setting(name: str) -> Op[str]:
    """menzil.setting."""
    return Op("select menzil.setting(%s::text)", (values.text("setting", name),), op.text)


def set_setting(name: str, value: str | float | bool) -> Op[None]:
    """menzil.set_setting."""
    if isinstance(value, bool):
        value = "on" if value else "off"
    elif isinstance(value, int | float):
        value = str(value)
    params = (values.text("setting", name), values.text("value", value))
    return Op("select menzil.set_setting(%s::text, %s::text)", params, op.nothing)


def maintain() -> Op[None]:
    """menzil.maintain."""
    return Op("select menzil.maintain()", (), op.nothing)


def mark_expired(limit: int = 1000) -> Op[int]:
    """menzil.mark_expired_messages."""
    return Op("select menzil.mark_expired_messages(%s::integer)", (values.integer("limit", limit),), op.integer)


def recover_stale(limit: int = 1000) -> Op[int]:
    """menzil.recover_stale_messages."""
    return Op("select menzil.recover_stale_messages(%s::integer)", (values.integer("limit", limit),), op.integer)


def maintain_archive_partitions(months_ahead: int = 3) -> Op[int]:
    """menzil.maintain_archive_partitions."""
    params = (values.integer("months_ahead", months_ahead),)
    return Op("select menzil.maintain_archive_partitions(%s::integer)", params, op.integer)


def archive_completed_messages(older_than: int = 3600, batch_size: int = 1000) -> Op[int]:
    """menzil.archive_completed_messages."""
    params = (values.integer("older_than", older_than), values.integer("batch_size", batch_size))
    return Op("select menzil.archive_completed_messages(%s::integer, %s::integer)", params, op.integer)


def copy_notice() -> Op[str | None]:
    """menzil.copy_notice: the sentence that a copy says of itself; None where the database is no copy."""
    return Op("select menzil.copy_notice()", (), lambda rows: rows[0][0])


def adopt() -> Op[bool]:
    """menzil.adopt: whether it was a copy."""
    return Op("select menzil.adopt()", (), op.boolean)


def disown() -> Op[bool]:
    """menzil.disown: whether it was live."""
    return Op("select menzil.disown()", (), op.boolean)


@dataclass(frozen=True, slots=True)
class Handshake:
    """What a client asks a database before its first call: which clients it serves, and how a lone statement reads."""

    compatible_from: int
    installed: int
    read_committed: bool


def handshake() -> Op[Handshake]:
    """menzil.schema_window, and whether a lone statement sees what was committed before it began."""
    text = """
select w.compatible_from, w.installed, current_setting('default_transaction_isolation')::text,
  current_setting('array_nulls')::boolean
from menzil.schema_window() w"""
    return Op(text, (), _read_handshake)


def _read_handshake(rows: Rows) -> Handshake:
    ((compatible_from, installed, isolation, nulls),) = rows
    if not nulls:
        # PostgreSQL would read a missing ordering key in an array as the text "NULL".
        hint = "let a DBA run: alter role NAME set array_nulls = on"
        raise UsageError("The setting array_nulls is off for this role, so arrays cannot hold NULL.", hint=hint)
    return Handshake(compatible_from, installed or 0, isolation == "read committed")


def schema_version() -> Op[int]:
    """menzil.schema_version: all that releases without a window answer."""
    return Op("select menzil.schema_version()", (), op.integer)
