"""Sending in both worlds: what the engine answered must be what the documents say, and then it is so on paper too."""

from __future__ import annotations

from typing import Any

from tests.model import judge
from tests.model.engine import Engine, Refusal, json
from tests.model.paper import Message, Queue


class Sending:
    """The two worlds, and every way to send."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.paper = engine, Queue()
        self.saved: Queue | None = None
        self.ids: list[int] = []  # every id that a send ever returned, rolled back or not

    def refuses(self, got: Any, *codes: str) -> None:
        assert isinstance(got, Refusal), f"it was not refused: {got}"
        assert got.sqlstate in codes

    def compare(self) -> None:
        judge.compare(self.engine, self.paper)
        if any(channel.released for channel in self.paper.channels.values()):
            self._notice_gone_channels()
        if self.saved is not None:
            # Nobody else sees any of it before the commit.
            seen = self.engine.other.execute("select id, status from menzil.queue order by id").fetchall()
            expected = [(m.id, m.status) for _, m in sorted(self.saved.live.items())]
            assert seen == expected, "others see what is not committed"

    def _notice_gone_channels(self) -> None:
        names = {name for (name,) in self.engine.run("select name from menzil.channels")}
        for channel in list(self.paper.channels.values()):
            if channel.released and channel.name not in names:
                assert not any(m.channel == channel.name for m in self.paper.live.values()), "it had messages"
                del self.paper.channels[channel.name]
                self.paper.used = {k: v for k, v in self.paper.used.items() if k[0] != channel.name}

    def send(self, options: dict[str, Any]) -> None:
        self.paper.tick()
        named = {k: v for k, v in self._sql(options).items() if k not in ("channel", "payload")}
        got = self.engine.call("send_with_options", options["channel"], json(options["payload"]), **named)
        self._sent(got, [options], lambda number: [number])

    def send_batch(self, channel: str, count: int, priority: int) -> None:
        self.paper.tick()
        payloads = [json(n) for n in range(count)]
        got = self.engine.call("send_batch_with_priority", channel, payloads, priority)
        if count == 0 and isinstance(got, Refusal):
            assert got.sqlstate in self._verdict([{"channel": channel, "payload": 0}])
            return
        self._sent(got, [{"channel": channel, "payload": n, "priority": priority} for n in range(count)], list)

    def send_many(self, messages: list[dict[str, Any]], as_json: bool) -> None:
        self.paper.tick()
        if as_json:
            objects = [
                {
                    ("endpoint" if k == "channel" else k): (str(v) if k.endswith("_at") else v)
                    for k, v in self._sql(m).items()
                }
                for m in messages
            ]  # fmt: skip
            got = self.engine.call("send_many", json([{k: v for k, v in o.items() if v is not None} for o in objects]))
        else:
            columns = {k: [self._sql(m).get(k) for m in messages] for k in _ARRAYS}
            columns["payload"] = [json(m["payload"]) for m in messages]
            columns["priority"] = [m.get("priority", 0) for m in messages]
            text = ", ".join(f"p_{name} => %s::{kind}[]" for name, kind in _ARRAYS.values())
            got = self.engine._guarded(f"select menzil.send_many({text})", *columns.values())
        self._sent(got, messages, list)

    def create(self, channel: str, content: bytes, scheduled: int | None) -> None:
        self.paper.tick()
        got = self.engine.call("message_create", channel, content, dequeue_at=self._at(scheduled))
        self._sent(got, [{"channel": channel, "content": content, "scheduled": scheduled}], lambda number: [number])

    def _sent(self, got: Any, messages: list[dict[str, Any]], numbers: Any) -> None:
        """Does on paper what a send did, or checks why it was refused."""
        expected = self._verdict(messages)
        if isinstance(got, Refusal):
            assert got.sqlstate in expected, f"refused with {got.sqlstate}, {expected or 'nothing'} was expected"
            return
        assert not expected, f"it was not refused with {expected}"
        paper, hour = self.paper, self.paper.hour
        assert len(numbers(got)) == len(messages)
        sent: dict[Any, tuple[int, object]] = {}  # repeats in one batch are one message, also if it has expired already
        for number, options in zip(numbers(got), messages, strict=True):
            name, key = options["channel"], options.get("idempotency_key")
            holder = paper.holder(name, key) or sent.get((name, key))
            if holder is not None:
                assert holder[0] == number, f"the key is held by {holder[0]}, {number} was returned"
                continue
            assert number not in self.ids, "an id came twice"
            self.ids.append(number)
            if key is not None:
                sent[name, key] = (number, options.get("payload"))
            wait = options.get("scheduled")
            expires = options.get("expires")
            due = paper.now() if wait is None else (hour + wait, 0)
            paper.add(
                Message(
                    id=number, channel=name, due=due, place=due, priority=options.get("priority", 0),
                    payload=options.get("payload"), content=options.get("content"),
                    ordering_key=options.get("ordering_key"), idempotency_key=key,
                    scheduled=None if wait is None else hour + wait,
                    expires=None if expires is None else hour + expires,
                )
            )  # fmt: skip

    def _verdict(self, messages: list[dict[str, Any]]) -> set[str]:
        """The refusals that fit."""
        paper, found = self.paper, set()
        held: dict[Any, Any] = {}
        for options in messages:
            channel = paper.channels.get(options["channel"])
            wait, expires = options.get("scheduled"), options.get("expires")
            if channel is None:
                found.add("42704")
            elif channel.released:
                found.add("55000")
            elif wait is not None and expires is not None and expires <= wait:
                found.add("22023")
        if found:
            return found
        new: dict[str, int] = {}
        for options in messages:
            name, key = options["channel"], options.get("idempotency_key")
            holder = paper.holder(name, key) or held.get((name, key))
            if key is None or holder is None:
                new[name] = new.get(name, 0) + 1
                held[name, key] = (0, options.get("payload")) if key is not None else None
            elif holder[1] != options.get("payload"):
                found.add("23505")
        # A repeat, in the batch or of an earlier one, needs no room.
        if any(count > paper.room(name) for name, count in new.items()):
            found.add("53400")
        return found

    def _sql(self, options: dict[str, Any]) -> dict[str, Any]:
        words = {k: v for k, v in options.items() if k not in ("scheduled", "expires")}
        for word in ("scheduled", "expires"):
            if options.get(word) is not None:
                words[f"{word}_at"] = self._at(options[word])
        return words

    def _at(self, hours: int | None) -> Any:
        return None if hours is None else self.engine.clock.at(self.paper.hour + hours)


_ARRAYS = {
    "channel": ("endpoint_names", "text"),
    "payload": ("payloads", "jsonb"),
    "priority": ("priorities", "integer"),
    "scheduled_at": ("scheduled_ats", "timestamptz"),
    "idempotency_key": ("idempotency_keys", "text"),
    "expires_at": ("expires_ats", "timestamptz"),
    "ordering_key": ("ordering_keys", "text"),
}
