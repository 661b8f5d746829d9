"""The directory of a run, and what every process of it needs to know, handed over in its environment."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.torture.history import Diary
from tests.torture.plan import Channel, Plan

PLACE, NAME, DSN, SEED = "TORTURE_PLACE", "TORTURE_NAME", "TORTURE_DSN", "TORTURE_SEED"


@dataclass(frozen=True)
class Place:
    """Where things lie."""

    path: Path

    @property
    def diaries(self) -> Path:
        return self.path / "history"

    @property
    def dumps(self) -> Path:
        return self.path / "dumps"

    @property
    def begun(self) -> bool:
        """Whether everybody is there and senders may send."""
        return (self.path / "begun").exists()

    @property
    def draining(self) -> bool:
        """Whether everybody should only finish what is there."""
        return (self.path / "draining").exists()

    @property
    def over(self) -> bool:
        """Whether everybody should end."""
        return (self.path / "over").exists()

    def say(self, word: str) -> None:
        """Say `begun`, `draining` or `over` to all processes."""
        (self.path / word).touch()

    def keep(self, plan: Plan) -> None:
        """Write down the plan for those who follow it."""
        (self.path / "plan.json").write_text(json.dumps(asdict(plan)))

    def plan(self) -> Plan:
        """Read it again."""
        given = json.loads((self.path / "plan.json").read_text())
        channels = {name: Channel(**channel) for name, channel in given.pop("channels").items()}
        return Plan(**given, channels=channels)


@dataclass(frozen=True)
class Me:
    """A process of the run: its name, its diary, its way to the database."""

    name: str
    place: Place
    diary: Diary
    dsn: str
    pooled: bool

    @classmethod
    def here(cls) -> Me:
        place = Place(Path(os.environ[PLACE]))
        name = os.environ[NAME]
        return cls(name, place, Diary(place.diaries, name), os.environ[DSN], "dbname=pooled" in os.environ[DSN])
