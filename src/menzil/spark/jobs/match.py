"""Which endpoints get an event. Python alone, no Spark: a task builds one Matcher and asks it for every event.

Comparing each event with each filter would be events times subscriptions. Instead every filter hangs on one of its
scalars, the rarest among all filters: an event looks up the few places where filters hang, and is compared only with
those that hang on the very value it has there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from menzil.model.errors import InvalidValueError
from menzil.spark.jobs.contain import Path, TooDeepError, at, contains, leaves, read


class Subscription(NamedTuple):
    """One row of the subscriptions; the filter is JSON text."""

    event_type: str
    endpoint: str
    filter: str | None


class _Filters:
    """The filters of one event type."""

    def __init__(self) -> None:
        self.everything: set[str] = set()
        self.wanted: dict[str, tuple[Any, set[str]]] = {}
        self.hanging: dict[Path, dict[Any, list[tuple[Any, set[str]]]]] = {}
        self.loose: list[tuple[Any, set[str]]] = []

    def add(self, subscription: Subscription) -> None:
        if subscription.filter is None:
            self.everything.add(subscription.endpoint)
        else:  # jsonb writes equal filters mostly alike: those are compared once for all their endpoints
            text = subscription.filter
            self.wanted.setdefault(text, (read(text), set()))[1].add(subscription.endpoint)

    def arrange(self) -> None:
        counts = Counter(leaf for wanted, _ in self.wanted.values() for leaf in leaves(wanted))
        hanging: dict[Path, dict[Any, list[tuple[Any, set[str]]]]] = defaultdict(lambda: defaultdict(list))
        for wanted, endpoints in self.wanted.values():
            path, value = min(leaves(wanted), key=counts.__getitem__, default=((), None))
            if path:
                hanging[path][value].append((wanted, endpoints))
            else:  # an empty object, or arrays alone: nothing to hang it on
                self.loose.append((wanted, endpoints))
        self.hanging = {path: dict(values) for path, values in hanging.items()}

    def endpoints(self, payload: Any) -> set[str]:
        found = set(self.everything)
        for path, values in self.hanging.items():
            for wanted, endpoints in values.get(at(payload, path), ()):
                if not endpoints <= found and contains(payload, wanted):
                    found |= endpoints
        for wanted, endpoints in self.loose:
            if not endpoints <= found and contains(payload, wanted):
                found |= endpoints
        return found


class Matcher:
    """All subscriptions, ready to be asked."""

    def __init__(self, subscriptions: Iterable[Subscription]) -> None:
        self._types: dict[str, _Filters] = defaultdict(_Filters)
        for subscription in subscriptions:
            self._types[subscription.event_type].add(subscription)
        for filters in self._types.values():
            filters.arrange()

    def endpoints(self, event_type: str, payload: Any) -> list[str]:
        """The endpoints that get this event, each once however many of its filters fit, by name."""
        filters = self._types.get(event_type)
        return [] if filters is None else sorted(filters.endpoints(payload))


def demand_shallow(subscriptions: Iterable[Subscription]) -> None:
    """Refuse filters that are nested deeper than Python follows, on the driver and before any task meets one."""
    for subscription in subscriptions:
        try:
            wanted = {} if subscription.filter is None else read(subscription.filter)
            contains(wanted, wanted)
        except (TooDeepError, RecursionError):
            who = f"{subscription.endpoint!r} to {subscription.event_type!r}"
            raise InvalidValueError(f"A filter of the subscription of {who} is nested too deeply.") from None


@lru_cache(maxsize=4)
def matcher(subscriptions: tuple[Subscription, ...]) -> Matcher:
    """The Matcher of these subscriptions, built once per Python worker and not once per task."""
    return Matcher(subscriptions)
