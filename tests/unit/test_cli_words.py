"""What people type and what they are shown, without a database."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import psycopg
import pytest
from click.testing import CliRunner

import menzil
from menzil.cli import given, progress, show
from menzil.cli.endpoint.config import merged
from menzil.cli.lazy import LazyGroup
from menzil.model.errors import UsageError

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90", 90), ("1.5", 1.5), ("30s", 30), ("5m", 300), ("5 min", 300), ("2H", 7200), ("1d", 86400), ("1w", 604800)],
)
def test_a_duration_is_seconds_or_has_a_unit(written: str, seconds: float) -> None:
    assert given.seconds(written) == seconds


@pytest.mark.parametrize("written", ["", "-1s", "s", "1 fortnight", "1h30m", "infinity", "1e3"])
def test_what_is_no_duration_is_refused(written: str) -> None:
    with pytest.raises(UsageError, match="not a valid duration") as refused:
        given.seconds(written)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("now", timedelta()),
        ("-1d", timedelta(days=-1)),
        ("+90s", timedelta(seconds=90)),
        ("2h ago", timedelta(hours=-2)),
        ("in 5 min", timedelta(minutes=5)),
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31 12:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00.5+03:00", datetime(2026, 1, 31, 9, 0, 0, 500_000, tzinfo=UTC)),
    ],
)
def test_a_time_is_iso_8601_or_a_distance_from_now(written: str, meant: datetime | timedelta) -> None:
    assert given.when(written) == meant


@pytest.mark.parametrize("written", ["", "yesterday", "1d", "-1", "-1 fortnight", "2026-13-01", "-99999999999w", "ago"])
def test_what_is_no_time_is_refused(written: str) -> None:
    with pytest.raises(UsageError, match="not a valid time") as refused:
        given.when(written)
    assert refused.value.hint


def test_headers_are_names_and_values() -> None:
    assert given.headers([]) is None
    assert given.headers(["a=1", "b=c=d", "e="]) == {"a": "1", "b": "c=d", "e": ""}
    with pytest.raises(UsageError):
        given.headers(["=1"])


def test_a_change_is_merged_key_by_key_and_null_takes_away() -> None:
    mark = {"$secret": True}
    config = {"url": "a", "auth": {"type": "bearer", "token": mark}, "headers": {"x": "1", "y": "2"}}
    assert merged(config, {"headers": {"x": None, "z": "3"}})["headers"] == {"y": "2", "z": "3"}
    assert merged(config, {"auth": {"token": {"odd": 1}}})["auth"]["token"] == {"odd": 1}
    assert merged(config, {"auth": None, "max_concurrency": None}).keys() == {"url", "headers", "max_concurrency"}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.4, "59 s"), (60, "1 min"), (3661, "1 h 1 min"), (90_000, "1 d 1 h"), (-5, "0 s")],
)
def test_a_duration_is_shown_in_its_two_largest_units(seconds: float, words: str) -> None:
    assert show.duration(seconds) == words


def test_progress_says_how_far_how_fast_and_how_long_still() -> None:
    assert progress.line("sent", 12_000, 50_000, 4) == "12,000 of 50,000 sent, 24 %, 3,000/s, 13 s left"
    assert progress.line("sent", 12_000, None, 4) == "12,000 sent, 3,000/s"
    assert progress.line("sent", 0, 10, 0) == "0 of 10 sent, 0 %, 0/s"


def test_columns_are_aligned_and_numbers_stand_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    show.table([{"name": "a", "size": 5}, {"name": "longer", "size": 1234}], ["name", "size"])
    assert capsys.readouterr().out == "name    size\na          5\nlonger  1234\n"


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_is_for_a_terminal_whose_owner_wants_it(
    monkeypatch: pytest.MonkeyPatch, no_color: str, coloured: bool
) -> None:
    @click.command()
    def look() -> None:
        show.table([{"status": "failed"}], ["status"])

    monkeypatch.setenv("NO_COLOR", no_color)
    assert ("\x1b[31m" in CliRunner().invoke(look, color=True).output) == coloured
    assert "\x1b" not in CliRunner().invoke(look).output


def test_an_error_of_the_server_that_nobody_expected_is_one_sentence_too() -> None:
    group = LazyGroup(name="menzil", places={})

    @group.command()
    def fail() -> None:
        raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout")

    result = CliRunner().invoke(group, ["fail"])
    said = "Error: The database could not: canceling statement due to statement timeout.\n"
    assert (result.exit_code, result.stderr) == (2, said)


def commands(group: click.Command, name: str = "menzil") -> dict[str, click.Command]:
    """Every command there is, by what a user types."""
    if not isinstance(group, click.Group):
        return {name: group}
    context = click.Context(group)
    below = {word: group.get_command(context, word) for word in group.list_commands(context)}
    return {
        typed: one
        for word, command in below.items()
        if command
        for typed, one in commands(command, f"{name} {word}").items()
    }


def test_the_reference_names_every_command_and_every_option() -> None:
    from menzil.cli import main

    page = REFERENCE.read_text()
    found = commands(main)
    assert {typed for typed in found if f"`{typed}" not in page} == set()
    options = {
        (typed, word)
        for typed, command in found.items()
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
        for word in parameter.opts
        if word.startswith("--")
    }
    assert options
    assert {(typed, word) for typed, word in options if not re.search(rf"{word}\b", page)} == set()


def test_the_page_about_waiting_explains_every_reason() -> None:
    root = REFERENCE.parents[2]
    source = (root / "src/menzil/sql/functions/5_watching/message_why.sql").read_text()
    (order,) = re.findall(r"v_order constant text\[\] := '\{(.*?)\}'", source, re.DOTALL)
    reasons = re.findall(r"[a-z_]+", order)
    assert len(reasons) > 15
    page = (root / "docs/how-to/find-out-why-a-message-waits.md").read_text()
    table = page.split("## What the reasons mean")[1].split("\n## ")[0]
    assert {
        word
        for row in table.splitlines()
        for word in re.findall(r"`([a-z_]+)`", row.split("|")[1] if "|" in row else "")
    } == set(reasons)


def test_commands_that_texts_of_the_program_name_are_there() -> None:
    """Hints say what to type: a command that was renamed must not stay in one."""
    from menzil.cli import main

    there = set(commands(main))
    groups = {typed.rpartition(" ")[0] for typed in there} | {typed.rsplit(" ", 2)[0] for typed in there}
    source = Path(menzil.__file__).parent
    named = {
        found[1]
        for suffix in ("py", "sql", "html")
        for path in source.rglob(f"*.{suffix}")
        for found in re.finditer(r"`(menzil(?: [a-z][a-z-]*)+)", path.read_text())
    }
    assert len(named) > 50
    wrong = {one for one in named if one not in groups and not any(f"{one} ".startswith(f"{it} ") for it in there)}
    assert wrong == set()
