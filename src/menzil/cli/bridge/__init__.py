"""`menzil bridge`: records of brokers become messages."""

from menzil.cli.bridge.group import bridge

__all__ = ["bridge"]
