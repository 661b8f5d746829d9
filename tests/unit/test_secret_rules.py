"""What a refused secret should have been, in words."""

from __future__ import annotations

import pytest

from menzil.model.errors import InvalidValueError
from menzil.model.secret_paths import Rule, check_secret


@pytest.mark.parametrize(
    ("minimum", "said"),
    [(None, "a text of at most 90 characters"), (8, "a text of 8 to 90 characters")],
)
def test_rule_without_a_minimum_names_only_its_maximum(minimum: int | None, said: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        check_secret("auth.password", Rule(("auth", "password"), "secret", minimum, 90), "x" * 91)
    assert f"auth.password must be {said} without control characters." in refused.value.message
