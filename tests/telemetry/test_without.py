"""A program that does not trace, and one without the packages for it: everything works, and nothing is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import menzil

PROGRAM = """
import asyncio, sys
import menzil

dsn = sys.argv[1]
with menzil.Menzil(dsn) as mq:
    mq.send("billing", {"n": 1}, metadata={"tenant": "a"})
    mq.send_batch("billing", [{"n": 2}])
    (message, *rest) = mq.dequeue(limit=5)
    with menzil.processing(message):
        mq.complete(message)
    for one in rest:
        mq.defer(one)

app = menzil.Worker(dsn, endpoints=False, janitors=False)
seen = []

@app.handler("billing")
async def bill(message):
    seen.append(message.metadata)

asyncio.run(app.serve(once=True))
assert seen == [None], seen
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"opentelemetry", "prometheus_client"}))
"""


def run(db: str, tmp_path: Path, *, blocked: bool, **env: str) -> str:
    if blocked:
        for name in ("opentelemetry", "prometheus_client"):
            (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('no {name}', name={name!r})")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", PROGRAM, db]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path, **env}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_program_that_does_not_trace_imports_nothing_for_it(db: str, mq: menzil.Menzil, tmp_path: Path) -> None:
    assert run(db, tmp_path, blocked=False) == ""


def test_a_program_without_the_packages_works_the_same(db: str, mq: menzil.Menzil, tmp_path: Path) -> None:
    assert run(db, tmp_path, blocked=True) == ""


def test_a_provider_that_the_environment_names_is_loaded(db: str, mq: menzil.Menzil, tmp_path: Path) -> None:
    named = {"OTEL_PYTHON_TRACER_PROVIDER": "sdk_tracer_provider"}
    program = "import menzil, sys; mq = menzil.Menzil(sys.argv[1]); mq.send('billing', {})"
    done = subprocess.run(
        [sys.executable, "-c", program, db], env={**os.environ, **named}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    (message,) = mq.dequeue()
    assert message.metadata is not None
    assert message.metadata["traceparent"].startswith("00-")


def test_a_provider_that_does_not_exist_keeps_no_message_back(db: str, mq: menzil.Menzil, tmp_path: Path) -> None:
    run(db, tmp_path, blocked=True, OTEL_PYTHON_TRACER_PROVIDER="nowhere")
    named = {"OTEL_PYTHON_TRACER_PROVIDER": "nowhere"}
    program = "import menzil, sys; mq = menzil.Menzil(sys.argv[1]); mq.send('mail', {})"
    done = subprocess.run(
        [sys.executable, "-c", program, db], env={**os.environ, **named}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    (message,) = mq.dequeue(channels="mail")
    assert message.metadata is None
