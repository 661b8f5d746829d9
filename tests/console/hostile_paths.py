"""Addresses of every route of a console before a hostile queue. A route that is not named here fails the test."""

from __future__ import annotations

import re
from urllib.parse import quote, urlencode

from starlette.routing import Route

from menzil.console import Console
from menzil.console.acts import all_acts
from menzil.console.pages import all_pages
from menzil.console.texts import slug
from tests.console.attacks import ALL, TEXTS
from tests.console.hostile import Hostile

#: Words of a query that any page reads; a test finds a word that is missing here.
WORDS = (
    "a", "actor", "after", "b", "before", "contains", "endpoint", "entity", "held", "limit", "message", "payload", "q",
    "redaction", "sort", "type", "via", "what", "window",
)  # fmt: skip

#: Routes that show nothing of a stranger, or that have tests of their own.
OTHERS = {
    "/healthz", "/metrics", "/static/{name}", "/theme/{theme}", "/login", "/logout", "/acts/{act}/do",
    "/acts/{act}/done",
}  # fmt: skip


def routes(console: Console) -> dict[str, set[str]]:
    """Every path of the router with its methods."""
    found: dict[str, set[str]] = {}
    for route in console._router.routes:
        assert isinstance(route, Route)
        found.setdefault(route.path, set()).update(route.methods or ())
    return found


def values(hostile: Hostile) -> dict[str, list[str]]:
    """What the places in paths can be: one for each attack."""
    numbers = range(len(TEXTS))
    return {
        "/channels/{name}": [slug(text) for text in TEXTS],
        "/endpoints/{name}": ["pigeons", *(slug(hostile.endpoint(number)) for number in numbers)],
        "/messages/{id}": [*map(str, hostile.dead), str(hostile.waiting[0])],
        "/dead/{hash}": hostile.causes,
        "/plans/{id}": list(map(str, hostile.plans)),
    }


def pages(hostile: Hostile, console: Console) -> dict[str, list[str]]:
    """Addresses of every page by its pattern, and of every twin by its pattern."""
    known, found = values(hostile), {}
    for page in all_pages():
        for pattern in (page.path, page.json_path):
            assert pattern in routes(console)
            place = re.sub(r"\{\w+\}", "{}", pattern)
            inside = known[page.path] if "{" in page.path else [""]
            found[pattern] = [f"{place.format(value)}?limit=200" for value in inside]
    twice = f"a={hostile.dead[0]}&b={hostile.waiting[0]}"
    found["/compare"] = [f"/compare?{twice}", f"/compare?redaction={hostile.waiting[0]}"]
    found["/compare.json"] = [f"/compare.json?{twice}"]
    catalog = {
        path for path in routes(console) if path.startswith("/iceberg/")
    }  # answers JSON, and has a test of its own
    missing = set(routes(console)) - set(found) - OTHERS - catalog - {"/acts/{act}"}
    assert missing == set(), f"no test looks at {missing}"
    return found


def asked(text: str) -> dict[str, str]:
    """Every page with an attack in every word of its query, and one about something that is not there."""
    words = urlencode(dict.fromkeys(WORDS, text))
    found = {}
    for page in all_pages():
        for pattern in (page.path, page.json_path):
            found[pattern] = re.sub(r"\{\w+\}", quote(text, safe=""), pattern) + f"?{words}"
    return found


def acts(text: str) -> dict[str, dict[str, str]]:
    """Every act with an attack in every field."""
    return {name: {field.name: text for field in act.fields} for name, act in all_acts().items()}


__all__ = ["ALL", "WORDS", "acts", "asked", "pages", "routes", "values"]
