"""How much is tried: little enough for every run of the tests, or as much as MENZIL_FUZZ_EXAMPLES says.

It counts the rounds through every SQL function; the properties of single parts grow with it.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

USUAL = 6
ROUNDS = int(os.environ.get("MENZIL_FUZZ_EXAMPLES") or USUAL)


def examples(number: int) -> settings:
    """Return settings for a property that is usually tried so many times. A failure prints how to repeat it."""
    return settings(
        max_examples=max(10, number * ROUNDS // USUAL),
        deadline=None,
        database=None,
        derandomize=ROUNDS == USUAL,  # `make test` says the same of the same code; chance is for the long run
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
