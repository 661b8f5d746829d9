"""Which master was asked for, and whether it answers: Spark itself says so after minutes, or not at all."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping

from menzil.model.errors import ConnectionFailedError, UsageError

#: Seconds for a master to accept a connection.
PATIENCE = 5

_LOCAL = re.compile(r"local|local\[(\d+|\*)(\s*,\s*\d+)?\]|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]")
_ADDRESS = re.compile(r"\[?(?P<host>[^\[\]]+?)\]?:(?P<port>\d{1,5})")


def asked_for(master: str | None, conf: Mapping[str, str]) -> str | None:
    """The master that the program names; None when it leaves that to others."""
    named = conf.get("spark.master")
    if master is not None and named is not None and master != named:
        raise UsageError(f"Two masters are given, {master} and, in conf, {named}.", hint="leave one of them out")
    return master if master is not None else named


def elsewhere() -> str:
    """The master where neither the program nor Spark's configuration names one."""
    return os.environ.get("MASTER") or "local[*]"


def must_be_there(master: str) -> None:
    """Refuse what is not a master, and a standalone master that does not answer. Driver, before the JVM starts."""
    if master == "yarn" or master.startswith("k8s://") or _LOCAL.fullmatch(master):
        return
    addresses = [_ADDRESS.fullmatch(part) for part in master.removeprefix("spark://").split(",")]
    if not master.startswith("spark://") or None in addresses:
        raise UsageError(
            f"{master!r} is not a Spark master.", hint="use local[*], spark://HOST:PORT, yarn or k8s://URL"
        )
    if not any(_answers(found["host"], int(found["port"])) for found in addresses if found is not None):
        raise ConnectionFailedError(f"No Spark master answers at {master}.", hint="check the address, and that it runs")


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=PATIENCE).close()
    except (OSError, OverflowError):
        return False
    return True
