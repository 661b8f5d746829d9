#!/usr/bin/env python3
"""Unpack brokers of Debian for the tests, without root: python3 tools/brokers.py rabbitmq-server mosquitto

Each named package and the packages that it needs and this machine does not have are downloaded and unpacked into one
folder: that of --into, else of MENZIL_TEST_BROKERS, else build/brokers. Nothing is installed, no script of a package is
run, so no service is started. Package lists are read from the system; if it has none, they are fetched into the folder.

A package that is unpacked already, or installed on this machine, costs nothing. Prints the folder. Exits with 1, and
one sentence on stderr, when a package cannot be had; the other ones are unpacked nevertheless. Tests find the programs
with tests/brokers/unpacked.py.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Seconds for one call of apt-get. Lists of Debian are 10 MB, RabbitMQ with Erlang is 40 MB.
PATIENCE = 600


class FailedError(Exception):
    """A package cannot be had; the text says why."""


def main() -> int:
    """Unpack what is named on the command line."""
    parser = argparse.ArgumentParser(description="Unpack brokers of Debian for the tests, without root.")
    parser.add_argument("packages", nargs="+", metavar="PACKAGE", help="a Debian package, such as rabbitmq-server")
    parser.add_argument("--into", type=Path, help="the folder; default: MENZIL_TEST_BROKERS, else build/brokers")
    told = parser.parse_args()
    folder = (told.into or Path(os.environ.get("MENZIL_TEST_BROKERS") or ROOT / "build" / "brokers")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs of one clone
        for package in told.packages:
            try:
                unpack(package, folder)
            except FailedError as error:
                failed = 1
                print(f"{package} cannot be unpacked: {error}", file=sys.stderr)
    print(folder)
    return failed


def unpack(package: str, folder: Path) -> None:
    """Unpack one package with those that it needs."""
    done = folder / f".{package}.unpacked"
    if done.exists():
        return
    for program in ("apt-get", "dpkg"):
        if shutil.which(program) is None:
            raise FailedError(f"this machine has no {program}.")
    options: list[str] = []
    try:
        missing = needed(package, options)
    except FailedError:
        # No lists of packages, as in most container images. Those in the folder leave the system as it is.
        lists = folder / ".lists"
        (lists / "partial").mkdir(parents=True, exist_ok=True)
        options = ["-o", f"Dir::State::lists={lists}"]
        apt([*options, "update"], folder)
        missing = needed(package, options)
    if missing:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as place:
            apt([*options, "download", *missing], Path(place))
            for file in sorted(Path(place).glob("*.deb")):
                run(["dpkg", "-x", str(file), str(folder)], folder)
    done.write_text("\n".join(missing) + "\n")


def needed(package: str, options: list[str]) -> list[str]:
    """Return the packages that an installation would add; none when the package is installed."""
    simulated = apt([*options, "-s", "install", "--no-install-recommends", package], ROOT)
    return re.findall(r"^Inst (\S+)", simulated, re.MULTILINE)


def apt(words: list[str], place: Path) -> str:
    """Run apt-get, which needs no root for any of this."""
    return run(["apt-get", "-qq", "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=root", *words], place)


def run(command: list[str], place: Path) -> str:
    """Run a program and return what it printed, or raise FailedError with its last line."""
    try:
        done = subprocess.run(
            command, cwd=place, env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise FailedError(f"{command[0]} did not end within {PATIENCE} seconds.") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise FailedError(f"{command[0]} ended with {done.returncode}: {said}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
