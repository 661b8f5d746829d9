"""The commands of `menzil lake`. Listing them imports no library."""

from __future__ import annotations

import click

from menzil.cli.lazy import LazyGroup, Place

PLACES: dict[str, Place] = {
    "adopt": Place("menzil.cli.lake.adopt:adopt", "Take over a lake of menzil 0.1, without writing it again."),
    "register": Place("menzil.cli.lake.register:register", "Make a lake known to a database that does not know it."),
    "serve": Place("menzil.cli.lake.serve:serve", "Serve a read-only Iceberg REST catalog to other engines."),
    "sweep": Place("menzil.cli.lake.sweep:sweep", "Let old snapshots go, and files that nothing names."),
}


@click.group(cls=LazyGroup, places=PLACES)
def lake() -> None:
    """Serve the lake to other engines, make it known to a database, take over an old one, clean up.

    The lake is an extra: pip install 'menzil[lake]'.
    """
