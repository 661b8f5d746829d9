"""TLS as the endpoint's config wants it: verified unless it says otherwise."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from hashlib import sha256
from json import dumps
from typing import Any

from menzil.deliver.http.errors import RefusedError

_ROOM = 256


class Contexts:
    """One SSLContext per distinct config: making one reads the system's trust store, which takes milliseconds."""

    def __init__(self, alpn: Sequence[str] = ("http/1.1",)) -> None:
        self._alpn = list(alpn)  # what the other side is told that we speak; brokers are told nothing
        self._made: dict[str, ssl.SSLContext] = {}

    def of(self, tls: Mapping[str, Any] | None, *, system: bool = False) -> ssl.SSLContext:
        """Return the context for `tls` of a config, or raise RefusedError. `system`: trust the system's CAs too."""
        key = fingerprint(tls) + str(system)
        if key not in self._made:
            if len(self._made) >= _ROOM:
                self._made.clear()
            self._made[key] = _context(tls or {}, system, self._alpn)
        return self._made[key]


def fingerprint(tls: Mapping[str, Any] | None) -> str:
    """Return the name of a TLS config: connections with different keys are not interchangeable."""
    return sha256(dumps(tls or {}, sort_keys=True).encode()).hexdigest()


def _context(tls: Mapping[str, Any], system: bool, alpn: list[str]) -> ssl.SSLContext:
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if alpn:
            context.set_alpn_protocols(alpn)
        if tls.get("verify") is False:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if "ca" in tls:
            context.load_verify_locations(cadata=tls["ca"])
        if "ca" not in tls or system:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        if "cert" in tls:
            _load_key(context, tls["cert"], tls["key"])
    except (ssl.SSLError, OSError, ValueError) as error:
        why = getattr(error, "reason", None) or type(error).__name__
        raise RefusedError(f"The tls config of the endpoint cannot be used: {why.replace('_', ' ').lower()}.") from None
    return context


def _load_key(context: ssl.SSLContext, cert: str, key: str) -> None:
    # OpenSSL reads keys from files only. This one is ours alone, and removed before the first connection.
    handle, path = tempfile.mkstemp(prefix="menzil-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"{cert.strip()}\n{key.strip()}\n")
        # Without a password of ours, OpenSSL would ask for one at the terminal.
        context.load_cert_chain(path, password=lambda: b"")
    finally:
        os.unlink(path)  # noqa: PTH108
