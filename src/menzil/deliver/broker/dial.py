"""Opens a connection to the first server of an endpoint that takes it, at an address that the guard has judged."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from ssl import SSLContext, SSLError

from menzil.deliver.broker.errors import EndpointError
from menzil.deliver.broker.plan import Plan
from menzil.deliver.broker.session import Session
from menzil.deliver.guard import Address, Guard, ResolveError, Target
from menzil.deliver.wire.errors import broken

Make = Callable[[Plan, str, str, socket.socket], Session]


async def dial(plan: Plan, guard: Guard, make: Make, deadline: float, *, late_tls: bool) -> Session:
    """Return a session that has logged in. Raises EndpointError, and RefusedUrlError of the guard.

    `late_tls` leaves the TLS handshake to the session's greeting.
    """
    loop = asyncio.get_running_loop()
    ends = min(deadline, loop.time() + plan.connect_seconds)
    error = EndpointError("The endpoint has no servers")
    for place, target in enumerate(plan.targets):
        try:
            # The time left is shared by the servers left.
            share = loop.time() + (ends - loop.time()) / (len(plan.targets) - place)
            addresses = await guard.resolve(target, max(0.0, share - loop.time()))
        except ResolveError as failure:
            error = EndpointError(failure.reason)
            continue
        for number, address in enumerate(addresses):
            until = loop.time() + (share - loop.time()) / (len(addresses) - number)
            try:
                return await _open(plan, target, address, make, until, None if late_tls else plan.tls)
            except EndpointError as failure:
                error = failure
    raise error


async def _open(
    plan: Plan, target: Target, address: Address, make: Make, until: float, tls: SSLContext | None
) -> Session:
    loop = asyncio.get_running_loop()
    peer = f"[{address[1]}]:{target.port}" if ":" in address[1] else f"{address[1]}:{target.port}"
    sock = socket.socket(address[0], socket.SOCK_STREAM)
    try:
        session = make(plan, target.host, peer, sock)
    except BaseException:
        sock.close()
        raise
    doing = "connecting"
    try:
        async with asyncio.timeout_at(until):
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(sock, (address[1], target.port))
            doing = "TLS handshake; does this port speak TLS?" if tls else "connecting"
            name = target.host if tls else None
            await loop.create_connection(lambda: session, sock=sock, ssl=tls, server_hostname=name)
            doing = "logging in"
            await session.greet()
        return session
    except TimeoutError as failure:
        _drop(session, sock)
        # The kernel's own timeout is an OSError with a number; that of the deadline has none.
        # A server of another kind may wait for more of what it takes for a command of its own.
        what = f"{doing}; does this port speak {session.speaks}?" if doing == "logging in" else doing
        said = broken(failure, peer, doing) if failure.errno else f"No connection to {peer} in time ({what})"
        raise EndpointError(said) from None
    except (OSError, SSLError) as failure:
        _drop(session, sock)
        raise EndpointError(broken(failure, peer, doing)) from None
    except BaseException:
        _drop(session, sock)
        raise


def _drop(session: Session, sock: socket.socket) -> None:
    if session.transport is None:
        sock.close()
    else:
        session.abort()
