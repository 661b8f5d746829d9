"""The class-data archive: classes of a first run, parsed and laid out, so that later JVMs map them instead of loading.

The JVM writes it as it ends, which may be after our own process. A file that is still written, or was cut off, must
never be mapped: it grows under another name, and a later start adopts it after Java has checked its sums.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import time
from pathlib import Path

from menzil.spark.session.cache import cache_dir, digest
from menzil.spark.session.java import Java

#: Seconds without a write after which a file is looked at, and after which an unsound one is waste.
_SETTLED, _WASTE = 2, 600
_QUIET = ["-Xshare:auto", "-Xlog:disable", "-Xlog:all=off"]


def flags(java: Java, classpath: str, quick: bool) -> list[str]:
    """What to add to the JVM's command line. Driver, once per JVM. Never fails: without an archive it starts slower."""
    try:
        archive = cache_dir() / f"classes-{_name(java, classpath, quick)}.jsa"
        if not archive.exists():
            _adopt(java, classpath, archive)
        if archive.exists():
            return [f"-XX:SharedArchiveFile={archive}", *_QUIET]
        growing = archive.with_suffix(f".{secrets.token_hex(4)}")
        return [f"-XX:ArchiveClassesAtExit={growing}", *_QUIET]
    except OSError:
        return []


def forget(arguments: list[str]) -> None:
    """Delete the archive that a start with these flags used: that start failed."""
    for word in arguments:
        if word.startswith("-XX:SharedArchiveFile="):
            Path(word.partition("=")[2]).unlink(missing_ok=True)


def _name(java: Java, classpath: str, quick: bool) -> str:
    # Java refuses an archive whose jars changed; then a new one is wanted, under another name.
    changed = Path(classpath.split(os.pathsep)[0]).stat().st_mtime_ns
    return digest(str(java.command), java.version, classpath, str(quick), str(changed))


def _adopt(java: Java, classpath: str, archive: Path) -> None:
    for found in archive.parent.glob(f"{archive.stem}.*"):
        with contextlib.suppress(FileNotFoundError):  # another process was quicker
            age = time.time() - found.stat().st_mtime
            if age >= _SETTLED and _sound(java, classpath, found):
                found.replace(archive)
                return
            if age > _WASTE:
                found.unlink()


def _sound(java: Java, classpath: str, found: Path) -> bool:
    check = [str(java.command), "-cp", classpath, f"-XX:SharedArchiveFile={found}"]
    check += ["-Xshare:on", "-XX:+VerifySharedSpaces", "-XX:+UseSerialGC", "-version"]
    try:
        return subprocess.run(check, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
