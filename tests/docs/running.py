"""Run the blocks of a page one after the other, as a reader would, in one folder and on one database."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
import yaml
from click.testing import CliRunner
from psycopg.conninfo import conninfo_to_dict

from menzil.cli import main
from menzil.embedded.binaries import find
from tests.docs.blocks import ROOT, Block, shell_lines
from tests.docs.services import serve, stays

#: Commands that a process of their own runs: they handle signals, or start others.
_APART = {"worker", "up"}
_SHELL = re.compile(r"[|&;<>$`*]")


class Run:
    """The state of a reader who types what a page says."""

    def __init__(self, dsn: str, folder: Path, modules: Path | None = None) -> None:
        self.dsn = dsn
        self.folder = folder
        self.modules = modules
        #: What a program of the reader has defined already.
        self.names: dict[str, Any] = {"__name__": "__page__", "handle": len, "dsn": dsn}
        #: Names of the reader's machines and folders, and what stands for them here. Pages call his database shop.
        self.stand_ins = {'"postgresql:///shop"': repr(dsn)}
        #: What blocks that are marked `with: NAME` need.
        self.parts: dict[str, Callable[[Run], AbstractContextManager[None]]] = {}
        self.said = ""
        programs = folder / ".bin"
        programs.mkdir()
        (programs / "menzil").write_text(f'#!/bin/sh\nexec {sys.executable} -m menzil "$@"\n')
        (programs / "menzil").chmod(0o755)
        (programs / "python").symlink_to(sys.executable)
        parts = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
        self.environ = {
            **os.environ,
            **{f"PG{name.upper()}": parts[name] for name in ("host", "port", "user", "password") if name in parts},
            "PGDATABASE": parts["dbname"],
            "PATH": f"{programs}:{find().bin}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}",
            "MENZIL_DSN": dsn,
            "DATABASE_URL": _url(parts),
            "PAGER": "cat",
        }

    def block(self, block: Block) -> None:
        """Run it, or compare it with what the block before it printed."""
        for name, here in self.stand_ins.items():
            block = replace(block, text=block.text.replace(name, here))
        if block.file:
            (self.folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / block.file).write_text(block.text)
        if block.reason or (block.file and not block.kind):
            return
        with self.parts[block.part](self) if block.part else contextlib.nullcontext():
            self._run(block)

    def _run(self, block: Block) -> None:
        if not block.kind:
            shown = block.text
            if typed := re.findall(r"^\$ (.+)\n", shown, re.MULTILINE):
                self.said = "".join(self._line(line, block, line == typed[-1]) for line in typed)
                shown = re.sub(r"^\$ .+\n", "", shown, flags=re.MULTILINE)
            assert bare(shown) in bare(self.said), f"line {block.line}: printed was\n{self.said}"
            return
        run = {
            "sql": self._sql,
            "sh": self._shell,
            "python": self._python,
            "js": self._node,
            "ini": self._unit,
            "yaml": self._queries,
        }
        if block.kind in run and not (block.file and block.kind == "python"):
            self.said = run[block.kind](block)

    def _sql(self, block: Block) -> str:
        # psql ends a statement where PostgreSQL does, so `call` may commit, and \gset works.
        return self._done(["psql", self.dsn, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-P", "footer=off"], block)

    def _shell(self, block: Block) -> str:
        lines = shell_lines(block.text)
        if any(stays(line) for line in lines) or all(self._here(line) for line in lines):
            return "".join(self._line(line, block, line == lines[-1]) for line in lines)
        return self._bash(block)

    def _line(self, line: str, block: Block, last: bool) -> str:
        if stays(line):
            return serve(line, self.folder, self.environ)
        if self._here(line):
            return self._command(line, block, last)
        return self._bash(replace(block, text=line, mark=block.mark if last else ""))

    def _bash(self, block: Block) -> str:
        kept = self.folder / ".environ"
        if "export " in block.text:  # the next block is typed into the same shell
            block = replace(block, text=f"{block.text}\nenv -0 > {shlex.quote(str(kept))}\n")
        said = self._done(["bash", "-euo", "pipefail"], block)
        if kept.exists():
            self.environ = dict(one.split("=", 1) for one in kept.read_text().split("\0") if one)
            kept.unlink()
        return said

    def _here(self, line: str) -> bool:
        words = line.split()
        return words[0] == "menzil" and words[1] not in _APART and not _SHELL.search(_unquoted(line))

    def _command(self, line: str, block: Block, last: bool) -> str:
        """A command in this process: a tenth of the time of a new one."""
        with contextlib.chdir(self.folder):
            done = CliRunner().invoke(main, shlex.split(line)[1:], env=self.environ, prog_name="menzil")
        assert done.exit_code == (block.ends_with if last else 0), f"line {block.line}: {line}\n{done.output}"
        return done.output

    def _python(self, block: Block) -> str:
        said = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said), contextlib.chdir(self.folder):
            for name, value in self.environ.items():
                patch.setenv(name, value)
            exec(compile(block.text, f"line {block.line}", "exec", dont_inherit=True), self.names)
        return said.getvalue()

    def _node(self, block: Block) -> str:
        if self.modules is None:
            return ""
        assert block.file, "a program of Node is a file"
        link = self.folder / "node_modules"
        if not link.exists():
            link.symlink_to(self.modules)
        return self._done(["node", block.file], block)

    def _unit(self, block: Block) -> str:
        """A unit of systemd: what `systemd-analyze` says of it, where there is one."""
        analyze = shutil.which("systemd-analyze")
        if analyze and block.file and block.file.endswith(".service"):
            done = subprocess.run(
                [analyze, "verify", "--man=no", str(self.folder / block.file)],
                capture_output=True,
                text=True,
                check=False,
            )
            wrong = [line for line in done.stderr.splitlines() if block.file in line and "not executable" not in line]
            assert wrong == []
        return ""

    def _queries(self, block: Block) -> str:
        """The queries of an exporter, as the role that exporters have: each returns the columns that the file names."""
        told = yaml.safe_load(block.text)
        if not isinstance(told, dict) or "query" not in block.text:
            return ""
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            conn.execute("set role menzil_monitor")
            for one in told["metrics"] if "collector_name" in told else told.values():
                named = [next(iter(column)) for column in one["metrics"]] if "metrics" in one else None
                columns = [column.name for column in conn.execute(one["query"]).description or ()]
                assert columns == (named or [*one["key_labels"], *one["values"]]), one
        return ""

    def _done(self, command: list[str], block: Block) -> str:
        done = subprocess.run(
            command,
            input=None if command[0] == "node" else block.text,
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == block.ends_with, f"line {block.line}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr


def _url(parts: dict[str, str]) -> str:
    """The connection as a URL, which drivers of other languages read."""
    login = f"{quote(parts['user'], safe='')}:{quote(parts.get('password', ''), safe='')}"
    return f"postgresql://{login}@{parts['host']}:{parts['port']}/{parts['dbname']}"


def _unquoted(line: str) -> str:
    """What a shell would look at for its own signs: nothing between single quotes."""
    return re.sub(r"'[^']*'", "", line)


def bare(text: str) -> str:
    """One space for many, and every time, duration and random name the same: no two runs have the same."""
    text = re.sub(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?[.\d]*(\+00|Z| UTC)?", "TIME", text)
    text = re.sub(r"\b\d+(\.\d+)? (ms|s)\b", "DURATION", text)
    return "\n".join(re.sub(r" +", " ", re.sub(r"-{3,}", "--", line)).strip() for line in text.strip().splitlines())


def node_modules(cache: Path) -> Path:
    """The folder with `pg`, installed once per clone; skips where that is not possible."""
    modules = cache / "node_modules"
    if not (modules / "pg").is_dir():
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            pytest.skip("node and npm are not installed")
        command = [npm, "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(cache), "pg@8"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip("npm did not install pg within a minute")
        if done.returncode:
            pytest.skip(f"npm cannot install pg: {done.stderr.strip()[-200:]}")
    return modules
