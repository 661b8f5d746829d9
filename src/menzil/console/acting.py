"""Serves acts: a form, its plan, the confirmation, one transaction, and a page that says what happened.

The plan travels with the person, sealed. It is made again when it is older than ten minutes, when its count has
moved by more than a tenth, or when a value that it changes is another one by now. A second click of the same form meets
the key of the first one in the inbox of the database, which several processes share, and does nothing.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import psycopg
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from menzil.console.act import Act, Done, Plan
from menzil.console.acts import all_acts
from menzil.console.database import FORM
from menzil.console.desk import Desk, url
from menzil.console.door import Visit
from menzil.console.guards import RefusedRequestError, demand_same_origin, joined, read_form
from menzil.console.parts import Trouble, explain
from menzil.console.programs import curl
from menzil.model.errors import MenzilError
from menzil.ops import acting as noting
from menzil.ops import seat, working
from menzil.watch.finding import Run

#: Seconds a plan is good for, and results that are kept to be shown.
GOOD_FOR, MOST_RESULTS = 600, 1_000

#: The name under which the inbox keeps the keys of forms.
CONSUMER = "menzil-console"


class _OutdatedError(Exception):
    """What a plan said would change is not what would change now."""


class Acting:
    """The routes below /acts/."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._results: OrderedDict[tuple[str, str], tuple[Act, Mapping[str, str], Done]] = OrderedDict()

    async def form(self, request: Request) -> Response:
        """GET: the form, or its plan at once where the link named every field."""
        visit, act = await self._enter(request)
        query = joined(request.query_params.multi_items())
        if not act.complete(query):
            return self._form(request, visit, act, {**await self._prefilled(act, query), **query})
        return await self._planned(request, visit, act, query)

    async def plan(self, request: Request) -> Response:
        """POST: the plan of a form that a person filled in."""
        visit, act = await self._enter(request)
        form = await self._read(request, visit, f"plan {act.name}")
        if "edit" in form:  # back from the plan: what was written travels in the body, never in an address
            sealed = self._desk.signer.open(self._purpose(act, visit), form.get("plan", ""))
            return self._form(request, visit, act, sealed["given"] if sealed else {})
        return await self._planned(request, visit, act, form)

    async def do(self, request: Request) -> Response:
        """POST: the plan is confirmed."""
        visit, act = await self._enter(request)
        form = await self._read(request, visit, f"do {act.name}")
        sealed = self._desk.signer.open(self._purpose(act, visit), form.get("plan", ""))
        if sealed is None:
            raise RefusedRequestError(400, "This plan is not one that was shown to you.", "Make the plan again.")
        given = sealed["given"]
        if time.time() - sealed["made"] > GOOD_FOR:
            return await self._planned(request, visit, act, given, Trouble("The plan was older than 10 minutes."))
        if sealed["type"] and form.get("typed", "").replace(",", "").strip() != str(sealed["count"]):
            wrong = Trouble("The number you typed is not the number of the plan.")
            return await self._planned(request, visit, act, given, wrong)
        trouble = await self._execute(visit, act, sealed)
        if trouble is not None:
            return await self._planned(request, visit, act, given, trouble)
        return RedirectResponse(url(request, f"/acts/{act.name}/done", key=sealed["key"]), 303)

    async def done(self, request: Request) -> Response:
        """GET: what happened."""
        visit, act = await self._enter(request)
        found = self._results.get((visit.session.id, request.query_params.get("key", "")))
        values: dict[str, Any] = {"act": act, "done": None, "back": act.nav or "/", "title": act.title}
        if found is not None:
            _, given, done = found
            if done.once is not None:
                self._results[visit.session.id, request.query_params["key"]] = (act, given, replace(done, once=None))
            values |= {"done": done, "back": act.back(given)}
        return self._desk.html(request, "act_done.html", values | {"nav_path": act.nav}, visit)

    async def _enter(self, request: Request) -> tuple[Visit, Act]:
        visit = await self._desk.door.enter(request)
        act = all_acts().get(request.path_params["act"])
        if act is None:
            raise RefusedRequestError(404, "There is no such act.")
        if not visit.access.may(act.role):
            raise RefusedRequestError(403, f"This needs the role {act.role}.", f"Yours is {visit.access.role}.")
        return visit, act

    async def _read(self, request: Request, visit: Visit, what: str) -> Mapping[str, str]:
        demand_same_origin(request)
        form = await read_form(request)
        if not secrets.compare_digest(form.get("csrf", "").encode(), self._desk.csrf(visit, what).encode()):
            raise RefusedRequestError(403, "This form belongs to another session.", "Open it again, then send it.")
        return form

    def _form(
        self, request: Request, visit: Visit, act: Act, given: Mapping[str, str], trouble: Trouble | None = None
    ) -> Response:
        values = {
            "act": act, "given": given, "trouble": trouble, "csrf": self._desk.csrf(visit, f"plan {act.name}"),
            "back": act.back(given), "title": act.title, "nav_path": act.nav,
        }  # fmt: skip
        return self._desk.html(request, "act_form.html", values, visit, 200 if trouble is None else 400)

    async def _planned(
        self, request: Request, visit: Visit, act: Act, form: Mapping[str, str], trouble: Trouble | None = None
    ) -> Response:
        try:
            given = act.read(form)
            plan, statements = await self._desk.act(lambda: self._plan(act, given))
        except (MenzilError, psycopg.Error) as error:
            return self._form(request, visit, act, form, explain(error))
        sealed = {
            "given": given, "count": plan.count, "type": plan.must_type, "made": round(time.time()),
            "key": secrets.token_urlsafe(12), "mark": plan.mark,
        }  # fmt: skip
        values = {
            "act": act, "given": given, "plan": plan, "statements": statements, "trouble": trouble,
            "also": [*plan.also, *curl(request, act, given)] if self._desk.door.has_login else plan.also,
            "csrf": self._desk.csrf(visit, f"do {act.name}"), "back": act.back(given),
            "edit_csrf": self._desk.csrf(visit, f"plan {act.name}"), "title": act.title, "nav_path": act.nav,
            "sealed": self._desk.signer.seal(self._purpose(act, visit), sealed),
        }  # fmt: skip
        return self._desk.html(request, "act_plan.html", values, visit, 200 if trouble is None else 409)

    def _purpose(self, act: Act, visit: Visit) -> str:
        """What a plan is sealed for: this act, in this session, and in this database."""
        return f"plan {act.name} {visit.session.id} {self._desk.name}".rstrip()  # one database has no name

    async def _prefilled(self, act: Act, query: Mapping[str, str]) -> Mapping[str, str]:
        """What the fields hold already; nothing where that cannot be asked."""

        def ask(run: Run) -> Mapping[str, str]:
            return act.prefill(run, query)

        if not all(query.get(field.name) for field in act.fields if field.kind == "hidden"):
            return {}
        try:
            return await self._desk.act(lambda: self._desk.database.plan(ask, time.monotonic() + FORM))
        except (MenzilError, psycopg.Error):
            return {}

    def _plan(self, act: Act, given: Mapping[str, str]) -> tuple[Plan, list[str]]:
        def ask(run: Run) -> tuple[Plan, list[str]]:
            return act.plan(run, given), [seat.shown(op) for op in act.shown(run, given)]

        return self._desk.database.plan(ask, time.monotonic() + FORM)

    async def _execute(self, visit: Visit, act: Act, sealed: Mapping[str, Any]) -> Trouble | None:
        given, count, key = sealed["given"], sealed["count"], sealed["key"]

        def change(run: Run) -> Done | None:
            if not run(working.inbox_claim(CONSUMER, key)):
                return None
            if act.lists_changes and act.plan(run, given).mark != sealed["mark"]:
                raise _OutdatedError
            done = act.execute(run, given)
            if done.noted is not None:
                run(noting.note_act(act.name, *done.noted))
            return done

        def work() -> Done | Trouble | None:
            known = (visit.session.id, key) in self._results
            if not known and count is not None and self._plan(act, given)[0].moved(count):
                return Trouble("The count has moved by more than 10 % since the plan was made.")
            return self._desk.database.act(visit.access.name, change)

        try:
            found = await self._desk.act(work)
        except _OutdatedError:
            return Trouble(
                "A value that this plan changes is not what it was when the plan was made.", "Look at it again."
            )
        except (MenzilError, psycopg.Error) as error:
            return explain(error)
        if isinstance(found, Done):
            self._results[visit.session.id, key] = (act, given, found)
            while len(self._results) > MOST_RESULTS:
                self._results.popitem(last=False)
            self._desk.forget()
        return found if isinstance(found, Trouble) else None
