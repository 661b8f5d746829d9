"""Slips in @pytest.mark.menzil(…) are answered with the argument that was meant."""

from __future__ import annotations

from typing import Any

import pytest

from menzil.model.errors import UsageError
from menzil.testing.marking import furnish


@pytest.mark.parametrize(
    ("given", "said", "hint"),
    [
        ({"chanels": ["mails"]}, "@pytest.mark.menzil has no argument 'chanels'.", "did you mean channels?"),
        ({"x": 1}, "@pytest.mark.menzil has no argument 'x'.", "it may be channels, endpoints, settings"),
        ({"channels": "mails"}, "channels is a list of names, or a dict.", "write channels=['mails']"),
        (
            {"channels": {"mails": {"max_concurency": 1}}},
            "A channel has no option 'max_concurency'.",
            "did you mean max_concurrency?",
        ),
    ],
)
def test_a_slip_is_answered(given: dict[str, Any], said: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        furnish("postgresql://127.0.0.1:1/nowhere", **given)
    assert (caught.value.message, caught.value.hint) == (said, hint)


def test_arguments_have_names() -> None:
    with pytest.raises(UsageError, match="by name") as caught:
        furnish("postgresql://127.0.0.1:1/nowhere", "mails")
    assert caught.value.hint == "write channels=['mails']"
