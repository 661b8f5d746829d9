"""`menzil top`: which of its forms fits the terminal and what is installed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from menzil.cli.database import demand, located
from menzil.cli.dsn import dsns_options, several_of
from menzil.cli.several import in_turn
from menzil.cli.show import say
from menzil.cli.top import plain
from menzil.cli.top.link import Link
from menzil.cli.top.several import watch_all
from menzil.cli.top.views import queue
from menzil.model.exact import plain as json_form
from menzil.watch.channels import SORTS

if TYPE_CHECKING:
    from menzil.cli.top.app import Top


@click.command()
@dsns_options
@click.option("--sort", type=click.Choice(list(SORTS)), default="oldest", show_default=True, help="The worst first.")
@click.option("--filter", "contains", default="", metavar="TEXT", help="Only channels with this text in their names.")
@click.option("--once", is_flag=True, help="Print one frame and end.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON every second; with --once, one line.")
def top(dsns: Sequence[str], dsn_file: Path | None, sort: str, contains: str, once: bool, as_json: bool) -> None:
    """Watch the queue: its channels, and what they wait for, every second.

    Keys: w o f r sort by what waits, the oldest, in flight, the rate; / filters; Enter opens a channel, then a message;
    e endpoints, d causes of dead letters, k workers; p pauses, Escape goes back, q ends. It needs the extra `top`;
    without it, or on a simple terminal, plain frames are printed. It reads on one connection and changes nothing. Of
    several databases one is shown, and n goes on to the next; plain frames and JSON have all of them.
    """
    simple = once or not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb"
    named = several_of(dsns, dsn_file)
    if named is not None:
        links = {one.name: Link(one.dsn) for one in named}
        if as_json:
            watch_all(links, sort=sort, contains=contains, only_one=once)
        elif simple or _app() is None:
            in_turn(named, lambda one: plain.once(links[one.name], queue(sort, contains)), as_json=False)
        else:
            _watch(links, sort, contains)
        return
    with located(dsns[0] if dsns else None, migrated=True) as found:
        link = Link(found)
        try:
            demand(link.open(), found)
            if as_json:
                plain.lines(link, sort=sort, contains=contains, only_one=once, plain=json_form)
            elif simple:
                plain.once(link, queue(sort, contains))
            elif _app() is None:
                say("For keys and colours: pip install 'menzil[top]'")
                plain.frames(link, queue(sort, contains), height=shutil.get_terminal_size().lines)
            else:
                _watch({"": link}, sort, contains)
        except KeyboardInterrupt:
            pass
        finally:
            link.close()


def _watch(links: dict[str, Link], sort: str, contains: str) -> None:
    app = _app()
    assert app is not None
    app(links, sort=sort, contains=contains).run()


def _app() -> type[Top] | None:
    """The form with keys, if textual is installed."""
    try:
        from menzil.cli.top.app import Top
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("textual", "rich"):
            raise
        return None
    return Top
