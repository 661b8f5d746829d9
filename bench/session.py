"""One run of the benchmark: its server, its crew, and the figures so far."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

from bench import machine
from bench.before import NAME, Before, NoHistoryError
from bench.crew import Crew
from bench.figures import Figure, Target, number
from bench.loads import bare
from bench.peers.home import Home
from bench.peers.league import League
from bench.readings import Reading
from bench.server import Server

L_CLIENTS = 4
NEW, OLD = "menzil", NAME


@dataclass
class Session:
    """What a section is given."""

    server: Server
    crew: Crew
    quick: bool
    patience: float = 0.0  # seconds left to wait for a quiet machine
    section: str = ""
    figures: list[Figure] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    home: Home = field(default_factory=Home)  # where peers are installed, once for all sections
    failures: dict[str, str] = field(default_factory=dict)  # peers that failed once
    absent: dict[str, str] = field(default_factory=dict)  # peers that were left out, and why
    bases: dict[tuple[str, int], str] = field(default_factory=dict)  # by peer and messages: databases to be copied
    league: League = field(default_factory=League)
    before: Before = field(default_factory=Before)  # version 0.1.0
    beside: Before | None = None  # another commit, for the section of that name

    @property
    def repeats(self) -> int:
        return 3 if self.quick else 5

    @property
    def seconds(self) -> float:
        """The length of one measurement."""
        return 1.0 if self.quick else 2.0

    def say(self, line: str) -> None:
        """Progress."""
        print(f"[{time.monotonic() - self.began:6.1f} s] {self.section}: {line}", flush=True)

    def repeat(self) -> Iterator[int]:
        """The numbers of the repeats, each begun when others leave the machine alone, as far as patience lasts."""
        for repeat in range(self.repeats):
            self.patience -= machine.wait_for_quiet(self.patience)
            yield repeat

    def versions(self) -> dict[str, Path | None]:
        """The versions to compare, each with the root of its SQL: this one, and 0.1.0 where the git history has it."""
        found: dict[str, Path | None] = {NEW: None}
        try:
            found[OLD] = self.before.sql
        except NoHistoryError as error:
            self.say(f"{error}: nothing is compared with it")
        return found

    def life_cycle(self, dsn: str) -> Reading:
        """L, the calibration: rows per second through insert-100 and delete-100 on a bare table, by four clients."""
        return self.crew.run(bare.life_cycle, dsn, self.seconds * 0.7, workers=L_CLIENTS).reading()

    def figure(
        self,
        name: str,
        values: Sequence[float],
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        unit: str = "×",
        beside: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        """Keep a figure and say it. `beside` are the plain measurements, shown as their means."""
        target = None
        if at_least is not None:
            target = Target(at_least)
        elif at_most is not None:
            target = Target(at_most, at_least=False)
        company = {what: mean(each) for what, each in (beside or {}).items() if each}
        figure = Figure(self.section, name, list(values), target, company, unit)
        self.figures.append(figure)
        goal = f", target {figure.target}: {figure.verdict}" if figure.target else ""
        self.say(f"→ {name} {number(figure.value)} {unit} ({figure.spread}){goal}")
