"""AWS Signature Version 4. Signed are the host, the content type, the body, and the headers that begin with x-amz."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from urllib.parse import quote

_ALGORITHM = "AWS4-HMAC-SHA256"


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
        request = [method, self._path(path), _query(query), *lines, "", names, digest]
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
        # All services but S3 sign the path with its dots resolved and its escapes escaped once more.
        if self.service == "s3":
            return path
        kept: list[str] = []
        for segment in path.split("/"):
            if segment == "..":
                kept = kept[:-1]
            elif segment and segment != ".":
                kept.append(segment)
        slash = "/" if kept and path.endswith("/") else ""
        return quote("/" + "/".join(kept) + slash, safe="/~")


def _query(query: str) -> str:
    pairs = [part.partition("=") for part in query.split("&")] if query else []
    return "&".join(f"{name}={value}" for name, value in sorted((name, value) for name, _, value in pairs))
