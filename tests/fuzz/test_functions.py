"""Random arguments for every public function, as every role that may call it.

Each round calls all of them once, on a queue that has something of everything, and keeps what was accepted, so that odd
values which got in are met by the calls after them. MENZIL_FUZZ_EXAMPLES says how many rounds, MENZIL_SEED repeats a
run.
"""

from __future__ import annotations

import os
from random import Random, SystemRandom

import pytest

from tests.fuzz.catalog import ROLES, Function, pairs
from tests.fuzz.furnished import furnish
from tests.fuzz.pace import ROUNDS
from tests.fuzz.play import Play


@pytest.mark.slow
def test_whatever_is_passed_a_function_answers_or_refuses_as_documented(db: str) -> None:
    number = int(os.environ.get("MENZIL_SEED") or SystemRandom().randrange(10**9))
    print(f"MENZIL_SEED={number} MENZIL_FUZZ_EXAMPLES={ROUNDS}")
    play = Play(db, Random(number))
    with play.open():
        for _ in range(ROUNDS):
            play.round()
    print(f"{play.refused} calls refused, {play.accepted} accepted")
    assert not play.wrong, "\n".join(f"{sentence}\n    {how[:3000]}" for sentence, how in play.wrong.items())
    assert play.refused > 20 * ROUNDS
    assert play.accepted > 20 * ROUNDS


_BROKEN = """
create function menzil.broken(p_kind text) returns void language plpgsql as $$
begin
  if p_kind = 'undocumented' then perform 1 / 0; end if;
  raise exception using errcode = '22023',
    message = case p_kind when 'endless' then repeat('x', 9999) else E'two\\nlines' end,
    hint = case p_kind when 'no hint' then '' else 'Do not.' end;
end $$;
grant execute on function menzil.broken(text) to menzil_application"""


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("undocumented", "22012 is not documented"),
        ("endless", "endless"),
        ("no hint", "without a hint"),
        ("", "no line"),
    ],
)
def test_a_refusal_that_breaks_the_rules_is_noticed(db: str, kind: str, said: str) -> None:
    play = Play(db, Random(0))
    with play.open():
        play.owner.execute(_BROKEN)
        play.counted = play._counts()
        function = Function("broken", (("p_kind", "text"),), 1, ("menzil_application",))
        play.try_one("menzil_application", f"menzil.broken('{kind}')", function)
    assert said.replace("22012", "#") in str(play.wrong)


def test_a_queue_that_does_not_go_on_is_noticed(db: str) -> None:
    play = Play(db, Random(0))
    with play.open():
        furnish(play.owner)
        play.canary()
        assert not play.wrong
        play.owner.execute("select menzil.channel_pause('canary')")
        play.canary()
    assert "canary: what was sent is not leased" in play.wrong


def test_every_public_function_is_called_as_every_role_that_may(db: str) -> None:
    play = Play(db, Random(0))
    with play.open():
        turns = pairs(play.functions)
    assert {role for role, _ in turns} == set(ROLES)
    assert {function.name for role, function in turns if role == "menzil_admin"} == {f.name for f in play.functions}
    assert len(play.functions) > 90
