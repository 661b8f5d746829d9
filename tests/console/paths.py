"""Every page, with something in its path and its query that is there."""

from __future__ import annotations

from menzil.console.pages import all_pages
from menzil.console.texts import slug
from tests.console.conftest import Full


def paths(full: Full) -> dict[str, str]:
    """Where every page is, by its pattern. A page that is not named here fails the test that asks for all of them."""
    ids = full.ids
    known = {
        "/": "/?window=48h",
        "/channels": "/channels?sort=oldest",
        "/channels/{name}": f"/channels/{slug('billing')}",
        "/turns": "/turns",
        "/messages": "/messages?q=status%3Apending",
        "/messages/{id}": f"/messages/{ids.waiting}",
        "/compare": f"/compare?a={ids.waiting}&b={ids.exact}",
        "/health": "/health",
        "/workers": "/workers",
        "/audit": "/audit",
        "/endpoints/{name}": "/endpoints/crm?window=24h",
        "/dead/{hash}": f"/dead/{ids.cause}",
        "/plans/{id}": f"/plans/{ids.plan}",
        "/events": "/events?type=order.paid&payload=%7B%22order%22%3A1%7D",
    }
    return {page.path: known.get(page.path, page.path) for page in all_pages()}


#: Pages that an empty database has, too.
def lists() -> list[str]:
    return sorted(page.path for page in all_pages() if "{" not in page.path)
