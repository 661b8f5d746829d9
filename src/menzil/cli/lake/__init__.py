"""`menzil lake`: the tables of the lake themselves."""

from menzil.cli.lake.group import lake

__all__ = ["lake"]
