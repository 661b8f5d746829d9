"""Three databases on one worker process, of which one is killed and comes back: no message is lost."""

from __future__ import annotations

import pytest

from menzil.embedded import Embedded
from tests.torture.several import Result, run


def _kept(result: Result) -> None:
    print("\n".join(result.lines()))
    assert result.lost == 0
    assert result.unfinished == 0
    assert result.unexplained == 0
    assert result.exit_code == 0


@pytest.mark.slow
def test_a_database_that_dies_and_comes_back_loses_nothing_and_stops_no_other(server: Embedded) -> None:
    _kept(run(2_000, 1.0, server))


@pytest.mark.torture
def test_fifty_thousand_messages_in_each_of_three_databases_survive_a_killed_server() -> None:
    result = run(50_000, 4.0)
    _kept(result)
    assert result.ratio >= 0.9
