"""A plan that is only shown must not pass for work that was done."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from tests.integration.cli.user import User


def purge(user: User, stdin: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "menzil", "channel", "purge", "work"]
    environment = {**os.environ, "MENZIL_DSN": user.dsn}
    return subprocess.run(
        command, stdin=stdin, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_line_in_a_crontab_without_yes_fails_and_a_person_at_a_terminal_is_shown_the_plan(user: User) -> None:
    user.gets("send", "work", "1")
    cron = purge(user, subprocess.DEVNULL)
    assert (cron.returncode, cron.stdout) == (1, "")
    assert cron.stderr.endswith("Nothing was changed. Add --yes to do it.\n")
    person, terminal = pty.openpty()
    try:
        typed = purge(user, terminal)
    finally:
        os.close(person)
        os.close(terminal)
    assert (typed.returncode, typed.stderr) == (0, cron.stderr)


@pytest.mark.parametrize(
    "words",
    [
        ["channel", "purge", "work"],
        ["dlq", "redrive", "--all"],
        ["dlq", "cleanup"],
        ["replay", "--endpoint", "work", "--from", "-1h"],
        ["archive", "cleanup"],
    ],
)
def test_every_command_that_only_plans_without_a_terminal_ends_with_1(user: User, words: list[str]) -> None:
    assert user.plans(*words)["done"] is None
    assert user.types(*words, "--yes").exit_code == 0
