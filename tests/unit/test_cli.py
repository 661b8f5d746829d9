"""The menzil command: what it lists, how it fails, which database it picks."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import click
import psycopg
import pytest
from click.testing import CliRunner

from menzil.cli import main
from menzil.cli.dsn import dsn_option
from menzil.cli.lazy import LazyGroup, Place
from menzil.cli.main import COMMANDS
from menzil.model.errors import MenzilError


def failing(error: Exception) -> LazyGroup:
    group = LazyGroup(name="menzil", places={})

    @group.command()
    def fail() -> None:
        raise error

    return group


def test_version_is_the_version_of_the_package() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"menzil {version('menzil')}\n"


def test_help_lists_every_command_without_importing_it() -> None:
    places = {"far": Place("menzil.cli.not_there:far", "Is far away.")}
    result = CliRunner().invoke(LazyGroup(name="menzil", places=places), ["--help"])
    assert result.exit_code == 0
    assert "far  Is far away." in result.output


def test_help_and_completion_of_commands_do_without_the_driver() -> None:
    program = "import sys; from menzil.cli import main; main(standalone_mode=False); print('psycopg' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "False"


def test_an_error_of_the_driver_is_one_sentence() -> None:
    @click.command()
    def asking() -> None:
        raise psycopg.errors.DiskFull("the disk is full")

    group = LazyGroup("menzil", places={})
    group.add_command(asking)
    answer = CliRunner().invoke(group, ["asking"])
    assert (answer.exit_code, answer.stderr) == (2, "Error: The database could not: the disk is full.\n")


def test_a_command_that_cannot_be_imported_says_so_when_it_is_called() -> None:
    places = {"far": Place("menzil.cli.not_there:far", "Is far away.")}
    result = CliRunner().invoke(LazyGroup(name="menzil", places=places), ["far"])
    assert isinstance(result.exception, ModuleNotFoundError)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_where_the_table_says(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"Usage: main {name}")


def test_python_dash_m_menzil_is_the_same_command() -> None:
    answer = subprocess.run([sys.executable, "-m", "menzil", "--help"], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("Usage: menzil ")


def test_error_is_one_sentence_and_one_hint_on_stderr() -> None:
    result = CliRunner().invoke(failing(MenzilError("It did not work.", hint="try again")), ["fail"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "Error: It did not work.\nHint: try again\n"


def test_error_without_a_hint_is_one_sentence() -> None:
    result = CliRunner().invoke(failing(MenzilError("It did not work.")), ["fail"])
    assert (result.exit_code, result.stderr) == (2, "Error: It did not work.\n")


def test_unexpected_error_keeps_its_traceback() -> None:
    result = CliRunner().invoke(failing(ZeroDivisionError()), ["fail"])
    assert isinstance(result.exception, ZeroDivisionError)


def test_dsn_option_reaches_the_command() -> None:
    @click.command()
    @dsn_option
    def show(dsn: str | None) -> None:
        click.echo(dsn)

    assert CliRunner().invoke(show, ["--dsn", "host=a"]).output == "host=a\n"
