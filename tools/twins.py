"""Write the sync client from the async one: src/menzil/client/aio → src/menzil/client/sync.

`python tools/twins.py` writes, `python tools/twins.py --check` compares and is part of `make lint`. What connections do
differently for threads and for an event loop stands in client/base.py and client/pool.py, written by hand.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "src" / "menzil" / "client"
HEAD = "# Written by tools/twins.py from ../aio/{name}. Change that file, then run: python tools/twins.py\n"
DROPPED = {"async", "await"}
#: Names that do not become sync by losing Async at their beginning.
WORDS = {"aio": "sync", "asynccontextmanager": "contextmanager"}


def translate(text: str) -> str:
    """The sync form of an async module, token by token: strings and comments stay as they are."""
    lines = [list(line) for line in text.splitlines(keepends=True)]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.NAME:
            continue
        (row, start), (_, end) = token.start, token.end
        line = lines[row - 1]
        if token.string in DROPPED:
            # The blank behind it goes too, unless the expression goes on in the next line.
            end += "".join(line[end : end + 1]).isspace() and line[end] != "\n"
            new = ""
        else:
            new = WORDS.get(token.string, token.string.removeprefix("Async"))
        # Places of later tokens in this line stay what they are: the first cell takes the word, the others are emptied.
        line[start:end] = [new, *[""] * (end - start - 1)]
    return "".join("".join(line) for line in lines)


def formatted(text: str, name: str) -> str:
    """Sorted and formatted as `make lint` wants it."""
    for command in (["check", "--quiet", "--fix", "--select", "I"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(CLIENT / "sync" / name), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def twins() -> dict[Path, str]:
    """Every sync module and what it must be."""
    return {
        CLIENT / "sync" / path.name: formatted(HEAD.format(name=path.name) + translate(path.read_text()), path.name)
        for path in sorted((CLIENT / "aio").glob("*.py"))
    }


def main(arguments: list[str]) -> int:
    """Write them, or say which differ."""
    if arguments not in ([], ["--check"]):
        print("usage: python tools/twins.py [--check]", file=sys.stderr)
        return 2
    wanted = twins()
    there = set((CLIENT / "sync").glob("*.py"))
    stray = sorted(there - wanted.keys())
    stale = [path for path, text in wanted.items() if path not in there or path.read_text() != text]
    if arguments:
        for path in [*stale, *stray]:
            print(f"{path.relative_to(ROOT)} is not what tools/twins.py writes; run: python tools/twins.py")
        return 1 if stale or stray else 0
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(wanted[path])
    for path in stray:
        path.unlink()
    print(f"{len(stale)} of {len(wanted)} written, {len(stray)} removed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
