"""One producer of librdkafka, and the thread that serves its reports.

Each report belongs to the batch that its message came with, so a late report finds nothing that it could settle. One
wake-up of the event loop carries all reports of a poll. `flush` is never called: it would block the loop.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from typing import Protocol as Interface

from confluent_kafka import KafkaError, KafkaException, Producer

from menzil.deliver.broker.errors import EndpointError
from menzil.deliver.kafka.config import Properties
from menzil.deliver.kafka.errors import LOGIN, text
from menzil.deliver.kafka.record import Record

#: Lines of librdkafka go nowhere: they would appear on standard error, and errors reach us by other ways.
_SILENT = logging.Logger("menzil.deliver.kafka")
_SILENT.addHandler(logging.NullHandler())
_POLL_SECONDS = 0.2
_END_SECONDS = 1.0

#: Whose report it is and at which place, the error, partition and offset.
Report = tuple["Taker", int, KafkaError | None, int | None, int | None]
#: Returns a token and when it ends, in seconds since 1970. Called in the thread of the producer, which may wait.
Token = Callable[[str], tuple[str, float]]


class UnreachableError(EndpointError):
    """The cluster does not answer."""


class Taker(Interface):
    """A batch that waits for reports."""

    details: bool  # whether partition and offset are kept
    written: list[int]  # in the thread: places of messages that were written, since the event loop was told last

    def written_all(self, places: Sequence[int]) -> None:
        """In the event loop: these were written."""
        ...

    def reported(self, place: int, error: KafkaError | None, partition: int | None, offset: int | None) -> None:
        """In the event loop: one message was written, or was not."""
        ...


class Cluster:
    """Belongs to one event loop; all methods run there but for those that say otherwise."""

    def __init__(self, properties: Properties, token: Token | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._properties, self._token = properties, token
        self._reports: list[Report] = []
        self._written: dict[Taker, None] = {}  # batches of which messages were written
        self._closing = False
        self._asking: dict[str, asyncio.Future[None]] = {}
        self._known: set[str] = set()  # topics for which the cluster has answered
        self._producer: Producer | None = None
        self._made: asyncio.Future[None] = self._loop.create_future()
        self.flying = 0  # batches under way
        self.idle_since = self._loop.time()
        self.has_delivered = False
        self._ended = asyncio.Event()
        self.fatal: str | None = None  # why this producer takes no more messages
        self.trouble: KafkaError | None = None  # the last error of a connection
        self._no_token = ""
        self.is_closed = asyncio.Event()
        threading.Thread(target=self._serve, name="menzil-kafka", daemon=True).start()

    @property
    def usable(self) -> bool:
        """Whether another batch may begin."""
        return self.fatal is None and not self._closing

    # In the thread

    def _serve(self) -> None:
        callbacks: dict[str, Any] = {"error_cb": self._erred}
        if self._token is not None:
            callbacks["oauth_cb"] = self._fetch
        try:
            producer = Producer({**self._properties, **callbacks}, logger=_SILENT)
        except Exception as error:
            # The text names the property that librdkafka does not take, and may show its value.
            kind = error.args[0].name() if isinstance(error, KafkaException) else type(error).__name__
            self.lose(f"librdkafka does not take the config of the endpoint ({kind})")
            self._tell(self._was_made)
            self._tell(self.is_closed.set)
            return
        self._producer = producer
        self._tell(self._was_made)
        while not self._closing:
            self._poll(producer, _POLL_SECONDS)
        with suppress(KafkaException):
            producer.purge()  # what is still here must not be written later
        self._poll(producer, 0)
        self._producer = None
        del producer  # the last reference: librdkafka ends its threads here, which may take a moment
        self._tell(self.is_closed.set)

    def _tell(self, do: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(do, *args)

    def _was_made(self) -> None:
        if not self._made.done():
            self._made.set_result(None)

    def _fetch(self, config: str) -> tuple[str, float]:
        """Get a token; librdkafka tells of a failure by an error that does not say why."""
        assert self._token is not None
        try:
            return self._token(config)
        except Exception as error:
            self._no_token = f": {error}" if str(error) else f": {type(error).__name__}"
            if self._producer is None:  # librdkafka waits seconds for the first token; no batch needs to
                self.fatal = f"The login needs a token{self._no_token}"
                self._tell(self._was_made)
            raise

    def _poll(self, producer: Producer, seconds: float) -> None:
        try:
            producer.poll(seconds)
        except KafkaException as error:
            # Only a fatal error is raised: the producer takes no more messages, and reports on those that it has.
            self.fatal = text(error.args[0])
            self._tell(self._ended.set)
        except Exception as error:  # of the callback that gets a token
            self._no_token = self._no_token or f": {type(error).__name__}"
        if self._reports or self._written:
            reports, self._reports = self._reports, []
            written = []
            for taker in self._written:
                written.append((taker, taker.written))
                taker.written = []
            self._written.clear()
            self._tell(_settle, reports, written)

    def _erred(self, error: KafkaError) -> None:
        """Remember why connections fail; librdkafka tries again by itself, so questions end here."""
        code = error.code()
        # That all brokers are down is true but says less than the reason before it.
        if code != KafkaError._ALL_BROKERS_DOWN or self.trouble is None:
            self.trouble = error
        if code == KafkaError._ALL_BROKERS_DOWN or code in LOGIN:
            self._tell(self._unanswered, f"No answer from the cluster: {text(self.trouble)}{self._no_token}")

    # Messages

    def produce(self, taker: Taker, place: int, topic: str, record: Record, partition: int) -> None:
        """Hand one message over. Raises KafkaException, BufferError."""
        producer = self._producer
        if producer is None:
            raise KafkaException(KafkaError(KafkaError._PURGE_QUEUE))
        value, key, headers, timestamp = record
        report = partial(self._reported, taker, place)
        producer.produce(topic, value, key, partition, on_delivery=report, timestamp=timestamp, headers=headers)

    def _reported(self, taker: Taker, place: int, error: KafkaError | None, message: Any) -> None:
        """In the thread: a message was written, or was not."""
        if error is None and not taker.details:
            if not taker.written:
                self._written[taker] = None
            taker.written.append(place)
        elif error is None:
            self._reports.append((taker, place, None, message.partition(), message.offset()))
        else:
            self._reports.append((taker, place, error, None, None))

    # Topics

    def knows(self, topic: str) -> bool:
        """Whether the cluster has answered for this topic."""
        return topic in self._known

    async def know(self, topic: str, seconds: float) -> None:
        """Return when the cluster has answered for this topic. Raises EndpointError.

        Without this question an unknown topic and a dead cluster look alike: messages wait in librdkafka until their
        deadline. It also makes librdkafka forget that it was refused a topic once.
        """
        if topic in self._known:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._made)
        if not self._made.done():
            raise UnreachableError(f"The producer is not ready after {seconds:g} s")
        if self.fatal is not None:
            raise UnreachableError(self.fatal)
        answer = self._asking.get(topic)
        if answer is None:
            answer = self._asking[topic] = self._loop.create_future()
            # A thread of its own: the question cannot be taken back, and must not hold up the reports.
            args = (topic, seconds, self._producer, answer)
            threading.Thread(target=self._ask, args=args, name="menzil-kafka-topic", daemon=True).start()
        await asyncio.shield(answer)

    def doubt(self, topic: str) -> None:
        """Ask for this topic again before the next batch."""
        self._known.discard(topic)

    def _ask(self, topic: str, seconds: float, producer: Producer | None, answer: asyncio.Future[None]) -> None:
        """In a thread of its own."""
        error: EndpointError | None = None
        try:
            if producer is None:
                raise EndpointError("The producer is closed")
            found = producer.list_topics(topic, timeout=seconds).topics[topic].error
            if found is not None:
                error = EndpointError(f"{text(found)} (topic {topic})")
        except KafkaException as failure:
            said = self.trouble or failure.args[0]
            error = UnreachableError(f"No answer from the cluster: {text(said)}{self._no_token}")
        except EndpointError as failure:
            error = failure
        except Exception as failure:
            error = EndpointError(f"The cluster cannot be asked: {type(failure).__name__}")
        del producer
        self._tell(self._answered, topic, answer, error)

    def _answered(self, topic: str, answer: asyncio.Future[None], error: EndpointError | None) -> None:
        if self._asking.get(topic) is answer:
            del self._asking[topic]
        if answer.done():
            return
        if error is None:
            self.trouble = None
            self._known.add(topic)
            answer.set_result(None)
        else:
            answer.set_exception(error)
            answer.exception()  # looked at, because the batches that asked may all have been cancelled

    def _unanswered(self, reason: str) -> None:
        """No question that is under way will be answered soon."""
        for topic, answer in list(self._asking.items()):
            self._answered(topic, answer, UnreachableError(reason))

    @property
    def is_locked_out(self) -> bool:
        """Whether the login or the certificate is what is wrong."""
        return self.trouble is not None and self.trouble.code() in LOGIN

    def lose(self, reason: str) -> None:
        """Take no more batches."""
        self.fatal = self.fatal or reason

    async def end(self) -> None:
        """Wait until the thread has heard why librdkafka takes no more messages."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await self._ended.wait()
        self.lose("_FATAL: Local: Fatal error")

    def close(self) -> None:
        """End. What is still here is thrown away, and reported so."""
        self._closing = True


def _settle(reports: Sequence[Report], written: Sequence[tuple[Taker, Sequence[int]]]) -> None:
    for taker, places in written:
        taker.written_all(places)
    for taker, place, error, partition, offset in reports:
        taker.reported(place, error, partition, offset)
