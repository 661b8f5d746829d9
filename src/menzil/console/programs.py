"""Serves acts to programs: one request with a token does what a form, its plan and a button do for a person.

Only acts that say so, and only with `Authorization: Bearer`: a cookie does not count here, so no other site can make a
browser send such a request. A name that the act does not have, or that is there twice, is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from shlex import quote

import psycopg
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from menzil.console.act import Act, Done, Given
from menzil.console.acts import all_acts
from menzil.console.desk import Desk, url
from menzil.console.guards import RefusedRequestError, read_fields
from menzil.console.parts import explain
from menzil.model.errors import MenzilError, PermissionDeniedError, QueueFullError, RefusedError, UsageError
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
        fields = await read_fields(request)
        _check_names(act, [name for name, _ in fields])
        form = dict(fields)

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
            return JSONResponse({"error": trouble.sentence, "hint": trouble.hint}, _status(error))
        self._desk.forget()
        return JSONResponse(dict(done.answer))


def _status(error: MenzilError | psycopg.Error) -> int:
    """Programs try again after 503, and drop the message after 400: 400 is only for what the request has wrong."""
    if isinstance(error, PermissionDeniedError):
        return 403
    asks_for_it = isinstance(error, UsageError | RefusedError) and not isinstance(error, QueueFullError)
    return 400 if asks_for_it else 503


def _check_names(act: Act, given: Sequence[str]) -> None:
    names = [field.name for field in act.fields]
    for place, name in enumerate(given):
        if name in given[:place]:
            raise RefusedRequestError(400, f"The field {name!r} is there twice.", "Give each field once.")
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
