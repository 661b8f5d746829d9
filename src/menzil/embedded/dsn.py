"""Connection strings of a running server, password included: handle them like the password."""

from __future__ import annotations

import os
from urllib.parse import quote

from menzil.embedded.errors import EmbeddedError
from menzil.embedded.home import Home, read


def tcp_dsn(home: Home, port: int) -> str:
    """Over TCP, for anything on this machine that speaks PostgreSQL."""
    return f"postgresql://postgres:{_password(home)}@127.0.0.1:{port}/postgres"


def socket_dsn(home: Home, port: int) -> str:
    """Over the Unix socket, a little faster."""
    place = quote(os.fsencode(home.socket_dir), safe="")
    return f"postgresql://postgres:{_password(home)}@/postgres?host={place}&port={port}"


def _password(home: Home) -> str:
    try:
        return quote(read(home.password), safe="")
    except OSError as error:
        raise EmbeddedError(
            f"The password of the server cannot be read ({error.strerror}).", hint=f"it is in {home.password}"
        ) from error
