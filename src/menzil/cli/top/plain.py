"""Frames without textual: a table, printed once or once a second, and a JSON line per second for programs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click
import psycopg

from menzil.cli.show import cell, say, table
from menzil.cli.top.link import Link
from menzil.cli.top.views import Picture, View
from menzil.model import exact
from menzil.model.errors import ConnectionFailedError
from menzil.watch.frame import frame

#: Seconds from one frame to the next.
STEP = 1.0

_CLEAR = "\x1b[H\x1b[2J"


def show(picture: Picture, *, rows: int | None = None) -> None:
    """Print a picture; no more rows than a screen has."""
    for line in picture.lines:
        click.echo(cell(line))
    shown = picture.rows[:rows]
    if shown:
        table(shown, picture.columns)
    if len(shown) < len(picture.rows):
        say(f"{len(picture.rows) - len(shown)} more")


def once(link: Link, view: View) -> None:
    """Print one frame."""
    show(link.ask(view.look))


def frames(link: Link, view: View, *, height: int) -> None:
    """Print a frame a second over the one before, until the user interrupts."""

    def draw(picture: Picture) -> None:
        click.echo(_CLEAR, nl=False)
        show(picture, rows=max(height - len(picture.lines) - 3, 5))

    _each_second(lambda: draw(link.ask(view.look)))


def lines(link: Link, *, sort: str, contains: str, only_one: bool, plain: Callable[[Any], Any]) -> None:
    """Print a frame as one line of JSON, once or every second."""

    def draw() -> None:
        found = link.ask(lambda run: frame(run, sort=sort, contains=contains))
        click.echo(exact.dumps(found, default=plain))

    draw() if only_one else _each_second(draw)


def _each_second(draw: Callable[[], None]) -> None:
    lost = False
    while True:
        begun = time.monotonic()
        try:
            draw()
            lost = False
        except ConnectionFailedError as error:
            if not lost:
                say(f"{error.message} Trying again every second.")
            lost = True
        except psycopg.OperationalError as error:  # a lock or a slow statement is over in a moment
            say(f"A frame is missing: {str(error).splitlines()[0]}.")
        time.sleep(max(STEP - (time.monotonic() - begun), 0.05))
