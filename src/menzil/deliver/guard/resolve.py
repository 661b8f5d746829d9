"""Asks the system's resolver for all addresses of a name: with a deadline, and never with more threads than SLOTS.

A lookup cannot be cancelled: getaddrinfo occupies its thread until the name servers answer or it gives up. A slot is
therefore free again when its thread has ended, not when a delivery has stopped waiting. Deliveries that ask for the
same name share one lookup, so a dead name takes one slot. The threads are daemons, so they do not delay the exit.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address

from menzil.deliver.guard.errors import ResolveError
from menzil.deliver.guard.judge import IpAddress

SLOTS = 16

Address = tuple[socket.AddressFamily, str]
#: Blocks, and returns every address of a name, the one to try first first.
Lookup = Callable[[str], list[str]]


def system_lookup(host: str) -> list[str]:
    """Ask getaddrinfo."""
    # Bytes are passed on as they are: a text would go through Python's IDNA codec, one more reader of host names.
    found = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [str(sockaddr[0]) for _, _, _, _, sockaddr in found]


class Resolver:
    """The questions of one event loop."""

    def __init__(self, lookup: Lookup = system_lookup, slots: int = SLOTS) -> None:
        self._lookup = lookup
        self._slots = asyncio.Semaphore(slots)
        self._asked: dict[str, asyncio.Future[list[str]]] = {}

    async def addresses(self, host: str, deadline_seconds: float) -> list[IpAddress]:
        """Return every address of the name once, in order, or raise ResolveError."""
        try:
            async with asyncio.timeout(deadline_seconds):
                # Shielded, because others may wait for the same answer.
                found = await asyncio.shield(await self._ask(host))
        except TimeoutError:
            raise ResolveError(f"The name servers gave no answer for {host} in {deadline_seconds:g} seconds.") from None
        except Exception as error:  # gaierror as a rule; a thread that cannot be started is no reason to end a worker
            said = error.strerror if isinstance(error, OSError) else error
            raise ResolveError(f"{host} has no address: {said}.") from None
        if not found:
            raise ResolveError(f"{host} has no address.")
        try:
            # Without a zone: what is link-local is judged as such, and what is not has none.
            return [ip_address(text) for text in dict.fromkeys(text.partition("%")[0] for text in found)]
        except ValueError:
            raise ResolveError(f"The name servers gave something for {host} that is no address.") from None

    async def _ask(self, host: str) -> asyncio.Future[list[str]]:
        while host not in self._asked:
            await self._slots.acquire()
            if host in self._asked:  # another delivery asked while this one waited for a slot
                self._slots.release()
                break
            loop = asyncio.get_running_loop()
            answer: asyncio.Future[list[str]] = loop.create_future()
            answer.add_done_callback(_look_at)
            self._asked[host] = answer
            try:
                threading.Thread(target=self._work, args=(loop, host), name="menzil-resolve", daemon=True).start()
            except RuntimeError as error:
                self._answered(host, error)
                return answer
        return self._asked[host]

    def _work(self, loop: asyncio.AbstractEventLoop, host: str) -> None:
        """In the thread."""
        found: list[str] | Exception
        try:
            found = self._lookup(host)
        except Exception as error:  # after every error the slot must come back
            found = error
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(self._answered, host, found)

    def _answered(self, host: str, found: list[str] | Exception) -> None:
        self._slots.release()
        answer = self._asked.pop(host)
        if answer.done():
            return
        if isinstance(found, Exception):
            answer.set_exception(found)
        else:
            answer.set_result(found)


def _look_at(answer: asyncio.Future[list[str]]) -> None:
    """Take notice of an exception, because all callers that asked may have gone."""
    if not answer.cancelled():
        answer.exception()
