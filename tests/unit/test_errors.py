"""Errors: every SQLSTATE of the contract has a class, and nothing of what the server said is lost."""

from __future__ import annotations

import inspect
import pickle
import re

import psycopg
import pytest
from psycopg import pq

import menzil
from menzil.model import errors

CONTRACT = {
    "42704": menzil.UnknownNameError,
    "42710": menzil.NameTakenError,
    "55000": menzil.DisabledError,
    "22004": menzil.MissingValueError,
    "22023": menzil.InvalidValueError,
    "54000": menzil.PayloadTooLargeError,
    "23505": menzil.IdempotencyConflictError,
    "53400": menzil.QueueFullError,
    "MZ001": menzil.StaleLeaseError,
    "MZ002": menzil.NotInFlightError,
    "55006": menzil.EndpointInUseError,
    "42501": menzil.PermissionDeniedError,
}


class Said(psycopg.Error):
    """A server error as psycopg would raise it, without a server."""

    def __init__(self, state: str | None, sentence: str, hint: str | None = None) -> None:
        fields = {pq.DiagnosticField.MESSAGE_PRIMARY: sentence, pq.DiagnosticField.MESSAGE_HINT: hint}
        info = {number: None if text is None else text.encode() for number, text in fields.items()}
        super().__init__(sentence, info=info)  # type: ignore[arg-type]
        self.sqlstate = state


@pytest.mark.parametrize(("state", "kind"), CONTRACT.items())
def test_every_sqlstate_of_the_contract_has_its_class(state: str, kind: type[menzil.MenzilError]) -> None:
    error = errors.translate(Said(state, "It was refused.", "try less"))
    assert type(error) is kind
    assert (error.message, error.hint, error.sqlstate) == ("It was refused.", "try less", state)
    assert str(error) == "It was refused.\nHint: try less"


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("3F000", 'schema "menzil" does not exist'),
        ("42883", "function menzil.send(text, jsonb) does not exist"),
        ("42P01", 'relation "menzil.message" does not exist'),
    ],
)
def test_a_database_without_menzil_says_how_to_install_it(state: str, sentence: str) -> None:
    error = errors.translate(Said(state, sentence, "You might need to add explicit type casts."))
    assert type(error) is menzil.SchemaMissingError
    assert error.hint is not None
    assert "menzil migrate" in error.hint


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("3F000", 'schema "shop" does not exist'),
        ("42883", "function shop.order(integer) does not exist"),
        ("40001", "could not serialize access"),
        ("57014", "canceling statement due to user request"),
    ],
)
def test_errors_that_are_not_ours_stay_as_they_are(state: str, sentence: str) -> None:
    assert errors.translate(Said(state, sentence)) is None


@pytest.mark.parametrize("state", ["22P02", "22P05", "22003", "22008"])
def test_values_that_postgresql_cannot_read_are_invalid_values(state: str) -> None:
    error = errors.translate(Said(state, "invalid input syntax for type json"))
    assert type(error) is menzil.InvalidValueError
    assert error.sqlstate == state


@pytest.mark.parametrize(
    "error",
    [
        psycopg.OperationalError("connection refused"),
        Said("08006", "connection failure"),
        Said("57P01", "terminating connection due to administrator command"),
    ],
)
def test_a_broken_connection_is_told_from_a_refusal(error: psycopg.Error) -> None:
    assert type(errors.translate(error)) is menzil.ConnectionFailedError


def test_an_error_keeps_its_hint_between_processes() -> None:
    error = menzil.QueueFullError("The queue is full.", hint="wait")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is menzil.QueueFullError
    assert (copy.message, copy.hint, copy.sqlstate) == ("The queue is full.", "wait", "53400")


def drawn_tree() -> dict[str, str | None]:
    """Read the drawing: each class and the one it hangs from."""
    above: dict[int, str] = {}
    tree: dict[str, str | None] = {}
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"    (?P<branch>[ │├└─]*)(?P<name>\w+Error)\b", line):
            depth = len(found["branch"])
            above[depth] = found["name"]
            tree[found["name"]] = above.get(depth - 4)
    return tree


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]
    assert {kind.__name__: base_name(kind) for kind in classes} == drawn_tree()


def base_name(kind: type) -> str | None:
    (base,) = kind.__bases__
    return None if base is Exception else base.__name__


def test_every_error_is_a_public_word() -> None:
    assert drawn_tree().keys() <= set(menzil.__all__)


def test_the_public_words_are_sorted_and_there() -> None:
    assert sorted(menzil.__all__) == menzil.__all__ == sorted(set(menzil.__all__))
    assert all(hasattr(menzil, word) for word in menzil.__all__)
