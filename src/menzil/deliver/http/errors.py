"""Why a request is not even tried."""

from __future__ import annotations


class RefusedError(Exception):
    """The config of the endpoint or something in the message cannot be turned into a request; no retry will help."""
