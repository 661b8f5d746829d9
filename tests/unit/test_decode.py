"""payload=…: what JSON becomes, and what is refused with its place."""

from __future__ import annotations

import json
import traceback
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NewType, NotRequired, Optional, TypedDict
from uuid import UUID

import pytest

import menzil
from menzil.model.decode import payload_decoder

Sku = NewType("Sku", str)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Line:
    sku: Sku
    count: int = 1


@dataclass(frozen=True)
class Order:
    id: int
    lines: list[Line]
    price: Decimal
    at: datetime
    note: str | None = None
    kind: Literal["web", "shop"] = "web"
    colour: Colour = Colour.RED
    tags: tuple[str, ...] = ()
    pair: tuple[int, str] | None = None
    weight: float = 0.0
    token: UUID | None = None
    extra: dict[str, int] = field(default_factory=dict)
    parent: Optional[Order] = None  # noqa: UP045  # as many write it
    day: Annotated[date | None, "a day"] = None
    total: int = field(init=False, default=0)


class Address(TypedDict):
    city: str
    since: NotRequired[date]


class Customer(TypedDict, total=False):
    name: str
    addresses: list[Address]


def decode(kind: Any, value: Any) -> Any:
    return payload_decoder(kind)(menzil.Message(1, "orders", value))


ORDER: dict[str, Any] = {"id": 7, "lines": [{"sku": "a"}], "price": 1.10, "at": "2026-11-17T08:00:00Z"}


def test_a_dataclass_is_made_with_all_that_is_inside() -> None:
    order = decode(
        Order,
        {
            **ORDER,
            "note": "n",
            "kind": "shop",
            "colour": "blue",
            "tags": ["x", "y"],
            "pair": [1, "b"],
            "weight": 2,
            "token": "00000000-0000-0000-0000-000000000001",
            "extra": {"k": 1},
            "parent": ORDER,
            "day": "2026-11-17",
            "unknown": "a newer sender knows it",
        },
    )
    assert order.lines == [Line(Sku("a"), 1)]
    assert order.price == Decimal("1.1")
    assert order.at == datetime(2026, 11, 17, 8, tzinfo=UTC)
    assert (order.kind, order.colour, order.tags, order.pair) == ("shop", Colour.BLUE, ("x", "y"), (1, "b"))
    assert isinstance(order.weight, float)
    assert order.token == UUID(int=1)
    assert order.parent.id == 7
    assert order.day == date(2026, 11, 17)


def test_a_typed_dict_stays_a_dict_and_keeps_keys_it_does_not_know() -> None:
    given = {"name": "ada", "addresses": [{"city": "Bursa", "since": "2020-01-02"}, {"city": "Konya"}], "more": 1}
    assert decode(Customer, given) == {
        "name": "ada",
        "addresses": [{"city": "Bursa", "since": date(2020, 1, 2)}, {"city": "Konya"}],
        "more": 1,
    }


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (Order, {**ORDER, "id": "7"}, "id: expected int, not a text"),
        (Order, {**ORDER, "id": True}, "id: expected int, not true or false"),
        (Order, {"id": 7}, "lines: is missing"),
        (Order, {**ORDER, "lines": [{"sku": "a"}, {}]}, "lines[1].sku: is missing"),
        (Order, {**ORDER, "lines": {}}, "lines: expected a list, not an object"),
        (Order, {**ORDER, "price": "x"}, "price: is not a decimal number"),
        (Order, {**ORDER, "at": "soon"}, "at: is not the text of a datetime"),
        (Order, {**ORDER, "kind": "fax"}, "kind: is not one of 'web', 'shop'"),
        (Order, {**ORDER, "colour": "green"}, "colour: is not one of 'red', 'blue'"),
        (Order, {**ORDER, "pair": [1]}, "pair: expected a list of 2, not a list of 1"),
        (Order, {**ORDER, "parent": {**ORDER, "id": None}}, "parent.id: expected int, not null"),
        (Order, [], "expected an object, not a list of 0"),
        (Customer, {"addresses": [{}]}, "addresses[0].city: is missing"),
        (list[int], [1, "2"], "[1]: expected int, not a text"),
        (int | str, 1.5, "fits none of int | str"),
    ],
)
def test_a_payload_that_does_not_fit_says_where(kind: Any, value: Any, said: str) -> None:
    with pytest.raises(menzil.InvalidValueError) as refused:
        decode(kind, value)
    assert refused.value.message.endswith(f"{said}.")


def test_a_message_of_bytes_fits_no_model() -> None:
    with pytest.raises(menzil.InvalidValueError, match="was sent as bytes"):
        payload_decoder(Line)(menzil.Message(1, "orders", content=b"x"))


@pytest.mark.parametrize("kind", [object(), complex, dict[int, str], 3])
def test_a_model_that_cannot_be_made_is_refused_when_the_handler_is_written(kind: Any) -> None:
    app = menzil.Worker("postgresql:///nowhere")
    with pytest.raises(menzil.UsageError, match="payload cannot be"):
        app.handler("orders", payload=kind)(lambda message: None)


class Validating:
    """A class with the method of a pydantic model."""

    def __init__(self, number: int) -> None:
        self.number = number

    @classmethod
    def model_validate_json(cls, text: bytes) -> Validating:
        number = json.loads(text)["number"]
        if number < 0:
            raise ValueError("1 validation error for Validating: number must not be negative")
        return cls(number)


def test_a_model_that_validates_json_itself_does_so() -> None:
    assert decode(Validating, {"number": 3}).number == 3
    with pytest.raises(menzil.InvalidValueError, match="does not fit Validating: 1 validation error"):
        decode(Validating, {"number": -1})


def test_a_model_of_pydantic_is_made() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Parcel", number=(int, ...), at=(datetime, ...))
    found = decode(model, {"number": 3, "at": "2026-11-17T08:00:00Z"})
    assert (found.number, found.at) == (3, datetime(2026, 11, 17, 8, tzinfo=UTC))
    with pytest.raises(menzil.InvalidValueError, match="does not fit Parcel: number: Input should be") as refused:
        decode(model, {"number": "three".upper()})
    assert "THREE" not in "".join(traceback.format_exception(refused.value))
    assert decode(pydantic.TypeAdapter(list[model]), [{"number": 1, "at": "2026-11-17T08:00:00Z"}])[0].number == 1  # type: ignore[valid-type]
