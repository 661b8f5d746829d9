"""Serves acts to programs: one request with a token does what a form, its plan and a button do for a person.

Only acts that say so, and only with `Authorization: Bearer`: a cookie does not count here, so no other site can make a
browser send such a request. A name that the act does not have is refused: a misspelled option would be left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from shlex import quote

import psycopg
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from menzil.console.act import Act, Done, Given
from menzil.console.acts import all_acts
from menzil.console.desk import Desk, url
from menzil.console.guards import RefusedRequestError, read_form
from menzil.console.parts import explain
from menzil.model.errors import MenzilError
from menzil.ops import acting as noting
from menzil.watch.finding import Run


class Programs:
    """The routes /acts/NAME.json."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def act(self, request: Request) -> Response:
        """POST: do it, and answer with what the command line prints with --json."""
        access = self._desk.door.enter_program(request)
        act = all_acts().get(request.path_params["act"])
        if act is None or not act.by_program:
            able = ", ".join(name for name, one in all_acts().items() if one.by_program)
            raise RefusedRequestError(404, "There is no such act for programs.", f"There are: {able}.")
        if not access.may(act.role):
            raise RefusedRequestError(403, f"This needs the role {act.role}.", f"Yours is {access.role}.")
        form = await read_form(request)
        _check_names(act, form)

        def change(run: Run) -> Done:
            done = act.execute(run, given)
            if done.noted is not None:
                run(noting.note_act(act.name, *done.noted))
            return done

        try:
            given = act.read(form)
            done = await self._desk.act(lambda: self._desk.database.act(access.name, change))
        except (MenzilError, psycopg.Error) as error:
            trouble = explain(error)
            status = 400 if isinstance(error, MenzilError) else 503
            return JSONResponse({"error": trouble.sentence, "hint": trouble.hint}, status)
        self._desk.shared.forget()
        return JSONResponse(dict(done.answer))


def _check_names(act: Act, form: Mapping[str, str]) -> None:
    names = [field.name for field in act.fields]
    for name in form:
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(names)}."
            raise RefusedRequestError(400, f"{act.title} has no field {name!r}.", hint)


def curl(request: Request, act: Act, given: Given) -> list[tuple[str, str]]:
    """The request as a line for a shell, where programs may do this act."""
    if not act.by_program:
        return []
    address = f"{request.url.scheme}://{request.headers.get('host', '')}{url(request, f'/acts/{act.name}.json')}"
    fields = [f"--data-urlencode {quote(f'{name}={value}')}" for name, value in given.items() if value.strip()]
    words = ['-H "Authorization: Bearer $MENZIL_CONSOLE_TOKEN"', *fields]
    return [("curl", f"curl --fail-with-body {quote(address)} \\\n  " + " \\\n  ".join(words))]
