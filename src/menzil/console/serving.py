"""Serves pages and their twins: all parts at once, a bound on the whole, and 304 where nothing has changed."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from difflib import get_close_matches

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from menzil.console import documents, parts
from menzil.console.access import Payloads
from menzil.console.database import PAGE
from menzil.console.desk import Desk, is_live, root_of, url
from menzil.console.door import Visit
from menzil.console.guards import RefusedRequestError
from menzil.console.page import Page, Shown
from menzil.console.parts import Answer, Look
from menzil.console.render import render
from menzil.console.shared import OPEN, OPENED, is_slow
from menzil.console.sheets import Sheet
from menzil.console.texts import unslug
from menzil.watch.finding import Run

#: Seconds that a page must have left to ask once more for what another page had no time for.
LEFT = 0.5

Handler = Callable[[Request], Awaitable[Response]]


def page_handler(desk: Desk, page: Page) -> Handler:
    """The page in HTML."""

    async def serve(request: Request) -> Response:
        visit, shown, sees = await _shown(desk, page, request, stand_in=True)
        _demand(shown)
        acts = desk.acts(visit.access)
        tag = _tag(shown, acts)
        live = is_live(request)
        if live and request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag, "X-Menzil-As-Of": _as_of(shown)})
        sheet = _sheet(desk, page, shown, acts, sees, root_of(request.scope))
        values = {
            "main": sheet.main,
            "title": sheet.title,
            "search": sheet.search,
            "live": page.live,
            "as_of": shown.at,
            "ms": shown.ms,
            "age": shown.age,
            "nav_path": page.nav or page.path,
            "json_path": _twin(request, page, shown),
        }
        response = desk.html(request, "fragment.html" if live else "page.html", values, visit)
        response.headers["ETag"] = tag
        return response

    return serve


def twin_handler(desk: Desk, page: Page) -> Handler:
    """The page in JSON."""

    async def serve(request: Request) -> Response:
        _refuse_unknown(page, request)
        visit, shown, _ = await _shown(desk, page, request)
        troubles = {name: one.sentence for name, one in shown.troubles.items()}
        _demand(shown)
        wrong = next((one for one in shown.troubles.values() if one.wrong), None)
        if wrong is not None and request.query_params:
            raise RefusedRequestError(400, wrong.sentence, wrong.hint)
        document = page.twin(shown)
        # Where nothing at all was found out, status 200 would say that there is nothing.
        if troubles and isinstance(document, dict) and len(troubles) < len(shown.answers):
            document = {**document, "troubles": troubles}
        elif troubles:
            first = next(iter(shown.troubles.values()))
            raise RefusedRequestError(503, first.sentence, first.hint)
        response = Response(documents.dumps(document), media_type="application/json")
        desk.keep(request, response, visit)
        return response

    return serve


async def _shown(desk: Desk, page: Page, request: Request, *, stand_in: bool = False) -> tuple[Visit, Shown, Payloads]:
    """What the parts found; with `stand_in` older answers where time is missing, for a page that says how old it is."""
    deadline = time.monotonic() + PAGE  # for all that this page asks, the rules for payloads among it
    visit = await desk.door.enter(request)
    if not visit.access.may(page.role):
        raise RefusedRequestError(403, f"This page needs the role {page.role}.", f"Yours is {visit.access.role}.")
    rules = await desk.rules(deadline)
    path = {name: unslug(value) for name, value in request.path_params.items()}
    query = dict(request.query_params)
    sees = visit.access.sees(rules.payloads)
    most_age = OPEN if is_live(request) else OPENED

    async def one(name: str) -> tuple[str, Answer]:
        part = page.parts[name]
        words = {word: value for word, value in query.items() if parts.reads(part, word)}

        def look(run: Run) -> Look:
            return Look(run, path, words, sees, lambda: rules.redactor, desk.options.lake)

        # What counts as a secret is in the answer: after a change of the setting the one made before it is of no use.
        hidden = (repr(rules.redactor), bool(rules.redactor.faults))
        key = (page.path, name, tuple(sorted(path.items())), tuple(sorted(words.items())), sees, hidden)

        def work() -> Answer:
            return parts.ask(desk.database, part, look, deadline)

        async def ask() -> Answer:
            left, soon = max(deadline - time.monotonic(), 0.01), parts.is_soon(part)
            return await desk.ask(key, work, left, most_age, soon=soon, stand_in=stand_in and not desk.database.down)

        try:
            answer = await ask()
            if is_slow(answer) and deadline - time.monotonic() > LEFT:  # it was the time of another page
                answer = await ask()
            return name, answer
        except TimeoutError:
            return name, parts.late(desk.database.down)

    answers = dict(await asyncio.gather(*map(one, page.parts)))
    return visit, Shown(answers, path, dict(request.query_params), visit.access), sees


def _refuse_unknown(page: Page, request: Request) -> None:
    """Refuse what this page does not read: a misspelled filter would return everything, with status 200."""
    for word in request.query_params:
        if word not in page.asks:
            near = get_close_matches(word, page.asks, 1)
            known = f"It reads {', '.join(page.asks)}." if page.asks else "It reads none."
            hint = f"Did you mean {near[0]}?" if near else known
            raise RefusedRequestError(400, f"This page does not read the query word {word!r}.", hint)
    for word, choices in page.choices.items():
        given = request.query_params.get(word, "").strip()
        if given and given not in choices:
            raise RefusedRequestError(400, f"{word} is not {given[:40]!r}.", f"It is one of {', '.join(choices)}.")


def _demand(shown: Shown) -> None:
    """Refuse a page about something that does not exist."""
    for one in shown.answers.values():
        if one.missing and one.trouble:
            raise RefusedRequestError(404, one.trouble.sentence, one.trouble.hint)


def _tag(shown: Shown, acts: frozenset[str]) -> str:
    """A mark of what is shown, and to whom."""
    found = {name: one.mark for name, one in shown.answers.items()}
    text = documents.dumps([found, sorted(acts), shown.access.role])
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:24]}"'


def _sheet(desk: Desk, page: Page, shown: Shown, acts: frozenset[str], sees: Payloads, root: str) -> Sheet:
    """The inner part of the page. Who looks is not in the key, and the template does not get to know it."""

    def draw() -> Sheet:
        values = page.prepare(shown) | {
            "p": {name: one.value for name, one in shown.answers.items()},
            "troubles": shown.troubles,
            "path": shown.path,
            "query": shown.query,
            "sees": sees,
        }
        missing = [one.trouble for one in shown.answers.values() if one.trouble is not None and one.trouble.whole]
        if len(missing) == len(shown.answers):
            main = render("no_database.html", desk.impersonal(root, acts) | values | {"missing": missing[0]})
        else:
            main = render(page.template, desk.impersonal(root, acts) | values)
        return Sheet(Markup(main), values["title"], values.get("search", ""))  # autoescaped by the template

    found = tuple((name, one.mark, one.at) for name, one in shown.answers.items())
    words = tuple(sorted(shown.path.items())), tuple(sorted(shown.query.items()))
    return desk.sheets.get((page.path, *words, found, sees, acts, root), draw)


def _as_of(shown: Shown) -> str:
    return f"{shown.at:%H:%M:%S} {shown.ms:.0f} {shown.age:.0f}"


def _twin(request: Request, page: Page, shown: Shown) -> str:
    path = page.json_path
    for name, value in request.path_params.items():
        path = path.replace(f"{{{name}}}", str(value))
    return url(request, path, **{word: value for word, value in shown.query.items() if word in page.asks})
