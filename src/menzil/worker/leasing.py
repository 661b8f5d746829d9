"""The loop that leases for one source: asks when there is room, waits when there is nothing.

What was completed and is not settled yet when it asks is settled by the same call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from difflib import get_close_matches
from time import monotonic
from typing import TYPE_CHECKING

from menzil.model.errors import ConnectionFailedError, CopyError, UnknownNameError
from menzil.model.message import Message
from menzil.ops import consuming, working
from menzil.worker.held import Held
from menzil.worker.link import LONGEST, SHORTEST
from menzil.worker.source import Source

if TYPE_CHECKING:
    from menzil.worker.shift import Shift

#: Seconds between two looks for a channel that does not exist yet.
MISSING = 2.0


class Leasing:
    """Leases for one source until the shift stops."""

    def __init__(self, shift: Shift, source: Source) -> None:
        self._shift = shift
        self.source = source
        self._channels: Sequence[str] | None = source.channels
        self._missing: set[str] = set()
        self._look_at = 0.0  # when to look for missing channels again
        self._due = 0.0  # seconds until something is due, as far as is known
        self._more = False  # whether a dequeue may find nothing only because it has not read the whole log
        self._waits = False  # whether to wait when a dequeue finds nothing; if not, it is asked once more
        self._empty = (0, 0)  # what had happened when a dequeue found nothing, and how many did since

    @property
    def dry(self) -> bool:
        """Whether two dequeues in a row found nothing and nothing has happened since; one may only have tidied up."""
        return not self.source.held and self._empty == (self._shift.happened, 2)

    async def work(self) -> None:
        """Lease, again and again."""
        shift, source, wake = self._shift, self.source, self._shift.wake
        idle, pause, trouble = False, wake.shortest, SHORTEST
        while not shift.stopping:
            source.asked = 0
            wanted = 0 if shift.settler.is_full else source.free()
            if wanted and (patience := source.patience):
                await source.bell.wait(source.bell.count, patience)
                continue
            source.ask_for(wanted)
            if not wanted:
                source.room.clear()
                await source.room.wait()
                continue
            heard = source.bell.count
            before, asked_at = shift.happened, monotonic()
            try:
                count = await self._ask(wanted, idle, asked_at)
            except ConnectionFailedError:
                source.leased(all_of_them=False)
                await shift.lease.rest()
                continue
            except CopyError:
                # The address leads to another database than before: a name or a pooler was pointed at a copy.
                source.leased(all_of_them=False)
                await shift.standstill.over()
                continue
            except Exception as error:
                # Nothing a new connection would cure: a person has to look, and meanwhile we ask less and less often.
                shift.log.error("lease_failed", source=source.name, error=error)
                source.leased(all_of_them=False)
                await source.bell.wait(source.bell.count, trouble)
                trouble = min(LONGEST, trouble * 2)
                continue
            trouble = SHORTEST
            source.leased(all_of_them=count >= wanted)
            if count:
                shift.happened += 1
                wake.vain = 0
                pause = wake.shortest
                idle = count < wanted
                if idle:
                    await asyncio.sleep(0)  # what is handled in no time is settled by the next call
                continue
            self._empty = (before, min(2, self._empty[1] + 1) if self._empty[0] == before and not self._more else 1)
            if shift.once:
                shift.look_dry()
            if self._waits and not (shift.once and self._empty[1] < 2 and not shift.in_flight):
                # A settle of our own may have made something ready; it rings, too.
                # What is known to become due is not slept over.
                rung = await source.bell.wait(heard, min(pause, max(self._due, wake.shortest)))
                pause = wake.shortest if rung else min(wake.longest, pause * 2)
                if rung:
                    idle = False  # ask at once; if it was for nothing, say again that we wait
                    continue
            idle = True

    async def _ask(self, limit: int, idle: bool, asked_at: float) -> int:
        """Lease and take in; return how many."""
        shift, source = self._shift, self.source
        if self._missing and monotonic() >= self._look_at:
            await self._look_for_channels()
        self._waits, self._more = idle, False
        if self._channels == []:
            return 0
        done = [] if source.apart or shift.lease.is_busy else shift.settler.take()
        if done:
            self._waits = False
        elif idle:
            # Before the dequeue: what is sent after it wakes us, what was sent before it is found by it.
            self._due = await shift.lease.run(working.wait())
            self._more = self._due == 0
        began = monotonic()
        try:
            messages = await self._lease(limit, done)
        except UnknownNameError:
            await self._look_for_channels()
            return 0
        count = len(messages)
        shift.leased(messages, monotonic() - began)
        if messages:
            try:
                if source.is_post:
                    await shift.post.learn({message.channel for message in messages})
                messages = source.sift(messages, asked_at)
                found = await shift.suspects.find(messages)
            except Exception:
                source.hand_back(messages, asked_at)  # leased, but not to be delivered without knowing more
                raise
            await shift.suspects.take_in(source, messages, found, asked_at)
        return count

    async def _lease(self, limit: int, done: list[Held]) -> list[Message]:
        shift, source = self._shift, self.source
        channels, push, loads, out = self._channels, source.endpoints, shift.loads, source.out
        if out and channels is not None:
            channels, out = [name for name in channels if name not in out], []
        wish, name = (limit, source.lease, channels, shift.name), shift.database
        if not done:
            op = consuming.dequeue(*wish, endpoints=push, leave_out=out, apart=source.apart, loads=loads, database=name)
            return await shift.lease.run(op)
        try:
            both = consuming.following(done, *wish, endpoints=push, leave_out=out, loads=loads, database=name)
            with shift.settler.traced(done):
                messages, late = await shift.lease.run(both)
        except BaseException:
            shift.settler.keep(done)
            raise
        shift.settler.told(done, late, source)
        return messages

    async def _meant(self, missing: set[str]) -> str | None:
        """Existing channels with names so close that the handler may have meant them."""
        there = await self._shift.lease.run(working.channel_names())
        near = {close for name in sorted(missing) for close in get_close_matches(name, there, 1, 0.75)}
        return ",".join(sorted(near)) or None

    async def _look_for_channels(self) -> None:
        wanted = list(self.source.channels or ())
        there = await self._shift.lease.run(working.channels_there(wanted))
        missing = set(wanted) - there
        if missing - self._missing:
            near = await self._meant(missing)
            self._shift.log.warning("channel_missing", channels=",".join(sorted(missing)), did_you_mean=near)
        if self._missing - missing:
            self._shift.log.info("channel_found", channels=",".join(sorted(self._missing - missing)))
        self._missing = missing
        self._channels = [name for name in wanted if name in there]
        self._look_at = monotonic() + MISSING
