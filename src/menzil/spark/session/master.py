"""Whether a master can be one, and answers: Spark itself says so after minutes, or not at all."""

from __future__ import annotations

import re
import socket

from menzil.model.errors import ConnectionFailedError, UsageError

#: Seconds for a master to accept a connection.
PATIENCE = 5

_LOCAL = re.compile(r"local|local\[(\d+|\*)(\s*,\s*\d+)?\]|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]")
_ADDRESS = re.compile(r"\[?(?P<host>[^\[\]]+?)\]?:(?P<port>\d{1,5})")


def must_be_there(master: str) -> None:
    """Refuse what is no master, and a standalone one that nobody answers for. Driver, before the JVM starts."""
    if master == "yarn" or master.startswith("k8s://") or _LOCAL.fullmatch(master):
        return
    addresses = [_ADDRESS.fullmatch(part) for part in master.removeprefix("spark://").split(",")]
    if not master.startswith("spark://") or None in addresses:
        raise UsageError(f"{master!r} is no Spark master.", hint="use local[*], spark://HOST:PORT, yarn or k8s://URL")
    if not any(_answers(found["host"], int(found["port"])) for found in addresses if found is not None):
        raise ConnectionFailedError(f"No Spark master answers at {master}.", hint="check the address, and that it runs")


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=PATIENCE).close()
    except (OSError, OverflowError):
        return False
    return True
