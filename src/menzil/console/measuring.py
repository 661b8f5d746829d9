"""/metrics: the numbers of the exporter, behind a token of its own. Off unless a token is set or this machine asks."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response

from menzil.console.database import Seen
from menzil.console.desk import Desk
from menzil.console.guards import RefusedRequestError
from menzil.console.hosts import is_loopback
from menzil.model.errors import UsageError
from menzil.ops.op import Op
from menzil.telemetry.exporter import render

T = TypeVar("T")

#: Seconds for one scrape.
SCRAPE = 10.0


def check_digest(digest: str | None) -> None:
    """Refuse what is not the SHA-256 of a token; the error does not repeat it."""
    if digest is not None and not re.fullmatch(r"[0-9a-f]{64}", digest.lower()):
        hint = "take the sha256 of a line that `menzil console --new-token NAME:viewer` prints"
        raise UsageError("The token of /metrics is not given as its SHA-256 in hexadecimal digits.", hint=hint)


class Measuring:
    """The route of the metrics, and how the exporter asks: each Op in a bounded transaction of its own."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def metrics(self, request: Request) -> Response:
        """Answer clients with the token; without a token, this machine alone."""
        self.demand(request)
        kind, body = await self._desk.thread(lambda: render(self.run, request.headers.get("accept")))
        return Response(body, headers={"Content-Type": kind})

    def run(self, op: Op[T]) -> T:
        """Run an Op for the exporter."""
        return self._desk.database.read(lambda run: run(op), time.monotonic() + SCRAPE, Seen())

    def demand(self, request: Request) -> None:
        """Refuse who does not have the token."""
        digest, address = self._desk.options.metrics_token, request.client.host if request.client else ""
        if digest is None:
            # Behind a proxy on this machine every request seems to come from here; a proxy says that it is one.
            direct = is_loopback(address) and not {"x-forwarded-for", "forwarded"} & set(request.headers)
            if not (self._desk.options.metrics_open and direct):
                raise RefusedRequestError(404, "There is no such page.", "Give --metrics-token to serve /metrics.")
            return
        wait = self._desk.door.failures.wait(address)
        if wait:
            raise RefusedRequestError(429, "Too many failed logins.", f"Try again in {wait:.0f} seconds.")
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        found = hashlib.sha256(given.strip().encode("utf-8", "surrogatepass")).hexdigest()
        if scheme.lower() != "bearer" or not hmac.compare_digest(found, digest.lower()):
            if given:
                self._desk.door.failures.add(address)
            raise RefusedRequestError(401, "The metrics need their token.", "Send it as Authorization: Bearer.")
