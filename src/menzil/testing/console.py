"""A real console of the database of a test, served in the process of the test. Needs the extra `console`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from menzil.console import demand_extra
from menzil.model.errors import UsageError

if TYPE_CHECKING:
    from menzil.console.access import Role

#: A machine's proxy knows nothing of a port of loopback.
_OPENER = build_opener(ProxyHandler({}))


@dataclass
class ServedConsole:
    """Listens on a free port of this machine. A browser needs no login there; `role` says what it may see and do."""

    url: str
    token: str  # for programs that act: Authorization: Bearer TOKEN
    name: str = "tester"
    role: Role = "admin"

    def json(self, path: str) -> Any:
        """Read the JSON of a page, as in json("/channels.json")."""
        if ".json" not in path:
            raise UsageError(f"{path!r} is not the JSON of a page.", hint="write .json behind the path of the page")
        try:
            with _OPENER.open(self.url + path.lstrip("/"), timeout=60) as answer:
                return json.load(answer)
        except HTTPError as error:
            with error:
                said = error.read().decode(errors="replace")
            raise AssertionError(f"The console answered {path} with {error.code}: {said[:1000]}") from None


@contextmanager
def served_console(dsn: str) -> Iterator[ServedConsole]:
    """Serve a console of this database."""
    demand_extra()
    from starlette.requests import Request

    from menzil.console import Access, Console, tokens
    from menzil.console.door import Door, Visit
    from menzil.console.running import served
    from menzil.console.signing import Signer

    class OpenDoor(Door):
        """Lets a browser in without a login, and a program with its token."""

        async def enter(self, request: Request) -> Visit:
            # Viewers share an answer for two seconds. A test wants to see what it has just sent.
            app.desk.shared.forget()
            access = Access(console.name, console.role)
            program = self._bearer(request)
            return self._visit(access if program is None else program.access, self.sessions.read(request))

    token, line = tokens.make("tester", "operator")
    signer = Signer(None)
    door = OpenDoor(signer, tokens=tokens.read_tokens([line]), authorize=None, local=None)
    app = Console(dsn, signer=signer, door=door)
    with served(app) as port:
        console = ServedConsole(f"http://127.0.0.1:{port}/", token)
        yield console
