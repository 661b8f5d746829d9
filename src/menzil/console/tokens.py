"""Tokens of the console: written down as `name:role:sha256`, so that who reads the file cannot log in."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from menzil.console.access import ROLES, Access
from menzil.model.errors import UsageError

_DIGEST = re.compile(r"[0-9a-f]{64}")
_HOW = "write name:role:sha256, as `menzil console --new-token NAME:ROLE` prints it"

#: Longer than any token of ours; what is longer is not hashed.
LONGEST = 512


@dataclass(frozen=True, slots=True)
class Token:
    """Whose it is, and the SHA-256 of it in hexadecimal digits."""

    access: Access
    digest: str

    @property
    def mark(self) -> str:
        """What a session remembers of it: a session ends when its token is taken off the list."""
        return self.digest[:16]


def read_tokens(lines: Iterable[str]) -> list[Token]:
    """Read one token a line; empty lines and those that begin with # are left out."""
    found = [_read(line.strip()) for line in lines if line.strip() and not line.strip().startswith("#")]
    digests = [token.digest for token in found]
    if len(set(digests)) != len(digests):
        raise UsageError("Two lines of the token list hold the same token.", hint="give each person a token")
    return found


def _read(line: str) -> Token:
    name, _, rest = line.partition(":")
    role, _, digest = rest.partition(":")
    role, digest = role.strip(), digest.strip().lower()
    # The error does not repeat the line: it may hold a token that was pasted in place of its digest.
    if not _DIGEST.fullmatch(digest):
        raise UsageError("A token of the console is not written as name:role:sha256.", hint=_HOW)
    if role not in ROLES:
        raise UsageError(f"{role!r} is not a role of the console.", hint=f"use one of {', '.join(ROLES)}")
    return Token(Access(name.strip(), role), digest)


def find(tokens: Iterable[Token], given: str) -> Token | None:
    """The token that was given, if it is on the list; the time this takes does not depend on which one it is."""
    digest = hashlib.sha256(given[:LONGEST].encode("utf-8", "surrogatepass")).hexdigest()
    found = [token for token in tokens if hmac.compare_digest(token.digest, digest)]
    return found[0] if found and len(given) <= LONGEST else None


def make(name: str, role: str) -> tuple[str, str]:
    """A new token, and its line for the list."""
    token = f"mz_{secrets.token_urlsafe(32)}"
    line = f"{name}:{role}:{hashlib.sha256(token.encode()).hexdigest()}"
    read_tokens([line])
    return token, line
