#!/usr/bin/env python3
"""Write docs/reference/cli-options.md: what `--help` of every command prints. `--check` compares and ends with 1."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from menzil.cli import main

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli-options.md"
WIDTH = 100
HEAD = """# Every option of every command

What `--help` prints, made by `python tools/cli_options.py`; a test compares this page with the commands. What they are
for, by purpose: [command line](cli.md).
"""


def commands(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    """The command itself, then those below it."""
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from commands(below, _context(below, name, context))


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    # Without a width of its own the page would depend on the terminal of its writer.
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    return click.Context(command, parent=parent, info_name=name, **settings)


def page() -> str:
    parts = [HEAD]
    for context in commands(main, _context(main, "menzil")):
        help_text = "\n".join(line.rstrip() for line in context.command.get_help(context).splitlines())
        parts.append(f"\n## {context.command_path}\n\n```\n{help_text}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    if "--check" not in sys.argv:
        PAGE.write_text(page())
    elif PAGE.read_text() != page():
        print("docs/reference/cli-options.md is not what the commands say; python tools/cli_options.py writes it")
        sys.exit(1)
