"""The client: Menzil, and AsyncMenzil, which is the same, awaited."""

from menzil.client.channels import AsyncChannels, Channels
from menzil.client.consuming import AsyncConsuming, Consuming
from menzil.client.endpoints import AsyncEndpoints, Endpoints
from menzil.client.history import AsyncHistory, History
from menzil.client.messages import AsyncMessages, Messages
from menzil.client.pubsub import AsyncPubSub, PubSub
from menzil.client.schedules import AsyncSchedules, Schedules
from menzil.client.sending import AsyncSending, Sending
from menzil.client.upkeep import AsyncUpkeep, Upkeep

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
