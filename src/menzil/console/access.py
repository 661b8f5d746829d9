"""Who looks, and what they may see and do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from menzil.model.errors import UsageError

Role = Literal["viewer", "reader", "operator", "admin"]

#: What of a message's body and headers is shown: all of it, all but secrets, or nothing.
Payloads = Literal["show", "redact", "hide"]

#: From the least to the most: each role may do what those before it may.
ROLES: tuple[Role, ...] = get_args(Role)
PAYLOADS: tuple[Payloads, ...] = get_args(Payloads)


@dataclass(frozen=True, slots=True)
class Access:
    """A person and a role: viewer (no payloads), reader (redacted ones), operator (acts), admin (settings, secrets)."""

    name: str
    role: Role

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise UsageError(f"{self.role!r} is not a role of the console.", hint=f"use one of {', '.join(ROLES)}")
        if not self.name or not self.name.isprintable() or len(self.name) > 200:
            raise UsageError("A name of the console has 1 to 200 printable characters.")

    @classmethod
    def viewer(cls, name: str) -> Access:
        """May look at counts, states and times; sees no payload."""
        return cls(name, "viewer")

    @classmethod
    def reader(cls, name: str) -> Access:
        """Sees payloads with their secrets redacted, too."""
        return cls(name, "reader")

    @classmethod
    def operator(cls, name: str) -> Access:
        """May act: redrive, cancel, pause, change limits."""
        return cls(name, "operator")

    @classmethod
    def admin(cls, name: str) -> Access:
        """May change settings and rotate secrets, too."""
        return cls(name, "admin")

    def may(self, role: Role) -> bool:
        """Whether this role includes the other one."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def sees(self, allowed: Payloads) -> Payloads:
        """What of payloads this role sees where the console allows so much."""
        if self.role == "viewer":
            return "hide"
        return "redact" if self.role == "reader" and allowed == "show" else allowed
