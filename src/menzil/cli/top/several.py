"""Frames of several databases as JSON: a line a second, with a key for each database."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import click
import psycopg

from menzil.cli.lazy import COULD_NOT, explained
from menzil.cli.top.link import Link
from menzil.cli.top.plain import STEP
from menzil.model import exact
from menzil.model.errors import MenzilError
from menzil.watch.frame import frame


def watch_all(links: Mapping[str, Link], *, sort: str, contains: str, only_one: bool) -> None:
    """Print a line with the frame of each database, or with the reason why there is none; once or every second."""

    def look(link: Link) -> Any:
        try:
            return link.ask(lambda run: frame(run, sort=sort, contains=contains))
        except (MenzilError, psycopg.Error) as error:
            told = error if isinstance(error, MenzilError) else explained(error)
            return {"error": told.message, "hint": told.hint}

    with ThreadPoolExecutor(len(links), "menzil-top") as threads:
        while True:
            begun = time.monotonic()
            found = dict(zip(links, threads.map(look, links.values()), strict=True))
            click.echo(exact.dumps(found, default=exact.plain))
            if only_one:
                break
            time.sleep(max(STEP - (time.monotonic() - begun), 0.05))
    if any("error" in one for one in found.values()):
        click.get_current_context().exit(COULD_NOT)
