"""Start the driver's JVM ourselves: no shell scripts, no second JVM for a command line, classes from an archive.

This leans on names that PySpark keeps to itself, which is why its version is pinned; whenever anything is out of the
ordinary, PySpark launches in its own way.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path

from menzil.model.errors import MenzilError
from menzil.spark.session import archive
from menzil.spark.session.converters import spare_pandas
from menzil.spark.session.defaults import is_local
from menzil.spark.session.java import Java, find_java, home_for_scripts

#: Seconds for the JVM to say where it listens.
PATIENCE = 120
#: Packages of Java that Spark looks into, as its own launcher opens them.
_OPEN = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.util.calendar",
)
_FLAGS = [
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPEN),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.noUnsafe=false",
]
#: Gone in later ones, which then complain about the flag.
_OPEN_BEFORE_24 = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
# With one compiler Java reserves 48 MB for compiled code. Spark fills them within minutes, and from then on Java throws
# code away and compiles it again.
_QUICK = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=240m"]
#: A user who sets one of these wants something of the JVM that only Spark's own launcher does.
_ENVIRONMENT = (
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_CONF_DIR",
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
    "SPARK_HOME",
    "SPARK_REMOTE",
)
_SETTINGS = ("spark.driver.extraJavaOptions", "spark.driver.extraClassPath", "spark.driver.defaultJavaOptions")


#: How Spark ends its process when the heap is full (SparkExitCode.OOM), and how Java does (ExitOnOutOfMemoryError).
_OUT_OF_MEMORY = (52, 3)


class LaunchError(MenzilError):
    """The JVM did not start."""


def ordinary(settings: Mapping[str, str]) -> bool:
    """Whether our own launch does what PySpark's would."""
    if any(os.environ.get(name) for name in _ENVIRONMENT) or any(name in settings for name in _SETTINGS):
        return False
    return not (Path(spark_home()) / "conf" / "spark-defaults.conf").is_file()


def is_running() -> bool:
    """Whether a JVM that was started here runs. Its settings are ours, not those of a user."""
    return bool(_running) and _running[-1].poll() is None


def has_jvm() -> bool:
    """Whether PySpark has a JVM already, whichever program started it."""
    loaded = sys.modules.get("pyspark")
    return loaded is not None and loaded.SparkContext._gateway is not None


def is_first() -> bool:
    """Whether a JVM was started here that writes the archive of classes, which later ones start faster with."""
    return any(isinstance(one.args, list) and archive.is_recorded(one.args) for one in _running)


def set_java_home() -> Java:
    """Find Java, and name it to PySpark's own launch and to executors."""
    java = find_java()
    os.environ["JAVA_HOME"] = str(home_for_scripts(java))
    return java


def ensure_jvm(settings: Mapping[str, str], *, quick: bool) -> None:
    """Give PySpark a JVM. Driver, once per process; PySpark keeps it for all sessions that follow."""
    if has_jvm():
        return
    java = set_java_home()
    if not ordinary(settings) or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    with contextlib.suppress(LaunchError):
        # Python reads PySpark while the JVM reads Spark: a second each.
        port, secret = start(java, settings, quick=quick, meanwhile=spare_pandas)
        os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(port), secret
        try:
            sys.modules["pyspark"].SparkContext._ensure_initialized()
        finally:  # a child of this process must not take the gateway for its own
            del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]


def command(java: Java, settings: Mapping[str, str], *, quick: bool) -> list[str]:
    """The command line. Settings that the session makes itself are not on it: others can read it."""
    jars = sorted((Path(spark_home()) / "jars").glob("*.jar"), key=_by_use)
    classpath = os.pathsep.join(map(str, jars))
    quiet = resources.files("menzil.spark.session") / "log4j2.properties"
    words = [*_FLAGS, *([_OPEN_BEFORE_24] if java.major < 24 else []), *(_QUICK if quick else [])]
    return [
        str(java.command),
        *("-cp", classpath),
        f"-Xmx{settings.get('spark.driver.memory', '1g')}",
        *words,
        *archive.flags(java, classpath, quick, words),
        f"-Dlog4j2.configurationFile={quiet}",
        "org.apache.spark.deploy.SparkSubmit",
        *("--conf", f"spark.master={settings.get('spark.master', 'local[*]')}"),
        "pyspark-shell",
    ]


def _by_use(jar: Path) -> tuple[bool, str]:
    """Spark's jars first: it reads its own classes as files to clean closures, and Java searches jars in order."""
    return not jar.name.startswith(("spark-", "scala-")), jar.name


def start(
    java: Java, settings: Mapping[str, str], *, quick: bool, meanwhile: Callable[[], object] = lambda: None
) -> tuple[int, str]:
    """Start the JVM, do something else, and wait until it listens; its port and the word that opens it."""
    with tempfile.TemporaryDirectory(prefix="menzil-") as place:
        said = Path(place) / "gateway"
        environment = (
            os.environ
            | {
                "_PYSPARK_DRIVER_CONN_INFO_PATH": str(said),
                "SPARK_CONNECT_MODE": "0",
                "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
            }
            | names_in_utf8(os.environ)
        )
        if not is_local(settings.get("spark.master", "")):
            # With a home, Python workers import a zip of PySpark and compile it anew, each for a second or more;
            # without one they take the installed package. Only executors elsewhere need it.
            environment["SPARK_HOME"] = spark_home()
        line = command(java, settings, quick=quick)
        # Its end of the pipe is how the JVM learns that we are gone.
        process = subprocess.Popen(line, stdin=subprocess.PIPE, env=environment, preexec_fn=_leave_interrupts_to_us)
        _running.append(process)
        archive.assemble(line, process.pid)
        meanwhile()
        deadline = time.monotonic() + PATIENCE
        while not said.is_file():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                archive.forget(line)
                raise LaunchError("The JVM did not start.")
            time.sleep(0.01)
        told = said.read_bytes()
    port, length = struct.unpack("!ii", told[:8])
    return port, told[8 : 8 + length].decode()


def names_in_utf8(environ: Mapping[str, str]) -> dict[str, str]:
    """What lets Java name files as Python does: in the C locale it writes ? for a letter that ASCII lacks.

    A script that says LC_ALL=C would get a lake in another directory than the one it names.
    """
    spoken = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or "C"
    return {"LC_ALL": "C.UTF-8"} if spoken in ("C", "POSIX") else {}


def end(seconds: float = 30) -> None:
    """End the JVMs that were started here and wait until they are gone, so that their files can be removed."""
    while _running:
        process = _running.pop()
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:  # on a busy machine it may take longer to end than we may take to wait
            process.kill()
            process.wait()


def how_it_ended() -> str | None:
    """What became of the JVM that was started last, in a few words; None while it runs, or when PySpark started it."""
    code = None
    if _running:
        with contextlib.suppress(subprocess.TimeoutExpired):  # its socket closes a moment before it is gone
            code = _running[-1].wait(2)
    if code is None:
        return None
    if code in _OUT_OF_MEMORY:
        return "it ran out of memory"
    return f"it was killed by signal {-code}" if code < 0 else f"it ended with exit code {code}"


def spark_home() -> str:
    """Where pip put Spark; found without reading it."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise LaunchError("PySpark is not installed.")
    return str(Path(found.origin).parent)


#: Kept, because a Popen that is collected closes the pipe and thereby ends the JVM.
_running: list[subprocess.Popen[bytes]] = []


def _leave_interrupts_to_us() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
