"""One batch on its way through a producer, from messages to outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from menzil.deliver.broker.batch import COMPLETE, Batch
from menzil.deliver.broker.envelope import compose
from menzil.deliver.broker.errors import EndpointError, MessageError, bad_endpoint, bad_message, unknown
from menzil.deliver.broker.overrides import chosen
from menzil.deliver.broker.plan import Plan
from menzil.deliver.kafka.cluster import Cluster, UnreachableError
from menzil.deliver.kafka.config import fingerprint, properties
from menzil.deliver.kafka.errors import OF_A_BATCH, verdict
from menzil.deliver.kafka.record import Record, Records
from menzil.model.message import Message
from menzil.model.outcome import Complete, Defer, Outcome
from menzil.telemetry.tracing import CARRIED

#: Seconds for reports to come after librdkafka's own deadline.
GRACE = 2.0
#: Seconds after which messages come back that found librdkafka's queue full.
_FULL = 1.0


class Route:
    """What is known of an endpoint: the properties of its producer, and how its messages become records."""

    def __init__(self, plan: Plan, since: datetime) -> None:
        config = plan.config
        self.since = since  # updated_at of the endpoint
        self.topic: str = config["topic"]
        self.partition: int = config.get("partition", -1)  # -1: the key chooses
        self.records = Records(config)
        self.auth: Mapping[str, Any] = config.get("auth") or {}
        self.properties = properties(plan)
        self.name = fingerprint(self.properties, self.auth)


_TO_JUDGE = Defer()  # in the place of an error until the batch is over


class Flight:
    """One batch."""

    def __init__(
        self, messages: Sequence[Message], cluster: Cluster, route: Route, plan: Plan, *, details: bool
    ) -> None:
        self._messages, self._cluster, self._route, self._plan = messages, cluster, route, plan
        self._batch = Batch(len(messages), details=details)
        self.details = details
        self.written: list[int] = []
        self._errors: dict[int, KafkaError] = {}
        self._others: dict[int, str] = {}  # topics of messages that chose another than the endpoint's
        self.is_hopeless = False  # the producer reaches no cluster, and nothing was ever written by it

    async def go(self) -> None:
        """Hand all messages over, and wait for their reports."""
        batch, cluster, plan = self._batch, self._cluster, self._plan
        for topic, records in self._begin().items():
            try:
                await cluster.know(topic, plan.connect_seconds)
            except EndpointError as error:
                for place, _ in records:
                    batch.settle(place, bad_endpoint(str(error)))
                unreachable = isinstance(error, UnreachableError)
                self.is_hopeless = unreachable and (not cluster.has_delivered or cluster.is_locked_out)
                continue
            for place, record in records:
                self._produce(place, topic, record)
        try:
            async with asyncio.timeout(plan.seconds + GRACE):
                await batch.over()
        except TimeoutError:
            cluster.lose("It reported nothing in time")
        if any(error.code() == KafkaError._FATAL for error in self._errors.values()):
            await cluster.end()

    def _begin(self) -> Mapping[str, Sequence[tuple[int, Record]]]:
        """Hand over what goes to topics that are known, and return the rest by topic, each with its place.

        A message that cannot be written is settled here.
        """
        route, plan, cluster, traces = self._route, self._plan, self._cluster, CARRIED.get() or {}
        usual, known = route.topic, cluster.knows(route.topic)
        waiting: dict[str, list[tuple[int, Record]]] = {}
        quick, of_plain, produce = known and plan.adds_nothing and not traces, route.records.of_plain, self._produce
        for place, message in enumerate(self._messages):
            try:
                if quick and (plain := message.plain) is not None and (record := of_plain(plain)) is not None:
                    produce(place, usual, record)
                    continue
                envelope = compose(message, plan.headers, plan.events, traces.get(message.id))
                topic = chosen(envelope, plan.overrides, "topic", usual)
                record = route.records.of(envelope)
            except (MessageError, UnicodeEncodeError) as error:
                said = str(error) if isinstance(error, MessageError) else "The message has text that is no Unicode."
                self._batch.settle(place, bad_message(said))
                continue
            if topic is not usual:
                self._others[place] = topic
            if known if topic is usual else cluster.knows(topic):
                self._produce(place, topic, record)
            else:
                waiting.setdefault(topic, []).append((place, record))
        return waiting

    def _produce(self, place: int, topic: str, record: Record) -> None:
        try:
            self._cluster.produce(self, place, topic, record, self._route.partition)
        except KafkaException as error:
            self._errors[place] = error.args[0]
            self._batch.settle(place, _TO_JUDGE)
        except BufferError:
            self._batch.settle(place, Defer(_FULL))  # nothing of it was sent

    def written_all(self, places: Sequence[int]) -> None:
        """Take reports of messages that were written, where it is not kept where."""
        self._batch.settle_all(places, COMPLETE)

    def reported(self, place: int, error: KafkaError | None, partition: int | None, offset: int | None) -> None:
        """Take one report. Errors are judged when the batch is over."""
        if error is not None:
            self._errors[place] = error
            self._batch.settle(place, _TO_JUDGE)
        elif self.details:
            topic = self._others.get(place, self._route.topic)
            self._batch.settle(place, Complete({"topic": topic, "partition": partition, "offset": offset}))
        else:
            self._batch.settle(place, COMPLETE)

    def outcomes(self, *, alone: bool) -> list[Outcome | None]:
        """Return an outcome for each message; None for one that has to go again, alone."""
        outcomes: list[Outcome | None] = list(self._batch.outcomes)
        if any(type(outcome) is Complete for outcome in outcomes):
            self._cluster.has_delivered = True
        for place, error in self._errors.items():
            outcomes[place] = self._judged(error, self._others.get(place, self._route.topic), alone)
        for place, outcome in enumerate(self._batch.outcomes):
            if outcome is None:
                topic = self._others.get(place, self._route.topic)
                outcomes[place] = unknown(f"No acknowledgement from topic {topic} within {self._plan.seconds:g} s")
        return outcomes

    def _judged(self, error: KafkaError, topic: str, alone: bool) -> Outcome | None:
        if error.code() in OF_A_BATCH and not alone:
            return None
        self._cluster.doubt(topic)
        fatal = self._cluster.fatal
        if fatal is not None and error.code() in (KafkaError._FATAL, KafkaError._PURGE_QUEUE):
            return bad_endpoint(f"The producer takes no more messages: {fatal}")
        return verdict(error, topic)
