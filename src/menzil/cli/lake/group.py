"""The commands of `menzil lake`. Listing them imports no library."""

from __future__ import annotations

import click

from menzil.cli.lazy import LazyGroup, Place

PLACES: dict[str, Place] = {
    "register": Place("menzil.cli.lake.register:register", "Make a lake known to a database that does not know it."),
    "serve": Place("menzil.cli.lake.serve:serve", "Serve a read-only Iceberg REST catalog to other engines."),
}


@click.group(cls=LazyGroup, places=PLACES)
def lake() -> None:
    """Serve the lake to other engines, and make it known to a database.

    The lake is an extra: pip install 'menzil[lake]'.
    """
