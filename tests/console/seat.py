"""A console on loopback, run by uvicorn as `menzil console` runs it, and a browser that only speaks HTTP."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

from menzil.console import running


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes
    seconds: float

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def words(self) -> str:
        """The page as a person reads it: no tags, no entities."""
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", self.text)).split())

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    def field(self, name: str) -> str:
        """The value of a hidden field."""
        found = re.search(rf'name="{name}" value="([^"]*)"', self.text)
        assert found is not None, f"no field {name}: {self.words[:500]}"
        return unescape(found[1])


@dataclass
class Browser:
    """Keeps cookies, and says which site a form came from as browsers do."""

    port: int
    cookies: dict[str, str] = field(default_factory=dict)
    host: str = ""

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> Answer:
        named = {"Origin": f"http://{self.name}", "Sec-Fetch-Site": "same-origin"} | headers
        given = {name: value for name, value in named.items() if value}
        given.setdefault("Content-Type", "application/x-www-form-urlencoded")
        return self.ask("POST", path, urlencode(form).encode(), given)

    @property
    def name(self) -> str:
        return self.host or f"127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        began = time.monotonic()
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            sent = {"Host": self.name} | {name.replace("_", "-"): value for name, value in (headers or {}).items()}
            if self.cookies:
                sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
            conn.request(method, path, body, sent)
            answer = conn.getresponse()
            found = Answer(answer.status, answer.msg, answer.read(), time.monotonic() - began)
        finally:
            conn.close()
        for line in found.headers.get_all("Set-Cookie", []):
            for name, morsel in SimpleCookie(line).items():
                if morsel.value:
                    self.cookies[name] = morsel.value
                else:
                    self.cookies.pop(name, None)
        return found


@contextmanager
def served(app: Any) -> Iterator[Browser]:
    """Serve an application, and lend a browser that knows its port."""
    with running.served(app) as port:
        yield Browser(port)
