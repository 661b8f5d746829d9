"""Secrets of endpoints, encrypted before they leave the process and decrypted by the worker that needs them.

An encrypted secret is {"$encrypted": "v1:<key id>:<base64>"}: AES-256-GCM with a random nonce in front. It is bound to
the name of its endpoint and to its path in the config: moved to another place, it does not decrypt. The database never
has a key, so neither it nor its backups can be asked for a secret.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping
from typing import Any

from menzil.model.errors import SecretError, UsageError
from menzil.model.secret_paths import Rule, change_secrets, check_secret

VARIABLE = "MENZIL_SECRET_KEY"
_MARK = "$encrypted"
_NONCE = 12
_HOW = (
    "A key is 32 random bytes in base64, for instance from `openssl rand -base64 32`; several are separated by commas."
)


class SecretKeys:
    """The first key encrypts, all of them decrypt. Its repr shows none of them."""

    def __init__(self, text: str) -> None:
        """Read keys as the environment has them: base64, separated by commas."""
        keys = [_read_key(part.strip()) for part in text.split(",") if part.strip()]
        self._keys = {_key_id(key): key for key in keys}

    def __bool__(self) -> bool:
        return bool(self._keys)

    def __repr__(self) -> str:
        return f"SecretKeys({', '.join(self._keys)})"

    def encrypt(self, value: str, endpoint: str, path: tuple[str, ...]) -> dict[str, str]:
        """Encrypt one secret for one place."""
        number, key = next(iter(self._keys.items()))
        nonce = os.urandom(_NONCE)
        sealed = nonce + _cipher(key).encrypt(nonce, value.encode("utf-8"), _bound_to(endpoint, path))
        return {_MARK: f"v1:{number}:{base64.b64encode(sealed).decode('ascii')}"}

    def decrypt(self, value: object, endpoint: str, path: tuple[str, ...], shown: str) -> str:
        """Decrypt one secret of one place, or raise SecretError."""
        what = f"The secret {shown} of endpoint {endpoint!r}"
        version, number, sealed = _parts(value)
        if version != "v1":
            raise SecretError(
                f"{what} is encrypted in a way that this worker does not know.", hint="Upgrade the worker."
            )
        if number not in self._keys:
            has = "has no key" if not self._keys else f"has only {', '.join(self._keys)}"
            raise SecretError(f"{what} is encrypted with key {number}, but this worker {has}.")
        try:
            raw = base64.b64decode(sealed, validate=True)
            opened: bytes = _cipher(self._keys[number]).decrypt(raw[:_NONCE], raw[_NONCE:], _bound_to(endpoint, path))
        except UsageError:
            raise
        except Exception:  # of the library; its text may hold a secret, so it is not logged
            raise SecretError(f"{what} does not decrypt: it was changed, or belongs to another place.") from None
        return opened.decode("utf-8")


def secret_keys(given: str | None) -> SecretKeys:
    """Return the keys that were given, or else those of the environment; an empty text is not a key."""
    return SecretKeys(os.environ.get(VARIABLE, "") if given is None else given)


def encrypt_config(config: Mapping[str, Any], endpoint: str, keys: SecretKeys) -> Mapping[str, Any]:
    """Return the config with its secrets encrypted; marks, encrypted secrets and what is no text stay as they are."""

    def change(path: tuple[str, ...], shown: str, rule: Rule, value: object) -> object:
        if not isinstance(value, str):
            return value
        check_secret(shown, rule, value)
        return keys.encrypt(value, endpoint, path)

    return change_secrets(config, change) if keys and isinstance(config, Mapping) else config


def decrypt_config(config: Mapping[str, Any], endpoint: str, keys: SecretKeys) -> Mapping[str, Any]:
    """Return the config as it was before it was encrypted, or raise SecretError, which names the place and no value."""

    def change(path: tuple[str, ...], shown: str, _: Rule, value: object) -> object:
        return keys.decrypt(value, endpoint, path, shown) if is_encrypted(value) else value

    return change_secrets(config, change)


def is_encrypted(value: object) -> bool:
    """Whether a value of a config is an encrypted secret."""
    return isinstance(value, Mapping) and set(value) == {_MARK}


def _parts(value: object) -> tuple[str, str, str]:
    text = value.get(_MARK) if isinstance(value, Mapping) else None
    parts = text.split(":", 2) if isinstance(text, str) else []
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else ("", "", "")


def _bound_to(endpoint: str, path: tuple[str, ...]) -> bytes:
    return json.dumps(["menzil", "v1", endpoint, *path]).encode("ascii")


def _key_id(key: bytes) -> str:
    from hashlib import sha256

    return sha256(b"menzil secret key:" + key).hexdigest()[:8]


def _read_key(text: str) -> bytes:
    try:
        key = base64.b64decode(text, altchars=b"-_" if set("-_") & set(text) else None, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != 32:
        raise UsageError("A secret key is not 32 bytes in base64.", hint=_HOW)
    return key


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise UsageError(
            "Encrypted secrets need the package cryptography, which is not installed.",
            hint="pip install 'menzil[secrets]'",
        ) from None
    return AESGCM(key)
