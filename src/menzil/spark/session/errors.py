"""What went wrong, in a sentence: Spark answers with two pages of Java for one line of Python."""

from __future__ import annotations

import re

from menzil.model import errors
from menzil.model.errors import ConnectionFailedError, MenzilError, UsageError
from menzil.spark.session.launch import how_it_ended

_REACH = "check the dsn, as seen from the machines of the cluster"
_MEMORY = "give the driver more with conf={'spark.driver.memory': '2g'}, or read fewer columns"
_PYTHON = (
    "unset PYSPARK_PYTHON and spark.pyspark.python, or name a Python there that has menzil[spark] on every machine"
)
#: What Java says of a Python that is not there, and of one that ends at once.
_NO_PYTHON = re.compile(
    r'(Cannot run program "[^"\n]*python[^"\n]*"[^\n]*?)\.?(?:\n|$)'
    r"|Error from python worker:\s*\n\s*([^\n]*?)\.?(?:\n|$)"
)
#: An error of ours, as the data source reports it: its class, its sentence, and mostly a hint.
_OURS = re.compile(
    r"\bmenzil\.[a-z_.]+\.(?P<name>\w+Error): (?P<sentence>.*)(?:\n(?!Hint: )[^\n]*)?(?:\nHint: (?P<hint>.+))?"
)
_LAST = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning))(?:: (.*))?$", re.MULTILINE)


class JobError(MenzilError):
    """A Spark job failed."""


def explain(error: BaseException) -> MenzilError:
    """The error as one sentence and perhaps a hint. The caller raises it `from` the original."""
    if isinstance(error, MenzilError):
        return error
    text = str(error)
    kind = type(error).__name__
    if "OutOfMemoryError" in text:
        return JobError("Spark ran out of memory.", hint=_MEMORY)
    if "JAVA_GATEWAY_EXITED" in text:
        return JobError("Java ended before Spark was up.", hint="check `java -version` and JAVA_HOME")
    if kind in ("Py4JNetworkError", "ConnectionRefusedError") or "Answer from Java side is empty" in text:
        how = how_it_ended()
        sentence = f"Spark's Java process is gone: {how}." if how else "Spark's Java process is gone."
        return JobError(sentence, hint="start a new Python process; if it dies again, " + _MEMORY)
    stopped = _NO_PYTHON.search(text)
    if stopped is not None:
        return JobError(f"The Python of Spark's tasks does not start: {stopped[1] or stopped[2]}.", hint=_PYTHON)
    told = _told_by_python(text)
    if told is not None:
        return told
    if kind in ("AnalysisException", "ParseException"):
        return UsageError(_sentence(text))
    if kind == "TempTableAlreadyExistsException":
        return UsageError(_sentence(text))
    return JobError(_sentence(text) or kind)


def _told_by_python(text: str) -> MenzilError | None:
    """The exception of a Python worker: the last line of the traceback that Java carries around."""
    start = text.rfind("Traceback (most recent call last):")
    if start < 0:
        ours = _OURS.search(text)
        if ours is None:
            return None
        kind = getattr(errors, ours["name"], JobError)
        if kind is ConnectionFailedError:
            return ConnectionFailedError(
                f"PostgreSQL cannot be reached: {ours['sentence']}", hint=ours["hint"] or _REACH
            )
        made: MenzilError = kind(ours["sentence"].strip(), hint=ours["hint"])
        return made
    raised = [found for found in _LAST.finditer(text, start) if not found[1].startswith(("org.apache.", "java."))]
    if not raised:
        return None
    found = raised[-1]
    name, sentence = found[1].rpartition(".")[2], (found[2] or "").strip()
    hint = re.match(r"\nHint: (.+)", text[found.end() :])
    if name.endswith("OperationalError") and re.search(
        r"refused|could not connect|timeout|closed|translate", text[start:]
    ):
        return ConnectionFailedError(f"PostgreSQL cannot be reached: {sentence}", hint=_REACH)
    if found[1].startswith("menzil."):
        return JobError(sentence, hint=hint[1] if hint else None)
    return JobError(f"{name}: {sentence}" if sentence else name)


def _sentence(text: str) -> str:
    """The first line that says something, without the name of the class or the code in brackets."""
    for line in text.splitlines():
        line = line.strip()
        line = re.sub(r"^(?:[\w$]+\.)+[\w$]+(?:Exception|Error): ?", "", line)
        line = re.sub(r"^\[[A-Z0-9_.]+\] ?", "", line)
        line = re.sub(r" ?SQLSTATE: \w{5}(?:[ ;].*)?$", "", line)
        if line and not line.startswith(("An error occurred while calling", "at ", ":")):
            return line
        if line.startswith(": "):
            return _sentence(line[2:])
    return ""
