"""The client for programs with an event loop."""

from menzil.client.aio.channels import AsyncChannels
from menzil.client.aio.consuming import AsyncConsuming
from menzil.client.aio.endpoints import AsyncEndpoints
from menzil.client.aio.history import AsyncHistory
from menzil.client.aio.messages import AsyncMessages
from menzil.client.aio.pubsub import AsyncPubSub
from menzil.client.aio.schedules import AsyncSchedules
from menzil.client.aio.sending import AsyncSending
from menzil.client.aio.upkeep import AsyncUpkeep


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
