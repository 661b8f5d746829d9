"""The beginning of a connection: login, limits, the virtual host, a channel, and confirms."""

from __future__ import annotations

from importlib.metadata import version

from pamqp import base, commands
from pamqp.common import FieldTable

from menzil.deliver.amqp.answers import said
from menzil.deliver.amqp.frames import LARGEST, SMALLEST, Frame, method
from menzil.deliver.broker.errors import EndpointError
from menzil.deliver.broker.plan import Plan
from menzil.deliver.broker.session import CodecError

DEFAULT_HEARTBEAT = 20
#: The account that RabbitMQ makes for itself. It may log in from the same machine only.
GUEST = {"type": "plain", "username": "guest", "password": "guest"}
#: What the server may tell us because we understand it.
_CAPABILITIES: FieldTable = {
    "authentication_failure_close": True,  # a wrong password gets an answer instead of a reset
    "basic.nack": True,
    "connection.blocked": True,
    "consumer_cancel_notify": True,  # a consumer hears that its queue is gone
    "publisher_confirms": True,
}
#: What the server says, in this order.
_STEPS = (
    commands.Connection.Start,
    commands.Connection.Tune,
    commands.Connection.OpenOk,
    commands.Channel.OpenOk,
    commands.Confirm.SelectOk,
)


class Greeting:
    """Answers each method of the server with what follows."""

    def __init__(self, plan: Plan, peer: str, *, confirms: bool) -> None:
        self._plan, self._peer, self._confirms = plan, peer, confirms
        self._step = 0
        self.has_logged_in = False
        self.frame_max = LARGEST
        self.heartbeat = float(plan.config.get("heartbeat_seconds") or DEFAULT_HEARTBEAT)

    def answer(self, channel: int, frame: Frame) -> bytes | None:
        """Return what to write; None when the channel is ready. Raises EndpointError and CodecError."""
        if isinstance(frame, commands.Connection.Close | commands.Channel.Close):
            raise EndpointError(f"{self._peer} refused the connection: {said(frame)}")
        if not isinstance(frame, _STEPS[self._step]):
            name = frame.name if isinstance(frame, base.Frame) else f"a frame of channel {channel}"
            raise CodecError(f"{name} has no place here")
        self._step += 1
        match frame:
            case commands.Connection.Start():
                return self._login(frame)
            case commands.Connection.Tune():
                return self._tune(frame)
            case commands.Connection.OpenOk():
                return method(commands.Channel.Open())
            case commands.Channel.OpenOk():
                return method(commands.Confirm.Select()) if self._confirms else None
            case _:
                return None

    def _login(self, start: commands.Connection.Start) -> bytes:
        server: FieldTable = start.server_properties or {}
        known = server.get("capabilities")
        if self._confirms and (not isinstance(known, dict) or not known.get("publisher_confirms")):
            raise EndpointError(f"{self._peer} does not confirm messages, so no delivery would be certain")
        auth = self._plan.config.get("auth") or GUEST
        mechanism = "EXTERNAL" if auth["type"] == "external" else "PLAIN"
        offered = (start.mechanisms or "").split()
        if mechanism not in offered:
            raise EndpointError(f"{self._peer} has no login {mechanism}, it has {' '.join(offered) or 'none'}")
        response = "" if mechanism == "EXTERNAL" else f"\0{auth['username']}\0{auth['password']}"
        about: FieldTable = {
            "product": "menzil",
            "version": version("menzil"),
            "platform": "Python",
            "connection_name": f"menzil {self._plan.worker}",
            "capabilities": _CAPABILITIES,
        }
        self.has_logged_in = True
        return method(commands.Connection.StartOk(about, mechanism, response, "en_US"), 0)

    def _tune(self, tune: commands.Connection.Tune) -> bytes:
        """Take the smaller of what the server and we propose, where 0 means no limit."""
        self.frame_max = min(tune.frame_max or LARGEST, LARGEST)
        if self.frame_max < SMALLEST:
            raise CodecError("the server takes frames of fewer than 4096 bytes")
        self.heartbeat = min(self.heartbeat, tune.heartbeat or self.heartbeat)
        limits = method(commands.Connection.TuneOk(1, self.frame_max, max(1, int(self.heartbeat))), 0)
        return limits + method(commands.Connection.Open(self._plan.config.get("vhost") or "/"), 0)
