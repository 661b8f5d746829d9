"""The guard: which URLs may be read, and which addresses may be connected to. Nothing is sent before it agreed."""

from menzil.deliver.guard.door import Guard
from menzil.deliver.guard.errors import RefusedUrlError, ResolveError
from menzil.deliver.guard.resolve import Address, Lookup
from menzil.deliver.guard.target import Target, read_server

__all__ = ["Address", "Guard", "Lookup", "RefusedUrlError", "ResolveError", "Target", "read_server"]
