"""Names that are not there, and the nearest one that is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from shlex import quote

from menzil.model.errors import PermissionDeniedError, UnknownNameError
from menzil.ops import looking
from menzil.watch.finding import Run

#: Names among which the nearest is looked for.
MOST_NAMES = 10_000
LIST = "`menzil channel list` shows them all."


@contextmanager
def knowing_names(run: Run, name: str) -> Iterator[None]:
    """When the database does not know this name of a channel, say which one is nearest to it."""
    try:
        yield
    except UnknownNameError as error:
        with suppress(PermissionDeniedError):
            known = [str(row["name"]) for row in run(looking.channels(MOST_NAMES))]
            near = get_close_matches(name, known, 1)
            hint = error.hint or LIST
            if near:
                hint = f"Did you mean {near[0]}? {LIST}"
            elif "channel_set" in hint:  # the database speaks SQL, and the user is at a command line
                hint = (
                    f"Make it with `menzil channel set {quote(name)}`, or as an endpoint with `menzil endpoint create`."
                )
            raise UnknownNameError(error.message, hint=hint) from error
        raise
