#!/usr/bin/env python3
"""Make .venv from requirements.lock and install menzil into it. Standard library only.

The second run only compares a stamp, so every make target can afford to call it. The stamp is written last: an
interrupted run leaves none behind, and the next run starts over. Two runs at once take turns.
Emits one line per step on stdout; exits with 2 and one sentence when it could not.

Syntax stays readable for old Pythons down to the version check, so that they get a sentence and not a traceback.
"""

import os
import sys

NEEDED = (3, 11)
if sys.version_info < NEEDED:
    for name in ("python3.14", "python3.13", "python3.12", "python3.11"):
        # A name on the PATH may be a shim that leads nowhere, so each one has to answer first.
        if os.system(name + " -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1") == 0:
            os.execvp(name, [name, *sys.argv])
    this = ".".join(map(str, sys.version_info[:2]))
    sys.stderr.write("menzil needs Python 3.11 or later, and this is " + this + ". Try: make PYTHON=python3.12\n")
    sys.exit(2)

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENV = ROOT / ".venv"
PYTHON = ENV / "bin" / "python"
STAMP = ENV / "menzil-stamp"
LOCK = ROOT / "requirements.lock"
# Inside a virtual environment (perhaps the very one about to be replaced) this is the Python it was made from.
BASE = str(getattr(sys, "_base_executable", None) or sys.executable)
PIP_OPTIONS = ["install", "-qq", "--disable-pip-version-check", "--no-input", "--no-compile"]


class CannotError(Exception):
    """Setting up is impossible here; the text is the sentence the user reads."""


class Way:
    """One way to make the environment and to install into it."""

    def __init__(self, name: str, make: list[str], install: list[str]) -> None:
        self.name = name
        self.make = make
        self.install = install


def say(line: str) -> None:
    print(f"menzil: {line}", flush=True)


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def wanted() -> tuple[str, str]:
    """What the stamp must say: a hash for the environment, and one for the project inside it.

    The place counts too: a copied .venv still points at the tree it was copied from.
    """
    environment = digest(LOCK.read_bytes(), sys.version.encode(), sys.base_prefix.encode(), str(ROOT).encode())
    return environment, digest((ROOT / "pyproject.toml").read_bytes())


def stamped() -> tuple[str, str, str]:
    """The stamp of the last finished run: the two hashes and the way it went; empty words when there is none."""
    try:
        environment, project, way = STAMP.read_text().splitlines()
    except (OSError, ValueError):
        return "", "", ""
    return (environment, project, way) if os.access(PYTHON, os.X_OK) else ("", "", "")


def run(command: list[str], lock: int) -> bool:
    """Run one step. The child holds the lock too: if this process is killed, the lock lasts as long as the child."""
    import subprocess

    return subprocess.run(command, pass_fds=(lock,), stdin=subprocess.DEVNULL, check=False).returncode == 0


def has(*modules: str) -> bool:
    import subprocess

    probe = [BASE, "-c", "import " + ", ".join(modules)]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def ways() -> Iterator[Way]:
    """Every way this machine offers, the quickest first."""
    from shutil import which

    uv = which("uv")
    if uv:
        install = [uv, "pip", "install", "--quiet", "--python", str(PYTHON)]
        yield Way("uv", [uv, "venv", "--quiet", "--python", BASE, str(ENV)], install)
    if has("venv", "ensurepip"):
        yield Way("venv", [BASE, "-m", "venv", str(ENV)], [str(PYTHON), "-m", "pip", *PIP_OPTIONS])
    if has("venv", "pip"):
        install = [BASE, "-m", "pip", "--python", str(PYTHON), *PIP_OPTIONS]
        yield Way("pip", [BASE, "-m", "venv", "--without-pip", str(ENV)], install)


def ways_after_apt(lock: int) -> Iterator[Way]:
    """Debian and Ubuntu split venv off; root may fetch it, anyone else reads how."""
    from shutil import which

    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    if os.geteuid() == 0 and which("apt-get"):
        say(f"this Python can make no virtual environment: installing {package} with apt-get")
        run(["apt-get", "update", "-qq"], lock)
        run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], lock)
        yield from ways()
    raise CannotError(
        f"{BASE} can make no virtual environment: it needs its venv module with ensurepip or pip, or uv on the PATH. "
        f"On Debian or Ubuntu: sudo apt-get install {package}"
    )


def clear() -> None:
    import shutil

    if ENV.is_symlink() or ENV.is_file():
        ENV.unlink()
    elif ENV.exists():
        STAMP.unlink(missing_ok=True)  # first, so that a removal cut short does not look finished
        shutil.rmtree(ENV)


def compile_all(lock: int) -> None:
    """Bytecode of everything, once: where Python may not write it, every process would compile what it imports anew.

    Packages contain files that are no Python for this version; a file that does not compile is left as it is.
    """
    from sysconfig import get_path

    # Of a virtual environment: Debian's own Python names another place for itself.
    packages = get_path("purelib", "venv", vars={"base": str(ENV), "platbase": str(ENV)})
    run([str(PYTHON), "-m", "compileall", "-qq", "-j", "0", packages, str(ROOT / "src")], lock)


def build(lock: int) -> Way:
    """Make the environment from nothing and install the packages, by the first way that works."""
    from itertools import chain

    for way in chain(ways(), ways_after_apt(lock)):
        clear()
        say(f"making .venv with Python {sys.version.split()[0]} ({way.name})")
        if not run(way.make, lock):
            continue
        count = sum(1 for line in LOCK.read_text().splitlines() if line and line[0] not in "#- ")
        say(f"installing {count} packages from requirements.lock")
        # The lock names every package there is to install, so nothing is left to resolve.
        if run([*way.install, "--no-deps", "--requirement", str(LOCK)], lock):
            compile_all(lock)
            return way
        if way.name != "uv":  # uv may not know the registry that pip is configured for; another pip knows no more
            break
    raise CannotError("The packages could not be installed; the lines above say why. Running it again starts over.")


def stamp(environment: str, project: str, way: Way) -> None:
    fresh = STAMP.with_suffix(".new")
    fresh.write_text(f"{environment}\n{project}\n{way.name}\n")
    fresh.replace(STAMP)


def set_up(lock: int) -> None:
    """Bring .venv up to date; when only pyproject.toml has changed, the packages stay."""
    environment, project = wanted()
    old_environment, old_project, way_name = stamped()
    if (old_environment, old_project) == (environment, project):
        return  # someone else did it while this run waited for the lock
    start = time.monotonic()
    way = None
    if old_environment == environment:
        way = next((way for way in ways() if way.name == way_name), None)
    if way is None:
        way = build(lock)
    stamp(environment, "unfinished", way)
    say("installing menzil itself")
    # The build backend is in the lock, so nothing beyond it is fetched.
    if not run([*way.install, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)], lock):
        raise CannotError("menzil itself could not be installed; the lines above say why.")
    stamp(environment, project, way)
    say(f"ready after {time.monotonic() - start:.1f} s")


def take_turns() -> None:
    import fcntl

    with (ROOT / ".venv.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another setup is running; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        set_up(file.fileno())


def main() -> int:
    if stamped()[:2] == wanted():
        return 0
    try:
        take_turns()
    except CannotError as error:
        print(f"menzil: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("menzil: interrupted; running it again starts over", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
