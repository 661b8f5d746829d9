"""AWS Signature Version 4. Signed are the host, the content type, the body, and the headers that begin with x-amz."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from urllib.parse import quote, unquote_to_bytes

_ALGORITHM = "AWS4-HMAC-SHA256"
_UNRESERVED = "-_.~"  # with letters and digits: all that AWS leaves unescaped


@dataclass(frozen=True, slots=True)
class SigV4:
    """The keys of one endpoint."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    region: str
    service: str
    session_token: str | None = field(default=None, repr=False)

    def headers(
        self, method: str, path_and_query: str, headers: Mapping[str, str], body: bytes, now: datetime
    ) -> dict[str, str]:
        """Return the headers to add. `headers` are those of the request, their names in lower case, host included."""
        stamp = now.strftime("%Y%m%dT%H%M%SZ")
        digest = sha256(body).hexdigest()
        added = {"x-amz-date": stamp}
        if self.service == "s3":
            added["x-amz-content-sha256"] = digest
        if self.session_token:
            added["x-amz-security-token"] = self.session_token
        signed = {name: value for name, value in headers.items() if name in ("host", "content-type")}
        signed |= {name: value for name, value in headers.items() if name.startswith("x-amz-")} | added
        names = ";".join(sorted(signed))
        path, _, query = path_and_query.partition("?")
        lines = [f"{name}:{' '.join(signed[name].split())}" for name in sorted(signed)]
        request = [method, self._path(path), _sorted(query), *lines, "", names, digest]
        scope = f"{stamp[:8]}/{self.region}/{self.service}/aws4_request"
        text = "\n".join([_ALGORITHM, stamp, scope, sha256("\n".join(request).encode()).hexdigest()])
        made = hmac.digest(self._key(stamp[:8]), text.encode(), "sha256").hex()
        credential = f"{self.access_key_id}/{scope}"
        added["authorization"] = f"{_ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={made}"
        return added

    def _key(self, day: str) -> bytes:
        key = f"AWS4{self.secret_access_key}".encode()
        for part in (day, self.region, self.service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return key

    def _path(self, path: str) -> str:
        # All services but S3 sign the path with its dots resolved and its escapes escaped once more. S3 signs the name
        # of the object, escaped once by AWS's rule, however the URL spells it.
        if self.service == "s3":
            return quote(unquote_to_bytes(path), safe=f"/{_UNRESERVED}")
        kept: list[str] = []
        for segment in path.split("/"):
            if segment == "..":
                kept = kept[:-1]
            elif segment and segment != ".":
                kept.append(segment)
        slash = "/" if kept and path.endswith("/") else ""
        return quote("/" + "/".join(kept) + slash, safe="/~")


def respelled(path_and_query: str) -> str:
    """Return the path with a query whose escapes are those of AWS: this is sent, so that AWS reads what was signed.

    AWS compares a query as it would spell it: everything but unreserved characters escaped, in upper case. A plus is a
    space there, as in a form. The order stays, and a name without an equals sign stays without.
    """
    path, mark, query = path_and_query.partition("?")
    return f"{path}{mark}{'&'.join(f'{name}{equals}{value}' for name, equals, value in _pairs(query))}"


def _pairs(query: str) -> list[tuple[str, str, str]]:
    parts = (part.partition("=") for part in query.split("&") if part)
    return [(_escaped(name), equals, _escaped(value)) for name, equals, value in parts]


def _escaped(text: str) -> str:
    return quote(unquote_to_bytes(text.replace("+", " ")), safe=_UNRESERVED)


def _sorted(query: str) -> str:
    return "&".join(f"{name}={value}" for name, value in sorted((name, value) for name, _, value in _pairs(query)))
