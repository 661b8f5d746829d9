"""Log lines: as text for people, as JSON for machines, with the trace and without secrets."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from io import StringIO
from typing import Any

import psycopg
import pytest

import menzil
from menzil.telemetry.logs import JsonLines, TextLines, said
from menzil.worker.log import LOGGER, Hide, Log
from tests.telemetry.sdk import Sdk

APP = """
import menzil

app = menzil.Worker(endpoints=False, janitors=False)


@app.handler("billing")
async def bill(message):
    raise ValueError("no " + str({"password": "hunter2", "order": 42}))
"""


def run_worker(db: str, tmp_path: Any, *options: str) -> list[str]:
    (tmp_path / "shop.py").write_text(APP)
    command = [sys.executable, "-m", "menzil", "worker", "shop:app", "--once", *options]
    env = {**os.environ, "MENZIL_DSN": db}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


def test_a_worker_writes_one_json_object_a_line(db: str, mq: menzil.Menzil, tmp_path: Any) -> None:
    trace_id = "a" * 32
    sent = mq.send("billing", {"body": "nobody logs this"}, metadata={"traceparent": f"00-{trace_id}-{'b' * 16}-01"})
    lines = [json.loads(line) for line in run_worker(db, tmp_path, "--log-format", "json")]
    assert [line["event"] for line in lines] == ["started", "failed", "stopped"]
    failed = lines[1]
    assert failed["level"] == "WARNING"
    assert failed["logger"] == "menzil.worker"
    assert failed["time"].endswith("Z")
    assert (failed["channel"], failed["id"], failed["attempt"], failed["then"]) == ("billing", sent, 1, "retry")
    assert failed["trace_id"] == trace_id
    assert "Traceback" in failed["traceback"]
    assert "'order': 42" in failed["reason"]
    assert "hunter2" not in json.dumps([failed["reason"]])
    assert failed["traceback"].count("hunter2") == failed["traceback"].count('"password": "hunter2"') == 0
    assert "nobody logs this" not in json.dumps(lines)
    assert lines[2]["failed"] == 1


def test_a_line_of_text_is_redacted_the_same(db: str, mq: menzil.Menzil, tmp_path: Any) -> None:
    mq.send("billing", {})
    text = "\n".join(run_worker(db, tmp_path))
    assert " WARNING failed channel=billing " in text
    assert "hunter2" not in text
    with psycopg.connect(db) as conn:
        stored = conn.execute("select error, response::text from menzil.attempts").fetchone()
    assert stored is not None
    assert "hunter2" not in str(stored)
    assert "[redacted]" in stored[0]


def test_the_setting_redact_says_what_a_worker_hides(db: str, mq: menzil.Menzil, tmp_path: Any) -> None:
    with psycopg.connect(db) as conn:
        conn.execute("select menzil.set_setting('redact', 'order')")
    mq.send("billing", {})
    text = "\n".join(run_worker(db, tmp_path))
    assert "hunter2" in text
    assert "'order': " in text
    assert "'order': 42" not in text


@pytest.mark.parametrize("name", ["worker", "console", "metrics"])
def test_an_unknown_format_is_refused_before_anything_starts(name: str) -> None:
    command = [sys.executable, "-m", "menzil", name, "--log-format", "xml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "'text', 'json'" in done.stderr


@pytest.mark.parametrize("how", ["text", "json"])
def test_lines_of_a_server_go_to_standard_error_in_one_format(how: str) -> None:
    program = f"""
import logging
from menzil.model.redact import Redactor
from menzil.telemetry.logs import log_to_stderr
log_to_stderr(["menzil.console", "uvicorn"], {how!r}, level=logging.WARNING, redact=Redactor().text)
logging.getLogger("menzil.console").error("page failed: token=%s", "abc123")
logging.getLogger("uvicorn.error").warning("odd request")
logging.getLogger("menzil.console").info("not this")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert "abc123" not in done.stderr
    if how == "json":
        assert [json.loads(line)["logger"] for line in lines] == ["menzil.console", "uvicorn.error"]
    else:
        assert lines[1].endswith("Z WARNING odd request")


def line_of(record: logging.LogRecord, formatter: logging.Formatter) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(formatter.format(record))
    return found


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_readable_whatever_the_encoding_of_standard_error(encoding: str) -> None:
    program = r"""
import logging
from menzil.telemetry.logs import log_to_stderr
log_to_stderr(["shop"], "json")
logging.getLogger("shop").warning("Z\u00fcrich \u6771\u4eac \ud800")
"""
    env = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, timeout=60, check=True)
    assert json.loads(done.stderr.decode())["message"] == "Z\u00fcrich \u6771\u4eac \ud800"


def test_lines_of_other_loggers_are_json_too() -> None:
    formatter = JsonLines(lambda text: text.replace("secret", "***"))
    record = logging.LogRecord("other", logging.ERROR, "f.py", 1, "a %s\nline", ("secret",), None)
    line = line_of(record, formatter)
    assert (line["logger"], line["level"], line["message"]) == ("other", "ERROR", "a ***\nline")
    try:
        raise ValueError("secret")
    except ValueError:
        record = logging.LogRecord("other", logging.ERROR, "f.py", 1, "broken", None, sys.exc_info())
    assert "ValueError: ***" in line_of(record, formatter)["traceback"]


def test_a_line_inside_a_span_names_its_trace(sdk: Sdk) -> None:
    record = logging.LogRecord("menzil.worker", logging.INFO, "f.py", 1, "x", None, None)
    record.__dict__.update(said("job", {"count": 3, "nothing": None}))
    assert "trace_id" not in line_of(record, JsonLines())
    with sdk.tracer.start_as_current_span("work") as span:
        line = line_of(record, JsonLines())
    assert line["trace_id"] == f"{span.get_span_context().trace_id:032x}"
    assert line["event"] == "job"
    assert line["count"] == 3
    assert "nothing" not in line


@pytest.mark.parametrize("formatter", [TextLines(), JsonLines()])
def test_an_event_hides_passwords_and_what_is_redacted(formatter: logging.Formatter) -> None:
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    LOGGER.addHandler(handler)
    try:
        log = Log(Hide(["s3cret"]))
        error = "cannot connect with s3cret, token=abc123"
        log.warning("lost", error=error, ratio=0.5, trace="password: hunter2")
        for _ in range(25):
            log.error("flood", n=1)
    finally:
        LOGGER.removeHandler(handler)
    text = stream.getvalue()
    assert "s3cret" not in text
    assert "abc123" not in text
    assert "hunter2" not in text
    assert text.count("flood") == 20
