"""The navigation: where a page stands, and the key behind `g` that leads there."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """A word, where it leads, and its key."""

    name: str
    path: str
    key: str = ""


#: In groups, in the order in which they stand.
PLACES: tuple[tuple[Place, ...], ...] = (
    (Place("Overview", "/", "o"), Place("Channels", "/channels", "c"), Place("Turns", "/turns"),
     Place("Messages", "/messages", "m"), Place("Send", "/send")),
    (Place("Endpoints", "/endpoints", "e"), Place("Dead letters", "/dead", "d"), Place("Plans", "/plans", "p"),
     Place("Schedules", "/schedules"), Place("Events", "/events"), Place("Bridges", "/bridges")),
    (Place("Workers", "/workers", "w"), Place("Lake", "/lake"), Place("Health", "/health"), Place("Audit", "/audit"),
     Place("Settings", "/settings")),
)  # fmt: skip


def places(paths: set[str]) -> list[list[Place]]:
    """The navigation without pages that are not there."""
    groups = [[place for place in group if place.path in paths] for group in PLACES]
    return [group for group in groups if group]
