"""The doorbell: the `menzil` command, and the only room that wires the others together."""

from menzil.cli.main import main

__all__ = ["main"]
