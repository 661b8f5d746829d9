"""A lean HTTP/1.1 client: kept connections, one deadline, bounded reading. It follows, unpacks and guesses nothing."""

from menzil.deliver.wire.answer import Answer
from menzil.deliver.wire.client import Client
from menzil.deliver.wire.errors import WireError
from menzil.deliver.wire.route import Proxy, Route

__all__ = ["Answer", "Client", "Proxy", "Route", "WireError"]
