"""The client: Menzil, and AsyncMenzil, which is the same, awaited.

The modules in `aio` are written by hand, those in `sync` by tools/twins.py.
"""

from menzil.client.aio.channels import AsyncChannels
from menzil.client.aio.consuming import AsyncConsuming
from menzil.client.aio.endpoints import AsyncEndpoints
from menzil.client.aio.history import AsyncHistory
from menzil.client.aio.messages import AsyncMessages
from menzil.client.aio.pubsub import AsyncPubSub
from menzil.client.aio.schedules import AsyncSchedules
from menzil.client.aio.sending import AsyncSending
from menzil.client.aio.upkeep import AsyncUpkeep
from menzil.client.sync.channels import Channels
from menzil.client.sync.consuming import Consuming
from menzil.client.sync.endpoints import Endpoints
from menzil.client.sync.history import History
from menzil.client.sync.messages import Messages
from menzil.client.sync.pubsub import PubSub
from menzil.client.sync.schedules import Schedules
from menzil.client.sync.sending import Sending
from menzil.client.sync.upkeep import Upkeep

__all__ = ["AsyncMenzil", "Menzil"]


class Menzil(Sending, PubSub, Consuming, Messages, Channels, Schedules, Endpoints, History, Upkeep):
    """A client of the queue in one PostgreSQL database. Safe to share between threads; close it, or use `with`."""


class AsyncMenzil(
    AsyncSending,
    AsyncPubSub,
    AsyncConsuming,
    AsyncMessages,
    AsyncChannels,
    AsyncSchedules,
    AsyncEndpoints,
    AsyncHistory,
    AsyncUpkeep,
):
    """A client of the queue in one PostgreSQL database, for one event loop; close it, or use `async with`."""
