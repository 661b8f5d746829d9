"""A user types a command, reads what comes out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from click.testing import CliRunner, Result

from menzil.cli import main


@dataclass(frozen=True)
class User:
    """Types commands against one database."""

    dsn: str

    def types(self, *words: str, stdin: str | bytes | None = None) -> Result:
        """Run a command; whatever happens, nobody sees a traceback."""
        result = CliRunner().invoke(main, words, input=stdin, env={"MENZIL_DSN": self.dsn}, prog_name="menzil")
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        return result

    def gets(self, *words: str, stdin: str | bytes | None = None) -> str:
        """Run a command that must succeed and return its data, without the last line end."""
        result = self.types(*words, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout.removesuffix("\n")

    def reads(self, *words: str, stdin: str | bytes | None = None) -> Any:
        """Run a command with --json that must succeed and return the document."""
        return json.loads(self.gets(*words, "--json", stdin=stdin))

    def plans(self, *words: str) -> Any:
        """Run a command with --json that only shows a plan. No terminal is there, so its exit code is 1."""
        result = self.types(*words, "--json")
        assert result.exit_code == 1, result.output
        document = json.loads(result.stdout)
        assert document["done"] is None
        return document

    def fails(self, *words: str, stdin: str | bytes | None = None) -> str:
        """Run a command that cannot do its work and return what it says: a sentence, and mostly a hint."""
        result = self.types(*words, stdin=stdin)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        return result.stderr
