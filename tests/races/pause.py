"""Stops an actor in the middle of a function, so that another actor can act in between.

The place is a trigger on a table, or a line of the engine's own text before which a wait is inserted. Only an actor
that was asked to stop waits there; every other session runs on.
"""

from __future__ import annotations

from tests.races.actor import Actor
from tests.races.stage import Stage

NUMBER = 4711
WAIT = f"""
  if current_setting('application_name') = 'stops' then
    perform pg_advisory_xact_lock_shared({NUMBER});
  end if;
"""


class Pause:
    """Closed from the beginning; `open` lets the actor go on."""

    def __init__(self, stage: Stage, actor: Actor) -> None:
        self._stage, self._actor, self._keeper = stage, actor, stage.hire()
        actor.run("set application_name = 'stops'")
        self._keeper.begin()
        self._keeper.run(f"select pg_advisory_xact_lock({NUMBER})")

    def reached(self) -> None:
        """Returns when the actor waits here."""
        self._stage.until_waiting(self._actor, for_whom=self._keeper)

    def open(self) -> None:
        self._keeper.commit()


def pause_on(stage: Stage, actor: Actor, event: str, table: str) -> Pause:
    """Before each row that the actor inserts, updates or deletes in a table."""
    answer = "old" if event == "delete" else "new"
    stage.watcher.run(f"""
        create function public.stop_here() returns trigger language plpgsql as $$
        begin {WAIT} return {answer}; end $$;
        create trigger stop_here before {event} on menzil.{table} for each row execute function public.stop_here()""")
    return Pause(stage, actor)


def pause_before(stage: Stage, actor: Actor, function: str, line: str) -> Pause:
    """Before a line of a function of the engine."""
    (text,) = [
        row[0]
        for row in stage.watcher.run("select pg_get_functiondef(oid) from pg_proc where proname = %s", function)
        if line in row[0]
    ]
    assert text.count(line) == 1, f"{line!r} is {text.count(line)} times in {function}"
    stage.watcher.run(text.replace(line, WAIT + line))
    return Pause(stage, actor)
