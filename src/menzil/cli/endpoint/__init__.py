"""`menzil endpoint`: channels with a destination attached."""

from menzil.cli.endpoint.group import endpoint

__all__ = ["endpoint"]
