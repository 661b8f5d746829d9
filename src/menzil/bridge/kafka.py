"""The source `kafka`: the partitions of a topic, each read from the offset that is stored.

A position is the offset of the next record, with a proof that the topic is still the same: see kafka_place.py. A
process assigns all partitions to itself and is no member of a consumer group: the positions in the queue keep two
processes apart, and one that takes over need not wait for the session of one that died. Offsets are committed to the
broker after the queue has them, only for tools that show the lag of groups.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from menzil.bridge.kafka_config import options
from menzil.bridge.kafka_place import Place, digest
from menzil.bridge.source import Batch, Positions, Record, Source, SourceError
from menzil.deliver.guard import RefusedUrlError, ResolveError, read_server

T = TypeVar("T")

PORT = 9092
_ANSWER = 10.0
#: Errors after which waiting for librdkafka to reconnect would hide what is wrong.
_GRAVE = frozenset({
    KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._FATAL,
})  # fmt: skip


class KafkaSource(Source):
    """One topic. Every call of the client runs in a thread of its own, one after the other."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._topic: str = self.config["topic"]
        self._thread = ThreadPoolExecutor(1, "menzil-bridge-kafka")
        self._loop = asyncio.get_running_loop()
        self._consumer: Consumer | None = None
        self._positions: Positions | None = None
        self._at: dict[int, Place] = {}  # where reading goes on, by partition
        self._unproved: set[int] = set()  # partitions whose last record is yet to be compared
        self._lost: dict[int, int] = {}  # removed by the broker, and not said yet
        self._ready: deque[Batch] = deque()
        self._grave: str | None = None
        self._patience = float(self.config.get("connect_timeout_seconds") or 5)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await self._loop.run_in_executor(self._thread, work)
        except KafkaException as error:
            raise SourceError(_said(error.args[0])) from None

    async def open(self, positions: Positions) -> None:
        """Judge the servers, and begin with every partition."""
        self._positions = positions
        for server in self.config["servers"]:
            try:
                await self.surroundings.guard.resolve(read_server(server, PORT), _ANSWER)
            except RefusedUrlError as error:
                raise SourceError(error.reason) from None
            except ResolveError as error:
                raise SourceError(error.reason) from None
        await self._in_thread(self._connect)

    def _connect(self) -> None:
        quiet = logging.getLogger("menzil.bridge.kafka")  # else librdkafka writes to standard error
        told = options(self.config, self.spec.family) | {"error_cb": self._warned}
        self._consumer = Consumer(told, logger=quiet)
        self._assign()

    def _assign(self) -> None:
        """Read every partition. A topic may get more of them.

        The highest one is stored first: after a crash in between, those below it are not taken for partitions that the
        topic got later.
        """
        parts_now = self._parts()
        new = [part for part in parts_now if part not in self._at]
        named = [name.rpartition("/") for name in self.spec.positions]
        stored = [part for part in parts_now if (self._topic, "/", str(part)) in named]
        highest = max((*stored, *self._at), default=None)
        reach = {part: self._reach(part) for part in new}  # all of them answer before any is stored
        parts = []
        for part in sorted(new, reverse=True):
            later = highest is not None and part > highest
            parts.append(TopicPartition(self._topic, part, self._begin(part, reach[part], later=later)))
        if parts:
            self._client.incremental_assign(parts)

    def _warned(self, error: KafkaError) -> None:
        if error.code() in _GRAVE:
            self._grave = _said(error)

    def _begin(self, part: int, reach: tuple[int, int], *, later: bool = False) -> int:
        """Return where a partition goes on. What the broker has removed behind the stored offset is noticed.

        One that the topic got `later` than the bridge began is read from its first record: `latest` meant the others.
        """
        low, high = reach
        stored = self._stored(part, None)
        if stored is None:
            stored = self._stored(part, str(low if later or self.config["start"] == "earliest" else high))
        place = Place.read(stored or "0")
        if place.offset > high:
            raise SourceError(
                f"Partition {part} of {self._topic!r} ends at {high}, before the stored position {place.offset}: "
                "it was made anew. Seek to where the bridge is to go on."
            )
        self._at[part] = place
        self._lost[part] = max(0, low - place.offset)
        if place.seen is None or not low <= place.seen[0] < place.offset:
            self._unproved.discard(part)
            return max(low, place.offset)
        self._unproved.add(part)
        return place.seen[0]

    def _prove(self, part: int, message: Any) -> None:
        """Compare the record that was taken last, unless the broker has removed it. Raises SourceError."""
        seen = self._at[part].seen
        self._unproved.discard(part)
        if seen is not None and message.offset() == seen[0] and digest(message) != seen[1]:
            raise SourceError(
                f"Partition {part} of {self._topic!r} has another record at {seen[0]} than the one that was taken: "
                "it was made anew. Seek to where the bridge is to go on."
            )

    def _stored(self, part: int, start: str | None) -> str | None:
        assert self._positions is not None
        asked = self._positions(self._name(part), start)
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result(30)

    def _reach(self, part: int) -> tuple[int, int]:
        low, high = self._client.get_watermark_offsets(TopicPartition(self._topic, part), _ANSWER)
        return low, high

    def _parts(self) -> list[int]:
        about = self._client.list_topics(self._topic, self._patience).topics[self._topic]
        if about.error is not None:
            raise SourceError(f"Topic {self._topic!r}: {_said(about.error)}")
        return sorted(about.partitions)

    # Reading

    async def read(self, limit: int, seconds: float) -> Batch | None:
        """Return the next batch of one partition."""
        if not self._ready:
            await self._in_thread(lambda: self._poll(limit, seconds))
        if self._ready:
            return self._ready.popleft()
        if self._grave is not None:
            raise SourceError(self._grave)
        return None

    def _poll(self, limit: int, seconds: float) -> None:
        consumer = self._client
        found: dict[int, Batch] = {}
        last: dict[int, Any] = {}  # the last record of each
        first = consumer.poll(seconds)
        if first is None:
            return
        for message in [first, *consumer.consume(limit - 1, 0)] if limit > 1 else [first]:
            part, offset = message.partition() or 0, message.offset() or 0
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                # Records of the end that no reader sees, such as marks of transactions, are passed over too.
                if part in self._at and offset > self._end(found, part):
                    self._into(found, part).end = str(offset)
            elif error is not None:
                self._failed(error, part)
            elif part in self._at:
                if part in self._unproved:
                    self._prove(part, message)
                if offset < self._end(found, part):
                    continue
                self._grave = None
                batch = self._into(found, part)
                batch.records.append(_record(message))
                batch.end, last[part] = str(offset + 1), message
        for part, batch in found.items():
            place = self._at[part].after(last[part]) if part in last else self._at[part]
            self._at[part] = Place(int(batch.end or 0), place.seen)
            batch.end = str(self._at[part])
            self._ready.append(batch)

    def _into(self, found: dict[int, Batch], part: int) -> Batch:
        if part not in found:
            found[part] = Batch(
                self._name(part), str(self._at[part]), str(self._at[part].offset), [], self._lost.pop(part, 0)
            )
        return found[part]

    def _end(self, found: dict[int, Batch], part: int) -> int:
        return int(found[part].end or 0) if part in found else self._at[part].offset

    def _failed(self, error: KafkaError, part: int) -> None:
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE) and part in self._at:
            # The broker has removed the record that comes next, or the topic is another one.
            self._client.seek(TopicPartition(self._topic, part, self._begin(part, self._reach(part))))
        elif error.code() in _GRAVE or error.fatal() or error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            self._grave = _said(error)

    async def seek(self, partition: str, position: str | None) -> None:
        """Read a partition on from here."""
        part = self._number(partition)
        if part in self._at:
            await self._in_thread(lambda: self._seek(part, position))

    def _seek(self, part: int, position: str | None) -> None:
        self._forget(part)
        if position is None:
            offset = self._begin(part, self._reach(part))
        else:
            self._at[part] = Place.read(position)
            offset = self._at[part].offset
        self._client.seek(TopicPartition(self._topic, part, offset))

    def _forget(self, part: int) -> None:
        name = self._name(part)
        self._ready = deque(batch for batch in self._ready if batch.partition != name)
        self._lost.pop(part, None)
        self._unproved.discard(part)

    async def acknowledge(self, batch: Batch) -> None:
        """Show the broker how far we are. Nothing depends on it."""
        offset = TopicPartition(self._topic, self._number(batch.partition), Place.read(batch.end or "0").offset)
        with suppress(SourceError):
            await self._in_thread(lambda: self._client.commit(offsets=[offset], asynchronous=True))

    async def lags(self) -> dict[str, int]:
        """Ask for the end of each partition, and look for new ones."""
        await self._in_thread(self._assign)
        ours = dict(self._at)
        reach = await self._in_thread(lambda: {part: self._reach(part)[1] for part in ours})
        return {self._name(part): max(0, reach[part] - place.offset) for part, place in ours.items()}

    async def ends(self) -> dict[str, str]:
        """The end of every partition."""
        reach = await self._in_thread(lambda: {part: self._reach(part)[1] for part in self._parts()})
        return {self._name(part): str(high) for part, high in reach.items()}

    def is_behind(self, position: str | None, end: str) -> bool:
        """Compare two offsets."""
        return position is None or Place.read(position).offset < int(end)

    async def close(self) -> None:
        """Hang up."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with suppress(SourceError):
                await self._in_thread(consumer.close)
        self._thread.shutdown(wait=False)

    @property
    def _client(self) -> Consumer:
        if self._consumer is None:
            raise SourceError("The source is not open")
        return self._consumer

    def _name(self, part: int) -> str:
        return f"{self._topic}/{part}"

    def _number(self, partition: str) -> int:
        return int(partition.rpartition("/")[2])


def _record(message: Any) -> Record:
    headers = message.headers() or []
    return Record(message.value(), str(message.offset()), message.key(), headers)


def _said(error: KafkaError) -> str:
    return f"Kafka: {error.str()} ({error.name()})"
