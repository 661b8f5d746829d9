"""Names in the path of a page that are not there, and the nearest one that is."""

from __future__ import annotations

from difflib import get_close_matches

from menzil.console.parts import NotThereError
from menzil.ops import looking
from menzil.watch.finding import Run

#: Names among which the nearest is looked for.
MOST_NAMES = 10_000


def demand_channel(run: Run, name: str) -> None:
    """Refuse a name that no channel has. Asked first: a refusal of the database would end the transaction."""
    if "\x00" not in name and run(looking.channel(name)) is not None:
        return
    known = [str(row["name"]) for row in run(looking.channels(MOST_NAMES))]
    near = get_close_matches(name, known, 1)
    raise NotThereError(f"There is no channel named {name!r}.", hint=f"Did you mean {near[0]}?" if near else None)
