"""From parsed JSON to what a program wants to work with: a dataclass, a TypedDict, or types that JSON does not have.

Models of pydantic and other classes that validate JSON themselves are recognised by their methods, not imported. What
does not fit is refused with the place of the first value that is wrong. Keys that a dataclass does not know are left
out: a sender may be newer than this program.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any
from uuid import UUID

from menzil.model.errors import InvalidValueError, UsageError
from menzil.model.message import Message

_Decode = Callable[[Any, str], Any]
_Made = dict[Any, _Decode]
_TEXTS: dict[type, Callable[[str], Any]] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    time: time.fromisoformat,
    UUID: UUID,
}
_LISTS: dict[Any, type] = {list: list, Sequence: list, tuple: tuple, set: set, frozenset: frozenset}


def payload_decoder(kind: Any) -> Callable[[Message], Any]:
    """Return what turns the payload of a message into `kind`; refuses a kind that it cannot make."""
    name = getattr(kind, "__name__", None) or str(kind)
    for method in ("model_validate_json", "validate_json"):  # a model of pydantic, a TypeAdapter
        validate = getattr(kind, method, None)
        if callable(validate):
            return _by_itself(validate, name)
    decode = _make(kind, {})

    def read(message: Message) -> Any:
        _refuse_bytes(message, name)
        try:
            return decode(message.payload, "")
        except _MisfitError as error:
            raise InvalidValueError(f"The payload does not fit {name}: {error}.") from None

    return read


def _by_itself(validate: Callable[[bytes], Any], name: str) -> Callable[[Message], Any]:
    def read(message: Message) -> Any:
        _refuse_bytes(message, name)
        try:
            return validate(message.payload_json)
        except ValueError as error:
            raise InvalidValueError(f"The payload does not fit {name}: {_told(error)}.") from None

    return read


def _refuse_bytes(message: Message, name: str) -> None:
    if message.content is not None:
        raise InvalidValueError(f"The payload does not fit {name}: the message was sent as bytes.")


class _MisfitError(Exception):
    """A value is not what it should be; says where."""

    def __init__(self, place: str, wrong: str) -> None:
        super().__init__(f"{place.lstrip('.')}: {wrong}" if place else wrong)


def _make(kind: Any, made: _Made) -> _Decode:
    """Return the decoder of a type. `made` are those under way: a type may contain itself."""
    try:
        if kind in made:
            return lambda value, place: made[kind](value, place)
    except TypeError:
        pass  # an unhashable annotation cannot contain itself
    origin = typing.get_origin(kind)
    if origin is typing.Annotated or origin in (typing.Required, typing.NotRequired):
        return _make(typing.get_args(kind)[0], made)
    if kind is Any or kind is object:
        return lambda value, _: value
    if isinstance(kind, typing.NewType):
        return _make(kind.__supertype__, made)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _of_dataclass(kind, made)
    if typing.is_typeddict(kind):
        return _of_typed_dict(kind, made)
    if origin in (typing.Union, types.UnionType):
        return _of_union([_make(one, made) for one in typing.get_args(kind)], kind)
    if origin is typing.Literal:
        return _of_choice(kind)
    if kind in _LISTS or origin in _LISTS:
        return _of_list(kind, made)
    if kind in (dict, Mapping) or origin in (dict, Mapping):
        return _of_dict(kind, made)
    return _of_scalar(kind)


def _of_dataclass(kind: type, made: _Made) -> _Decode:
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = [one for one in dataclasses.fields(kind) if one.init]
    absent = (dataclasses.MISSING, dataclasses.MISSING)
    required = [one.name for one in fields if (one.default, one.default_factory) == absent]

    def decode(value: Any, place: str) -> Any:
        given = _object(value, required, place)
        try:
            return kind(**{name: read(given[name], f"{place}.{name}") for name, read in parts.items() if name in given})
        except (TypeError, ValueError) as error:  # its __post_init__ refuses it
            raise _MisfitError(place, str(error)) from error

    made[kind] = decode
    parts = {one.name: _make(hints[one.name], made) for one in fields}
    return decode


def _of_typed_dict(kind: Any, made: _Made) -> _Decode:
    hints = typing.get_type_hints(kind, include_extras=True)
    # __required_keys__ does not see a NotRequired that is still text, as with `from __future__ import annotations`.
    said = {name: typing.get_origin(hint) for name, hint in hints.items()}
    required = [
        name
        for name in hints
        if said[name] is typing.Required or (name in kind.__required_keys__ and said[name] is not typing.NotRequired)
    ]

    def decode(value: Any, place: str) -> Any:
        given = _object(value, required, place)
        return {key: parts[key](one, f"{place}.{key}") if key in parts else one for key, one in given.items()}

    made[kind] = decode
    parts = {name: _make(hint, made) for name, hint in hints.items()}
    return decode


def _object(value: Any, required: typing.Iterable[str], place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _MisfitError(place, f"expected an object, not {_shown(value)}")
    for name in required:
        if name not in value:
            raise _MisfitError(f"{place}.{name}", "is missing")
    return value


def _of_union(parts: list[_Decode], kind: Any) -> _Decode:
    def decode(value: Any, place: str) -> Any:
        first: _MisfitError | None = None
        for read in parts:
            try:
                return read(value, place)
            except _MisfitError as error:
                first = first or error
        if len(parts) == 2 and type(None) in typing.get_args(kind) and first is not None:
            raise first  # of the one type there is, it says more
        raise _MisfitError(place, f"fits none of {kind}")

    return decode


def _of_choice(kind: Any) -> _Decode:
    words = typing.get_args(kind)

    def decode(value: Any, place: str) -> Any:
        if not any(value == word and type(value) is type(word) for word in words):
            raise _MisfitError(place, f"is not one of {', '.join(map(repr, words))}")
        return value

    return decode


def _of_list(kind: Any, made: _Made) -> _Decode:
    into = _LISTS[typing.get_origin(kind) or kind]
    of = typing.get_args(kind)
    if into is tuple and of and of[-1] is not Ellipsis:
        parts = [_make(one, made) for one in of]

        def decode_each(value: Any, place: str) -> Any:
            if not isinstance(value, list) or len(value) != len(parts):
                raise _MisfitError(place, f"expected a list of {len(parts)}, not {_shown(value)}")
            return tuple(read(one, f"{place}[{n}]") for n, (read, one) in enumerate(zip(parts, value, strict=True)))

        return decode_each
    read = _make(of[0], made) if of else _make(Any, made)

    def decode(value: Any, place: str) -> Any:
        if not isinstance(value, list):
            raise _MisfitError(place, f"expected a list, not {_shown(value)}")
        return into(read(one, f"{place}[{n}]") for n, one in enumerate(value))

    return decode


def _of_dict(kind: Any, made: _Made) -> _Decode:
    of = typing.get_args(kind) or (str, Any)
    if of[0] not in (str, Any):
        raise UsageError(f"A payload cannot be {kind}.", hint="the keys of a JSON object are texts")
    read = _make(of[1], made)
    return lambda value, place: {key: read(one, f"{place}.{key}") for key, one in _object(value, (), place).items()}


def _of_scalar(kind: Any) -> _Decode:
    if kind is None or kind is type(None):
        return _exactly(type(None), "null")
    if isinstance(kind, type):
        if issubclass(kind, Enum):
            return _converted(kind, object, f"one of {', '.join(repr(one.value) for one in kind)}")
        if kind in _TEXTS:
            return _converted(_TEXTS[kind], str, f"the text of a {kind.__name__}")
        if kind is Decimal:  # json.loads reads a number as float: its shortest text has the digits that were sent
            return _converted(lambda value: Decimal(str(value)), (str, int, float), "a decimal number")
        if kind is float:
            return _converted(float, (int, float), "a number")
        if kind in (bool, int, str):
            return _exactly(kind, kind.__name__)
    hint = "give a dataclass, a TypedDict, a pydantic model, or types that are made of these"
    raise UsageError(f"A payload cannot be decoded as {getattr(kind, '__qualname__', kind)}.", hint=hint)


def _exactly(kind: type, name: str) -> _Decode:
    def decode(value: Any, place: str) -> Any:
        if type(value) is not kind:
            raise _MisfitError(place, f"expected {name}, not {_shown(value)}")
        return value

    return decode


def _converted(convert: Callable[[Any], Any], given: type | tuple[type, ...], name: str) -> _Decode:
    def decode(value: Any, place: str) -> Any:
        if not isinstance(value, given) or (isinstance(value, bool) and given is not object):
            raise _MisfitError(place, f"expected {name}, not {_shown(value)}")
        try:
            return convert(value)
        except (ValueError, InvalidOperation):
            raise _MisfitError(place, f"is not {name}") from None

    return decode


def _shown(value: Any) -> str:
    """What kind of value it is. Errors are stored, logged and read by people who may not see payloads."""
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a text", dict: "an object"}
    return "null" if value is None else f"a list of {len(value)}" if type(value) is list else kinds[type(value)]


def _told(error: ValueError) -> str:
    """What a model of pydantic says about the first value that is wrong, without the value itself."""
    errors: Any = getattr(error, "errors", None)
    if not callable(errors):
        return str(error).rstrip(".")
    first = errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")
