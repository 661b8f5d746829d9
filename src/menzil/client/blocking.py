"""The client for programs without an event loop."""

from menzil.client.sync.channels import Channels
from menzil.client.sync.consuming import Consuming
from menzil.client.sync.endpoints import Endpoints
from menzil.client.sync.history import History
from menzil.client.sync.messages import Messages
from menzil.client.sync.pubsub import PubSub
from menzil.client.sync.schedules import Schedules
from menzil.client.sync.sending import Sending
from menzil.client.sync.upkeep import Upkeep


class Menzil(Sending, PubSub, Consuming, Messages, Channels, Schedules, Endpoints, History, Upkeep):
    """A client of the queue in one PostgreSQL database. Safe to share between threads; close it, or use `with`."""
