"""Is a block well formed? Asked of every block of every page, also of those that no test runs."""

from __future__ import annotations

import ast
import json
import re
import shlex
import textwrap
from collections.abc import Callable

import click
import yaml

from menzil.cli import main
from tests.docs.blocks import Block, shell_lines

#: What separates commands in a line of a shell.
_SEPARATORS = {";", "&&", "||", "|", "&", "do", "then"}
_WORDS = re.compile(r"\bmenzil (?!\()")
_INSTRUCTIONS = {"FROM", "RUN", "COPY", "WORKDIR", "USER", "ENV", "ENTRYPOINT", "CMD", "STOPSIGNAL", "ARG", "EXPOSE"}


def complaint(block: Block) -> str | None:
    """What is wrong with it, or None."""
    try:
        _CHECKS.get(block.kind, _output)(block.text)
    except (SyntaxError, ValueError, click.ClickException, yaml.YAMLError) as wrong:
        told = wrong.format_message() if isinstance(wrong, click.ClickException) else str(wrong)
        return f"line {block.line}: {told}"
    return None


def _python(text: str) -> None:
    compile(textwrap.dedent(text), "block", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def _shell(text: str) -> None:
    for line in shell_lines(text):
        for command in _commands(line):
            menzil_command(command)


def _output(text: str) -> None:
    """What a program printed: only lines that begin as a person types them are looked at."""
    for line in text.splitlines():
        if line.startswith(("$ menzil ", "menzil ")):
            _shell(line.removeprefix("$ "))


def _dockerfile(text: str) -> None:
    for line in shell_lines(text):
        word, _, rest = line.partition(" ")
        if word not in _INSTRUCTIONS:
            raise ValueError(f"{word} is not an instruction of a Dockerfile.")
        if word in ("CMD", "ENTRYPOINT"):
            given = json.loads(rest)
            if given[0] == "menzil":
                menzil_command(given[1:])


def _ini(text: str) -> None:
    """systemd's own form: keys may be repeated."""
    section = None
    for line in shell_lines(text):
        if found := re.fullmatch(r"\[(\w+)\]", line):
            section = found[1]
        elif section is None or not re.match(r"[\w]+\s*=", line):
            raise ValueError(f"{line!r} is neither a section nor an assignment.")


def _commands(line: str) -> list[list[str]]:
    """The words behind `menzil` of every command in a line."""
    if not _WORDS.search(line):
        return []
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in lexer:
        if word in _SEPARATORS:
            found.append([])
        elif found[-1] or not re.match(r"[A-Z_]+=", word):  # variables may stand before a command
            found[-1].append(word)
    return [_without_redirections(words[1:]) for words in found if words and re.fullmatch(r"(.*/)?menzil", words[0])]


def _without_redirections(words: list[str]) -> list[str]:
    for number, word in enumerate(words):
        if re.match(r"\d?>|<", word):
            return words[:number]
    return words


def menzil_command(words: list[str]) -> None:
    """Parse the words as the command line does, and run nothing: every command and option must exist."""
    if "…" in " ".join(words) or "..." in words:
        return
    command: click.Command = main
    # A command keeps the help option of its first context, so this one has the settings of the real one.
    context = click.Context(main, info_name="menzil", **main.context_settings)
    while isinstance(command, click.Group):
        parser = command.make_parser(context)
        parser.allow_interspersed_args = False
        _, words, _ = parser.parse_args(list(words))
        if not words:
            return
        name, words = words[0], words[1:]
        found = command.get_command(context, name)
        if found is None:
            raise click.UsageError(f"menzil has no command {name}.")
        command, context = found, click.Context(found, parent=context, info_name=name)
    if not {"--help", "-h"} & set(words):
        command.make_parser(context).parse_args(list(words))


_CHECKS: dict[str, Callable[[str], object]] = {
    "python": _python,
    "sh": _shell,
    "json": json.loads,
    "yaml": yaml.safe_load,
    "dockerfile": _dockerfile,
    "ini": _ini,
    "sql": lambda text: None,
    "mermaid": lambda text: None,
    "nginx": lambda text: None,
    "js": lambda text: None,
}
