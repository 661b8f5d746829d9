"""Commands that stay: started as a page says, and stopped as soon as they say that they are ready."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.sql.clock import until

#: What each one says when it is ready.
READY = {
    "worker": " INFO started ",
    "console": "The console is at http",
    "metrics": " at http",
    "lake": "The catalog of the lake is at http",
}
_SECONDS = 60.0


def stays(line: str) -> bool:
    """Does this command end only when it is asked to?"""
    words = line.split()
    if words[0] != "menzil" or {"--once", "--new-token"} & set(words):
        return False
    return words[1] in ("worker", "console") or "--serve" in words or words[1:3] == ["lake", "serve"]


def serve(line: str, folder: Path, environ: Mapping[str, str]) -> str:
    """Run it until it is ready, ask it to stop, and return what it said."""
    kind = line.split()[1]
    # Ports of pages may be in use on this machine, and two test processes run pages at the same time.
    line = re.sub(r"--metrics-port \d+", "--metrics-port 0", line)
    line = line if kind == "worker" or "--port" in line else f"{line} --port 0"
    log = folder / f".{kind}.log"
    with log.open("wb") as target:
        running = subprocess.Popen(
            ["bash", "-c", f"exec {line}"], cwd=folder, env=environ, stdout=target, stderr=subprocess.STDOUT
        )
    try:
        until(lambda: READY[kind] in log.read_text() or running.poll() is not None, _SECONDS)
        assert running.poll() is None, f"{line}\n{log.read_text()}"
        running.send_signal(signal.SIGTERM)
        # uvicorn raises the signal once more when it has shut down.
        ends = (0,) if kind in ("worker", "metrics") else (0, -signal.SIGTERM)
        assert running.wait(_SECONDS) in ends, f"{line}\n{log.read_text()}"
    finally:
        running.kill()
        running.wait()
    return log.read_text()
