"""`menzil top`: the queue at a terminal, once a second."""

from menzil.cli.top.command import top

__all__ = ["top"]
