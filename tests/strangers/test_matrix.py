"""No role waits for a stranger, unless the table says so."""

from __future__ import annotations

import pytest

from tests.strangers.stage import Stage
from tests.strangers.table import GROUPS
from tests.strangers.words import Group, Stranger

ALL = [stranger for group in GROUPS for stranger in group.strangers]


@pytest.mark.slow
@pytest.mark.parametrize("group", [group for group in GROUPS if not group.alone], ids=lambda group: group.title)
def test_strangers_together(stage: Stage, group: Group):
    """Held at the same time. If a role stalls, each is held alone to find out for which one."""
    if together := stage.hold(group.strangers):
        guilty = {stranger.name: found for stranger in group.strangers if (found := stage.hold([stranger]))}
        assert not guilty, "\n".join(f"{name}:\n  " + "\n  ".join(found) for name, found in guilty.items())
        pytest.fail("none stalls the queue alone, together they do:\n" + "\n".join(together))


@pytest.mark.slow
@pytest.mark.parametrize(
    "stranger", [stranger for group in GROUPS if group.alone for stranger in group.strangers], ids=lambda s: s.name
)
def test_stranger_alone(stage: Stage, stranger: Stranger):
    found = stage.hold([stranger])
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "stalled"),
    [
        ("lock table menzil.line in access exclusive mode", ["send plain", "settle fail", "lease keyed"]),
        ("select menzil.channel_pause('plain')", ["lease plain"]),
        ("select * from menzil.lease for update", ["settle complete"]),
        ("select * from menzil.lane where name in ('handled', 'booked') for update", ["work handled", "work booked"]),
    ],
)
def test_stage_notices_stalls(stage: Stage, sql: str, stalled: list[str]):
    found = "\n".join(stage.hold([Stranger("a stranger to notice", (sql,), "owner")], 1.6))
    assert all(f"{role}: " in found for role in stalled), found


@pytest.mark.torture
@pytest.mark.parametrize("stranger", ALL, ids=lambda stranger: stranger.name)
def test_stranger_alone_and_for_long(stage: Stage, stranger: Stranger):
    found = stage.hold([stranger], 15)
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_stage_notices_a_standstill_that_no_lock_explains(stage: Stage):
    """A pause that is committed: nothing waits for a lock, so the same is done again, and again it is noticed."""
    pause, resume = (f"select menzil.channel_{verb}('plain')" for verb in ("pause", "resume"))
    found = stage.hold([Stranger("a stranger to notice", ("select 1",), "owner", then=(pause,), after=(resume,))], 1.6)
    assert any(line.startswith("lease plain: ") for line in found), found
