"""The class-data archive: classes of a first run, parsed and laid out, so that later JVMs map them instead of loading.

The JVM writes it as it ends, which may be after our own process. A file that is still written, or was cut off, must
never be mapped: it grows under another name, and a later start adopts it after Java has checked its sums.

Java 25 and later write what they call an AOT cache. It holds linked classes too, and unlike the older archive it needs
none to build on, which the runtime from pip does not have.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from menzil.spark.session.cache import cache_dir, digest
from menzil.spark.session.java import Java

#: Seconds without a write after which a file is looked at, and after which an unsound one is waste.
_SETTLED, _WASTE = 2, 600
#: Seconds without a start after which an archive is waste: its Java or its Spark is gone.
_UNUSED = 30 * 86400
_AOT = 25  # the first Java whose AOT cache is worth it
_QUIET = ["-Xlog:disable", "-Xlog:all=off"]
_RECORD, _AT_EXIT = "-XX:AOTMode=record", "-XX:ArchiveClassesAtExit="
_MUTE = ["-XX:+UnlockDiagnosticVMOptions", "-XX:-DisplayVMOutput"]  # about its notes, not of the program
_WHEN_GONE = 'notes=$1; shift; while kill -0 "$0" 2>/dev/null; do sleep 1; done; nice "$@"; rm -f "$notes"'


def flags(java: Java, classpath: str, quick: bool, words: Sequence[str] = ()) -> list[str]:
    """What to add to the JVM's command line. Driver, once per JVM. Never fails: without an archive it starts slower.

    `words` is what the command line has already; Java maps an archive only beside the options it was made with.
    MENZIL_CLASS_ARCHIVE=off is for machines that are thrown away after one run: making it costs more than it saves.
    """
    if os.environ.get("MENZIL_CLASS_ARCHIVE") == "off":
        return []
    try:
        archive = cache_dir() / f"classes-{_name(java, classpath, quick)}.jsa"
        _tidy(archive)
        if not archive.exists():
            _adopt(java, classpath, archive, words)
        if archive.exists():
            os.utime(archive)
            # The older archive is an offer, not a condition; the AOT cache is that anyway.
            return [_mapping(java, archive), *([] if java.major >= _AOT else ["-Xshare:auto"]), *_QUIET]
        growing = archive.with_suffix(f".{secrets.token_hex(4)}")
        if java.major >= _AOT:
            return [_RECORD, f"-XX:AOTConfiguration={growing}.notes", *_MUTE, *_QUIET]
        return [f"{_AT_EXIT}{growing}", "-Xshare:auto", *_QUIET]
    except OSError:
        return []


def is_recorded(arguments: Sequence[str]) -> bool:
    """Whether a JVM with these arguments writes an archive: the first one of a machine, which takes longer."""
    return any(word == _RECORD or word.startswith(_AT_EXIT) for word in arguments)


def forget(arguments: list[str]) -> None:
    """Delete the archive that a start with these flags used: that start failed."""
    for word in arguments:
        if word.startswith(("-XX:SharedArchiveFile=", "-XX:AOTCache=")):
            Path(word.partition("=")[2]).unlink(missing_ok=True)


def assemble(arguments: list[str], pid: int) -> None:
    """Make the AOT cache of what this JVM notes down, when it is gone: quietly, beside everything else, by another JVM.

    Java would do that by itself as it ends, with a line of kilobytes on the terminal, after the prompt.
    """
    if _RECORD not in arguments:
        return
    notes = next(word.partition("=")[2] for word in arguments if word.startswith("-XX:AOTConfiguration="))
    words = arguments[: arguments.index("org.apache.spark.deploy.SparkSubmit")]
    create = ["-XX:AOTMode=create" if word == _RECORD else word for word in words]
    subprocess.Popen(
        ["/bin/sh", "-c", _WHEN_GONE, str(pid), notes, *create, f"-XX:AOTCache={notes.removesuffix('.notes')}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _mapping(java: Java, archive: Path) -> str:
    return f"-XX:{'AOTCache' if java.major >= _AOT else 'SharedArchiveFile'}={archive}"


def _tidy(ours: Path) -> None:
    """Files of 200 MB each: those that were given up while they grew, and those that no process maps any more."""
    now = time.time()
    for found in ours.parent.glob("classes-*.*"):
        with contextlib.suppress(OSError):
            age = now - found.stat().st_mtime
            if age > (_UNUSED if found.suffix == ".jsa" else 6 * _WASTE):
                found.unlink()


def _name(java: Java, classpath: str, quick: bool) -> str:
    # Java refuses an archive whose jars changed; then a new one is wanted, under another name.
    changed = Path(classpath.split(os.pathsep)[0]).stat().st_mtime_ns
    return digest(str(java.command), java.version, classpath, str(quick), str(changed))


def _adopt(java: Java, classpath: str, archive: Path, words: Sequence[str]) -> None:
    for found in archive.parent.glob(f"{archive.stem}.????????"):
        with contextlib.suppress(FileNotFoundError):  # another process was quicker
            age = time.time() - found.stat().st_mtime
            if age >= _SETTLED and _sound(java, classpath, found, words):
                found.replace(archive)
                return
            if age > _WASTE:
                found.unlink()


def _sound(java: Java, classpath: str, found: Path, words: Sequence[str]) -> bool:
    strict = ["-XX:AOTMode=on"] if java.major >= _AOT else ["-Xshare:on"]
    check = [str(java.command), "-cp", classpath, *words, _mapping(java, found), *strict]
    check += ["-XX:+VerifySharedSpaces", "-XX:+UseSerialGC", "-version"]
    try:
        return subprocess.run(check, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
