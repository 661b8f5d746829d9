"""Keys of NATS: a seed of an Ed25519 key in base32, with which a client signs the nonce of the server."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from menzil.deliver.http.errors import RefusedError

_SEED = 18 << 3  # the letter S
_USER = 20 << 3  # the letter U
_PART = re.compile(r"-----BEGIN ([A-Z ]+)-----\s+(\S+)\s+------?END", re.ASCII)


class Nkey:
    """The key of a user. Its repr shows nothing."""

    def __init__(self, seed: str) -> None:
        """Read a seed, or raise RefusedError."""
        self._key = _private_key(_raw(seed))

    @property
    def public(self) -> str:
        """Return the name of the user."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return encoded(_USER, self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    def sign(self, nonce: str) -> str:
        """Return the signature of a nonce."""
        return base64.urlsafe_b64encode(self._key.sign(nonce.encode())).rstrip(b"=").decode()


def read_credentials(text: str) -> tuple[str, Nkey]:
    """Return the token and the key of a credentials file, or raise RefusedError."""
    parts = {match[1]: match[2] for match in _PART.finditer(text)}
    token, seed = parts.get("NATS USER JWT"), parts.get("USER NKEY SEED")
    if not token or not seed:
        raise RefusedError("auth.credentials of the endpoint is no credentials file of NATS.")
    return token, Nkey(seed)


def encoded(prefix: int, raw: bytes) -> str:
    """Return a public key as NATS writes it: prefix, key, checksum, in base32."""
    return _with_checksum(bytes([prefix]) + raw)


def encoded_seed(raw: bytes) -> str:
    """Return the seed of a user as NATS writes it."""
    return _with_checksum(bytes([_SEED | _USER >> 5, (_USER & 31) << 3]) + raw)


def _with_checksum(data: bytes) -> str:
    return base64.b32encode(data + _crc(data)).rstrip(b"=").decode()


def _crc(data: bytes) -> bytes:
    return binascii.crc_hqx(data, 0).to_bytes(2, "little")


def _raw(seed: str) -> bytes:
    wrong = RefusedError("auth of the endpoint has a seed that is not one of a NATS user.")
    try:
        data = base64.b32decode(seed.strip() + "=" * (-len(seed.strip()) % 8))
    except (binascii.Error, ValueError):
        raise wrong from None
    if len(data) != 36 or _crc(data[:-2]) != data[-2:] or seed.strip()[:2] != "SU":
        raise wrong
    return data[2:-2]


def _private_key(raw: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        raise RefusedError("Keys of NATS need the package cryptography: pip install 'menzil[nats]'.") from None
    return Ed25519PrivateKey.from_private_bytes(raw)
