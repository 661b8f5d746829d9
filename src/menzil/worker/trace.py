"""Tracebacks of failures: in full for the log, and the frames of the user's own code for the database.

Both are bounded: an attempt is a row, and a thousand failures a second must not fill a disk.
"""

from __future__ import annotations

import linecache
import sysconfig
import traceback
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePath
from types import FrameType, TracebackType

from menzil.worker.log import Hide

#: Frames of one exception, exceptions of one chain, and characters of all of it.
FRAMES, CHAIN, KEPT = 12, 4, 4000
#: Characters of a traceback in the log.
LOGGED = 16_000

_OURS = str(Path(__file__).resolve().parents[1])
_STDLIB = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")})
_INSTALLED = ("site-packages", "dist-packages")

_Frame = tuple[str, int, str]  # file, line, function


def full(error: BaseException, hide: Hide) -> str:
    """Return the traceback as Python writes it, without secrets of the worker, and cut in the middle if it is long."""
    try:
        lines = traceback.format_exception(error, limit=-3 * FRAMES)
    except Exception:  # an exception that cannot be looked at
        lines = [f"{type(error).__qualname__}: (its traceback cannot be read)"]
    text = _cut(hide("".join(lines).rstrip()), LOGGED)
    # The text of an error may come from anywhere: it moves no cursor and begins no line of the log.
    return "".join(sign if sign.isprintable() or sign == "\n" else ascii(sign)[1:-1] for sign in text)


def plain(error: BaseException) -> str:
    """Return the traceback as Python writes it, cut in the middle if it is long; secrets are for the caller to hide."""
    try:
        text = "".join(traceback.format_exception(error, limit=-3 * FRAMES))
    except Exception:  # a __str__ that is broken
        text = "".join(traceback.format_tb(error.__traceback__, limit=-3 * FRAMES))
    return _cut(text, LOGGED)


def own(error: BaseException, hide: Hide | None) -> str:
    """Return the frames of the user's own code and the last one, outermost first, of the error and of its causes.

    Without `hide` the texts of causes are left out: they may hold secrets of an endpoint.
    """
    lines: list[str] = []
    for place, one in enumerate(islice(_chain(error), CHAIN)):
        if place:
            lines.append(f"caused by {type(one).__qualname__}" + (f": {_text(one, hide)}" if hide else ""))
        for file, number, name in _chosen(one.__traceback__):
            lines.append(f'File "{_short(file)}", line {number}, in {name}')
            source = linecache.getline(file, number).strip()
            lines += [f"  {source}"] if source else []
    text = "\n".join(lines)
    return _cut(hide(text) if hide else text, KEPT)


def place(frame: FrameType | None) -> str | None:
    """Say where a stack stands in code that is neither ours nor Python's nor of an installed package."""
    innermost = frame
    while frame is not None:
        file = frame.f_code.co_filename
        if not (file.startswith(_OURS) or _is_python(file) or _package(file)):
            return _spot(frame)
        frame = frame.f_back
    return None if innermost is None else _spot(innermost)


def _spot(frame: FrameType) -> str:
    return f"{frame.f_code.co_name}, {_short(frame.f_code.co_filename)}:{frame.f_lineno}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, what it was raised from, and what failed inside a group of tasks."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
        before = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        waiting += [before] if before is not None else []


def _chosen(tb: TracebackType | None) -> list[_Frame]:
    found = [(frame.f_code.co_filename, number, frame.f_code.co_name) for frame, number in traceback.walk_tb(tb)]
    theirs = [frame for frame in found if not frame[0].startswith(_OURS)]
    # The first frame that is neither ours nor Python's is the handler. Its package may be an installed one.
    package = next((_package(file) for file, _, _ in theirs if not _is_python(file)), None)
    own = [frame for frame in theirs if not _is_python(frame[0]) and _package(frame[0]) in (None, package)]
    if theirs and theirs[-1] not in own[-1:]:
        own.append(theirs[-1])  # where it was raised
    half = FRAMES // 2
    return own if len(own) <= FRAMES else [*own[:half], *own[-half:]]


def _package(file: str) -> str | None:
    """The name of the installed package that a file belongs to; None for a file outside of them."""
    parts = PurePath(file).parts
    for folder in _INSTALLED:
        if folder in parts:
            return parts[parts.index(folder) + 1]
    return None


def _is_python(file: str) -> bool:
    return file.startswith("<frozen") or (file.startswith(_STDLIB) and _package(file) is None)


def _short(file: str) -> str:
    try:
        return str(PurePath(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


def _text(error: BaseException, hide: Hide) -> str:
    try:
        return hide(str(error))[:300]
    except Exception:  # its __str__ is broken
        return "(its text cannot be read)"


def _cut(text: str, longest: int) -> str:
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]}\n…\n{text[-half:]}"
